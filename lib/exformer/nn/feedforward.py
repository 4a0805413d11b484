"""The position-wise network: two linear maps with a bend between them, at every position alike."""

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from exformer.nn.dropout import Dropout
from exformer.nn.normalization import check_width


def squared_relu(x: Float[Tensor, "*batch d_ff"]) -> Float[Tensor, "*batch d_ff"]:
    r"""Set what is negative to zero, and square the rest.

    .. math:: f(x) = \max(0, x)^2

    Args:
        x: Numbers.

    Returns:
        As many numbers, none below 0.

    Source:
        So et al. 2021, section 3.
    """
    return F.relu(x).square()


#: The bends one can choose. The paper has relu; GPT and BERT have gelu; Marian has silu; Primer squares relu.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "squared_relu": squared_relu,
}


class FeedForward(nn.Module):
    r"""A network of one hidden layer, applied to each position separately.

    .. math:: \mathrm{FFN}(x) = \max(0,\, x W_1 + b_1)\, W_2 + b_2

    Args:
        d_model: Width of what comes in and goes out.
        d_ff: Width of the hidden layer; four times ``d_model`` in the paper.
        activation: ``"relu"``, ``"gelu"``, ``"silu"`` or ``"squared_relu"``.
        dropout: Share of the hidden units set to zero in training; the paper has none here.

    Raises:
        ValueError: If the activation is unknown.

    Source:
        Vaswani et al. 2017, equation 2.
    """

    def __init__(self, d_model: int, *, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}")
        self.activation = activation
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.dropout = Dropout(dropout)
        for linear in (self.w_1, self.w_2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Apply the network at each position.

        Args:
            x: Vectors along the last axis.

        Returns:
            As many vectors, of the same width.

        Raises:
            ValueError: If the vectors have another width.
        """
        check_width(x, self.w_1.in_features, of="FeedForward")
        hidden = ACTIVATIONS[self.activation](self.w_1(x))  # (*batch, d_ff)
        return self.w_2(self.dropout(hidden))
