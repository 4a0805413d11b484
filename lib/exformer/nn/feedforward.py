"""The position-wise network: two linear maps with an activation between them, at every position alike."""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from exformer.check_settings import check_choice
from exformer.nn.dropout import Dropout
from exformer.nn.initialization import init_linear
from exformer.nn.normalization import check_width


def squared_relu(x: Float[Tensor, "*batch d_ff"]) -> Float[Tensor, "*batch d_ff"]:
    r"""Set what is negative to zero, and square the rest.

    .. math:: f(x) = \max(0, x)^2

    Source:
        So et al. 2021, section 3.

    >>> import torch
    >>> squared_relu(torch.tensor([-2.0, 0.5, 3.0]))
    tensor([0.0000, 0.2500, 9.0000])
    """
    return F.relu(x).square()


#: Activations by name. The paper has relu; BERT has gelu; GPT-2 has gelu_tanh, which approximates it; Marian
#: has silu, also called swish; Primer squares relu.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "squared_relu": squared_relu,
}


def default_d_ff(d_model: int, *, activation: str) -> int:
    """Return the usual width of the hidden layer: four times the model's, or 8/3 of it with SwiGLU.

    A gated unit has three matrices; with 8/3 it has as many parameters as the other networks have with 4.

    Args:
        d_model: Width of the model.
        activation: One of :data:`ACTIVATIONS`, or ``"swiglu"``: there the width is rounded up to a multiple
            of 8.

    Source:
        Vaswani et al. 2017, section 3.3; Touvron et al. 2023, section 2.2, for 8/3.

    >>> default_d_ff(768, activation="gelu"), default_d_ff(128, activation="swiglu")
    (3072, 344)
    """
    return 4 * d_model if activation != "swiglu" else 8 * -(-d_model // 3)


class FeedForward(nn.Module):
    r"""A network of one hidden layer, applied to each position separately.

    .. math:: \mathrm{FFN}(x) = f(x W_1 + b_1)\, W_2 + b_2

    In the paper f is the ReLU. With ``"swiglu"`` the hidden layer is a product of two linear maps, one of
    them passed through the SiLU; that takes a third matrix:

    .. math:: \mathrm{FFN}_{\mathrm{SwiGLU}}(x) = (\mathrm{silu}(x W_1) \odot x W_3)\, W_2

    Args:
        d_model: Width of input and output.
        d_ff: Width of the hidden layer; None: that of :func:`default_d_ff`.
        activation: One of :data:`ACTIVATIONS`, or ``"swiglu"``.
        dropout: Fraction of the hidden units set to zero in training; the paper has none here.
        bias: Whether the linear maps add a bias.
        zero_init: Whether the last matrix starts at zero.

    Raises:
        ValueError: If the activation is unknown.

    Source:
        Vaswani et al. 2017, equation 2; Shazeer 2020, equation 6, for SwiGLU.

    >>> import torch
    >>> FeedForward(4, d_ff=8, activation="gelu")(torch.zeros(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """

    def __init__(
        self,
        d_model: int,
        *,
        d_ff: int | None = None,
        activation: str = "relu",
        dropout: float = 0.0,
        bias: bool = True,
        zero_init: bool = False,
    ) -> None:
        super().__init__()
        check_choice("activation", activation, (*ACTIVATIONS, "swiglu"))
        d_ff = default_d_ff(d_model, activation=activation) if d_ff is None else d_ff
        self.activation_name = activation
        self.activation = F.silu if activation == "swiglu" else ACTIVATIONS[activation]
        self.w_1 = nn.Linear(d_model, d_ff, bias=bias)
        self.w_2 = nn.Linear(d_ff, d_model, bias=bias)
        self.w_3 = nn.Linear(d_model, d_ff, bias=bias) if activation == "swiglu" else None
        self.dropout = Dropout(dropout)
        init_linear(self.w_1, self.w_2, self.w_3)
        if zero_init:
            nn.init.zeros_(self.w_2.weight)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Apply the network at each position.

        Raises:
            ValueError: If the vectors have another width.
        """
        check_width(x, self.w_1.in_features, of="FeedForward")
        hidden = self.activation(self.w_1(x))  # (*batch, d_ff)
        if self.w_3 is not None:
            hidden = hidden * self.w_3(x)
        return self.w_2(self.dropout(hidden))

    def extra_repr(self) -> str:
        """Return the activation's name, which ``print(model)`` shows."""
        return f"activation={self.activation_name}"
