"""Dropout: in training, numbers are left out at random, so that none of them is relied upon alone."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


def dropout(x: Float[Tensor, "*shape"], *, rate: float) -> Float[Tensor, "*shape"]:
    r"""Set each number to zero with one probability, and scale the others up, so that the mean stays.

    .. math::
        \mathrm{out}_i = \frac{m_i}{1 - p}\, x_i, \qquad m_i = [\, u_i \ge p \,], \qquad u_i \sim U(0, 1)

    Args:
        x: Numbers.
        rate: :math:`p`, the share that is set to zero.

    Returns:
        As many numbers.

    Raises:
        ValueError: If the rate is not a share.

    Source:
        Srivastava et al. 2014, section 10: scaled in training, so that nothing changes in use.
    """
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"the dropout rate must lie in [0, 1], got {rate}")
    if rate == 1.0:
        return x * 0.0
    # Uniform numbers: on a CPU they take half the time of the Bernoulli numbers in F.dropout.
    keep = torch.rand_like(x, dtype=torch.float32).ge_(rate)  # (*shape), 0 or 1
    return x * keep.to(x.dtype).div_(1.0 - rate)


class Dropout(nn.Module):
    """Dropout in training, nothing in evaluation.

    Args:
        rate: See :func:`dropout`.

    Raises:
        ValueError: If the rate is not a share.

    Source:
        Srivastava et al. 2014.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0.0 <= rate <= 1.0:
            raise ValueError(f"the dropout rate must lie in [0, 1], got {rate}")
        self.rate = rate

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Drop some numbers, if the module is in training mode.

        Args:
            x: Numbers.

        Returns:
            As many numbers.
        """
        return dropout(x, rate=self.rate) if self.training and self.rate else x
