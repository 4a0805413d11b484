"""Layer normalization: each vector by itself is brought to mean 0 and variance 1, or to mean square 1."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

#: What is added under the root if nothing else is set.
LAYER_NORM_EPS, RMS_NORM_EPS = 1e-5, 1e-6


def check_width(x: Float[Tensor, "*batch columns"], d_model: int, *, of: str) -> None:
    """Check that vectors have the width ``d_model``, for which a module, ``of``, was made.

    Raises:
        ValueError: If they have another width.
    """
    if x.size(-1) != d_model:
        raise ValueError(f"{of} was made for d_model = {d_model}, got {x.size(-1)} columns")


def layer_norm(
    x: Float[Tensor, "*batch d_model"],
    weight: Float[Tensor, " d_model"],
    bias: Float[Tensor, " d_model"],
    *,
    eps: float = LAYER_NORM_EPS,
) -> Float[Tensor, "*batch d_model"]:
    r"""Normalize each vector to mean 0 and variance 1, then scale and shift every column.

    .. math::
        \mathrm{LayerNorm}(x) = \gamma \, \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta, \qquad
        \mu = \frac1d \sum_i x_i, \quad \sigma^2 = \frac1d \sum_i (x_i - \mu)^2

    Args:
        x: Vectors along the last axis.
        weight: :math:`\gamma`, the gain of each column.
        bias: :math:`\beta`, one number per column.
        eps: Added to the variance, under the root, so that a constant vector gives zeros and not 0/0.

    Returns:
        Vectors of the same width. In float16 use the module: here the square of a difference of 256 or more
        overflows, and the vector becomes zeros.

    Source:
        Ba, Kiros and Hinton 2016, equation 4; the variance divides by d, not by d - 1.

    >>> x = torch.tensor([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    >>> layer_norm(x, weight=torch.ones(3), bias=torch.zeros(3))  # only the pattern is left
    tensor([[-1.2247,  0.0000,  1.2247],
            [-1.2247,  0.0000,  1.2247]])
    """
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return weight * (x - mean) / torch.sqrt(variance + eps) + bias


class LayerNorm(nn.Module):
    r"""Layer normalization with a learned gain and bias.

    Args:
        d_model: Width of the vectors.
        eps: See :func:`layer_norm`; None: 1e-5.
        bias: Whether there is a bias; without one, :math:`\beta = 0`.

    Source:
        Ba, Kiros and Hinton 2016.

    >>> import torch
    >>> LayerNorm(4)(torch.tensor([1.0, 2.0, 3.0, 4.0])).detach()
    tensor([-1.3416, -0.4472,  0.4472,  1.3416])
    """

    def __init__(self, d_model: int, *, eps: float | None = None, bias: bool = True) -> None:
        super().__init__()
        self.eps = LAYER_NORM_EPS if eps is None else eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Normalize each vector.

        Raises:
            ValueError: If the vectors have another width.
        """
        check_width(x, self.weight.numel(), of="LayerNorm")
        # The fused kernel for the equation of layer_norm above; a test holds the two equal.
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the sizes that ``print(model)`` shows."""
        return f"{self.weight.numel()}, eps={self.eps:g}, bias={self.bias is not None}"


def rms_norm(
    x: Float[Tensor, "*batch d_model"], weight: Float[Tensor, " d_model"], *, eps: float = RMS_NORM_EPS
) -> Float[Tensor, "*batch d_model"]:
    r"""Normalize each vector to mean square 1, then scale every column; the mean is left where it is.

    .. math::
        \mathrm{RMSNorm}(x) = \gamma \, \frac{x}{\sqrt{\frac1d \sum_i x_i^2 + \varepsilon}}

    Args:
        x: Vectors along the last axis.
        weight: :math:`\gamma`, the gain of each column.
        eps: Added to the mean square, under the root, so that a zero vector stays zero.

    Returns:
        Vectors of the same width. In float16 use the module, as with :func:`layer_norm`.

    Source:
        Zhang and Sennrich 2019, equation 4.

    >>> rms_norm(torch.tensor([1.0, 7.0]), weight=torch.ones(2))  # the mean square is 25
    tensor([0.2000, 1.4000])
    """
    mean_square = (x**2).mean(dim=-1, keepdim=True)
    return weight * x / torch.sqrt(mean_square + eps)


class RMSNorm(nn.Module):
    """Root mean square normalization with a learned gain.

    Args:
        d_model: Width of the vectors.
        eps: See :func:`rms_norm`; None: 1e-6.

    Source:
        Zhang and Sennrich 2019.

    >>> import torch
    >>> RMSNorm(2)(torch.tensor([3.0, 4.0])).detach()
    tensor([0.8485, 1.1314])
    """

    def __init__(self, d_model: int, *, eps: float | None = None) -> None:
        super().__init__()
        self.eps = RMS_NORM_EPS if eps is None else eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Normalize each vector.

        Raises:
            ValueError: If the vectors have another width.
        """
        check_width(x, self.weight.numel(), of="RMSNorm")
        # PyTorch's name for the equation of rms_norm above; a test holds the two equal.
        return F.rms_norm(x, self.weight.shape, self.weight.to(x), self.eps)

    def extra_repr(self) -> str:
        """Return the sizes that ``print(model)`` shows."""
        return f"{self.weight.numel()}, eps={self.eps:g}"


#: The normalizations a layer can be built with, by name.
NORMS: dict[str, type[nn.Module]] = {"layer": LayerNorm, "rms": RMSNorm}
