"""Positions: attention sees a set, so each vector is told where it stands."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn


def sinusoidal_encoding(
    n_positions: int, *, d_model: int, base: float = 10_000.0, dtype: torch.dtype | None = None
) -> Float[Tensor, "position d_model"]:
    r"""Encode positions by sines and cosines of falling frequency, from 1 down to about 1/base.

    .. math::
        PE_{(pos, 2i)} = \sin\left(pos / 10000^{2i/d_{model}}\right), \qquad
        PE_{(pos, 2i+1)} = \cos\left(pos / 10000^{2i/d_{model}}\right)

    Args:
        n_positions: How many positions, counted from 0; at least 1.
        d_model: Width of the encoding; must be even, as each frequency has a sine and a cosine.
        base: The 10000 of the equation: wavelengths grow from 2π to 2π · base.
        dtype: Number type of the result.

    Returns:
        One row a position.

    Raises:
        ValueError: If ``d_model`` is odd, or a number is too small.

    Source:
        Vaswani et al. 2017, section 3.5.
    """
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even: each frequency needs a sine and a cosine")
    if n_positions < 1 or d_model < 2 or base <= 0:
        raise ValueError(
            f"n_positions ({n_positions}) must be at least 1, d_model ({d_model}) at least 2, "
            f"base ({base}) above 0"
        )
    # float64 inside: in float32 the angle of position 5,000 is already off by 2e-4.
    position = torch.arange(n_positions, dtype=torch.float64)[:, None]  # (position, 1)
    frequency = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)  # (d_model/2,)
    angle = position * frequency  # (position, d_model/2)
    # sine, cosine, sine, ...
    encoding = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(start_dim=-2)  # (position, d_model)
    return encoding.to(dtype or torch.get_default_dtype())


class SinusoidalPositions(nn.Module):
    """Add the sinusoidal encoding: computed once, not learned, not saved.

    Args:
        d_model: Width of the vectors.
        max_len: How many positions are computed.

    Source:
        Vaswani et al. 2017, section 3.5.
    """

    def __init__(self, d_model: int, *, max_len: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_encoding(max_len, d_model=d_model), persistent=False)

    def forward(
        self, x: Float[Tensor, "batch time d_model"], *, start: int = 0
    ) -> Float[Tensor, "batch time d_model"]:
        """Add to each vector the code of its position.

        Args:
            x: Vectors in their order.
            start: The position of the first one.

        Returns:
            The sums.

        Raises:
            ValueError: If there is no batch, or the sequence is longer than the table.
        """
        return x + _rows(self.table, x, start=start)


class LearnedPositions(nn.Module):
    """Add a learned vector for each position; it knows no position beyond its table.

    Args:
        d_model: Width of the vectors.
        max_len: How many positions there are.

    Source:
        Gehring et al. 2017; compared in Vaswani et al. 2017, table 3, row E.
    """

    def __init__(self, d_model: int, *, max_len: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_len, d_model) * 0.02)

    def forward(
        self, x: Float[Tensor, "batch time d_model"], *, start: int = 0
    ) -> Float[Tensor, "batch time d_model"]:
        """Add to each vector the vector of its position.

        Args:
            x: Vectors in their order.
            start: The position of the first one.

        Returns:
            The sums.

        Raises:
            ValueError: If there is no batch, or the sequence is longer than the table.
        """
        return x + _rows(self.table, x, start=start)


class NoPositions(nn.Module):
    """Add nothing: for models whose attention is told the distances, and for those that know no order.

    Args:
        max_len: The longest sequence that is let through.
    """

    def __init__(self, *, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len

    def forward(
        self, x: Float[Tensor, "batch time d_model"], *, start: int = 0
    ) -> Float[Tensor, "batch time d_model"]:
        """Leave the vectors as they are.

        Args:
            x: Vectors in their order.
            start: The position of the first one.

        Returns:
            The same vectors.

        Raises:
            ValueError: If there is no batch, or the sequence is longer than ``max_len``.
        """
        _check_range(x, start=start, max_len=self.max_len)
        return x


def positions_of(
    q: Float[Tensor, "batch heads query d_head"], k: Float[Tensor, "batch heads key d_head"]
) -> tuple[Int64[Tensor, " query"], Int64[Tensor, " key"]]:
    """Number the keys from 0, and the queries so that the last query stands where the last key stands.

    So it is in self-attention, and still when only the newest queries are computed and all keys are kept.

    Args:
        q: Queries.
        k: Keys.

    Returns:
        The positions of the queries and those of the keys.

    Raises:
        ValueError: If there are more queries than keys.
    """
    n_queries, n_keys = q.size(-2), k.size(-2)
    if n_queries > n_keys:
        raise ValueError(
            f"relative positions need queries among the keys, got {n_queries} queries and {n_keys} keys: "
            "use them in self-attention only"
        )
    positions = torch.arange(n_keys)
    return positions[n_keys - n_queries :], positions


def _rows(table: Tensor, x: Tensor, *, start: int) -> Tensor:
    _check_range(x, start=start, max_len=table.size(0))
    return table[start : start + x.size(1)]


def _check_range(x: Tensor, *, start: int, max_len: int) -> None:
    if x.dim() != 3:
        raise ValueError(
            f"positions are for (batch, time, d_model), got the shape {tuple(x.shape)}: one text is ids[None]"
        )
    end = start + x.size(1)
    if start < 0 or end > max_len:
        raise ValueError(
            f"positions {start} to {end - 1} are asked for, and max_len is {max_len}: "
            "shorten the sequence or build the model with a larger max_len"
        )


#: The encodings a model can be built with, by name.
POSITIONS = {"sinusoidal": SinusoidalPositions, "learned": LearnedPositions}
