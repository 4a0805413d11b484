"""Absolute positions: attention sees a set, so each vector gets the code of its position added."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from exformer.check_settings import check_integer
from exformer.nn.normalization import check_width


def sinusoidal_encoding(
    n_positions: int,
    *,
    d_model: int,
    base: float = 10_000.0,
    halves: bool = False,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "position d_model"]:
    r"""Encode positions by sines and cosines of falling frequency, from 1 down to about 1/base.

    .. math::
        PE_{(pos, 2i)} = \sin\left(pos / 10000^{2i/d_{model}}\right), \qquad
        PE_{(pos, 2i+1)} = \cos\left(pos / 10000^{2i/d_{model}}\right)

    Args:
        n_positions: How many positions, counted from 0; at least 1.
        d_model: Width of the encoding; must be even, as each frequency has a sine and a cosine.
        base: The 10000 of the equation: wavelengths grow from 2π to 2π · base.
        halves: Put all sines before the cosines, as the code of the paper and Marian do. The order of the
            columns makes no difference to a model that is trained with it.
        dtype: Number type of the result.

    Raises:
        ValueError: If ``d_model`` is odd, or a number is too small.

    Source:
        Vaswani et al. 2017, section 3.5.

    >>> sinusoidal_encoding(3, d_model=4)
    tensor([[ 0.0000,  1.0000,  0.0000,  1.0000],
            [ 0.8415,  0.5403,  0.0100,  0.9999],
            [ 0.9093, -0.4161,  0.0200,  0.9998]])
    """
    check_integer("n_positions", n_positions, least=1)
    if check_integer("d_model", d_model, least=2) % 2:
        raise ValueError(f"d_model ({d_model}) must be even: each frequency needs a sine and a cosine")
    if not base > 0:
        raise ValueError(f"base must be above 0, got {base}")
    # float64 inside: in float32 the angle of position 5,000 is already off by 2e-4.
    position = torch.arange(n_positions, dtype=torch.float64)[:, None]  # (position, 1)
    frequency = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)  # (d_model/2,)
    angle = position * frequency  # (position, d_model/2)
    if halves:
        encoding = torch.cat((angle.sin(), angle.cos()), dim=-1)  # (position, d_model)
    else:  # sine, cosine, sine, ...
        encoding = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(start_dim=-2)
    return encoding.to(dtype or torch.get_default_dtype())


class SinusoidalPositions(nn.Module):
    """Add the sinusoidal encoding: computed once, not learned, not saved.

    Args:
        d_model: Width of the vectors.
        max_len: How many positions are computed.
        halves: See :func:`sinusoidal_encoding`.

    Source:
        Vaswani et al. 2017, section 3.5.
    """

    weight: Tensor  # (position, d_model)

    def __init__(self, d_model: int, *, max_len: int, halves: bool = False) -> None:
        super().__init__()
        self.halves = halves
        encoding = sinusoidal_encoding(max_len, d_model=d_model, halves=halves)
        self.register_buffer("weight", encoding, persistent=False)

    def forward(
        self,
        x: Float[Tensor, "batch position d_model"],
        *,
        start: int = 0,
        padding: Int64[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch position d_model"]:
        """Add to each vector the code of its position.

        Args:
            x: Vectors in their order.
            start: How many positions came before.
            padding: How many positions at the front of each sequence are padding; they are not counted.

        Raises:
            ValueError: If there is no batch, or the sequence is longer than the table.
        """
        return x + _rows(self.weight, x, start=start, padding=padding).to(x)

    def _apply(self, fn: Callable[..., Tensor], recurse: bool = True) -> "SinusoidalPositions":
        """Move or convert the module; the encoding is computed anew, or double() would keep few digits."""
        super()._apply(fn, recurse)
        n_positions, d_model = self.weight.shape
        exact = sinusoidal_encoding(n_positions, d_model=d_model, halves=self.halves, dtype=torch.float64)
        self.weight = exact.to(self.weight)
        return self

    def extra_repr(self) -> str:
        """Return the sizes that ``print(model)`` shows."""
        return f"{self.weight.size(0)}, d_model={self.weight.size(1)}"


class LearnedPositions(nn.Module):
    """Add a learned vector for each position; there is none beyond the table.

    Args:
        d_model: Width of the vectors.
        max_len: How many positions there are.

    Source:
        Gehring et al. 2017; compared in Vaswani et al. 2017, table 3, row E.
    """

    def __init__(self, d_model: int, *, max_len: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(max_len, d_model) * 0.02)

    def forward(
        self,
        x: Float[Tensor, "batch position d_model"],
        *,
        start: int = 0,
        padding: Int64[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch position d_model"]:
        """Add to each vector that of its position; arguments as for :class:`SinusoidalPositions`.

        Raises:
            ValueError: If there is no batch, or the sequence is longer than the table.
        """
        return x + _rows(self.weight, x, start=start, padding=padding)

    def extra_repr(self) -> str:
        """Return the sizes that ``print(model)`` shows."""
        return f"{self.weight.size(0)}, d_model={self.weight.size(1)}"


class NoPositions(nn.Module):
    """Add nothing: for models with relative positions, and for those without any.

    Args:
        max_len: The longest sequence; None: any.
    """

    def __init__(self, *, max_len: int | None) -> None:
        super().__init__()
        self.max_len = max_len

    def forward(
        self,
        x: Float[Tensor, "batch position d_model"],
        *,
        start: int = 0,
        padding: Int64[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch position d_model"]:
        """Return the vectors unchanged; arguments as for :class:`SinusoidalPositions`.

        Raises:
            ValueError: If there is no batch, or the sequence is longer than ``max_len``.
        """
        _check_range(x, start=start, padding=padding, max_len=self.max_len)
        return x

    def extra_repr(self) -> str:
        """Return the largest length, which ``print(model)`` shows."""
        return f"{self.max_len}"


def added_positions(name: str, d_model: int, *, max_len: int | None) -> nn.Module:
    """Make what a model adds to its embeddings: a code for each position, or nothing.

    Args:
        name: Of :data:`exformer.nn.config.POSITIONS`; those that act inside the attention add nothing.
        d_model: Width of the vectors.
        max_len: Longest sequence; None: there is none, where nothing is added.

    Raises:
        ValueError: If there is a code for each position, but no ``max_len``.
    """
    if name not in ("sinusoidal", "sinusoidal_halves", "learned"):
        return NoPositions(max_len=max_len)
    if max_len is None:
        raise ValueError(f"{name} positions need a max_len: there is a vector for each position")
    if name == "learned":
        return LearnedPositions(d_model, max_len=max_len)
    return SinusoidalPositions(d_model, max_len=max_len, halves=name == "sinusoidal_halves")


def _rows(weight: Tensor, x: Tensor, *, start: int, padding: Tensor | None) -> Tensor:
    """Return the rows of the positions: (position, d_model), or with padding (batch, position, d_model)."""
    _check_range(x, start=start, padding=padding, max_len=weight.size(0))
    check_width(x, weight.size(1), of="the table of positions")
    end = start + x.size(1)
    if padding is None:
        return weight[start:end]
    positions = torch.arange(start, end, device=padding.device) - padding[:, None]  # (batch, position)
    return weight[positions.clamp(min=0).to(weight.device)]


def _check_range(x: Tensor, *, start: int, padding: Tensor | None, max_len: int | None) -> None:
    if x.dim() != 3:
        raise ValueError(
            f"positions are for (batch, position, d_model), got the shape {tuple(x.shape)}: "
            "one sequence is x[None]"
        )
    end = start + x.size(1) - (0 if padding is None else int(padding.min()))
    if start < 0 or (max_len is not None and end > max_len):
        raise ValueError(
            f"the sequence has {end} positions (from {start} on), and max_len is {max_len}: "
            "shorten it, or build the model with a larger max_len"
        )
