"""Rotary positions: queries and keys are rotated by their position, so that scores depend on the distance."""

from functools import lru_cache

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn


def rotate(
    x: Float[Tensor, "*batch time d_head"], positions: Int64[Tensor, " time"], *, base: float = 10_000.0
) -> Float[Tensor, "*batch time d_head"]:
    r"""Turn each pair of columns by an angle that grows with the position.

    .. math::
        \begin{pmatrix} x'_{2i} \\ x'_{2i+1} \end{pmatrix} =
        \begin{pmatrix} \cos n\theta_i & -\sin n\theta_i \\ \sin n\theta_i & \cos n\theta_i \end{pmatrix}
        \begin{pmatrix} x_{2i} \\ x_{2i+1} \end{pmatrix}, \qquad \theta_i = base^{-2i/d_{head}}

    A turn by n and a turn by m leave between two vectors a turn by m - n: their dot product depends on the
    distance alone.

    Args:
        x: Queries or keys of one head.
        positions: Where each of them stands.
        base: Wavelengths grow from 2π to 2π · base, as in the sinusoidal encoding.

    Returns:
        Vectors of the same lengths, turned.

    Raises:
        ValueError: If ``d_head`` is odd, or there is not one position for each vector.

    Source:
        Su et al. 2021, equations 14, 15 and 34; the pairs are neighbours, and i is counted from 0.
    """
    turns = _turns(positions, d_head=x.size(-1), base=base)
    if positions.shape != x.shape[-2:-1]:
        raise ValueError(f"there are {x.size(-2)} vectors and {positions.numel()} positions: each needs one")
    return _turn(x, turns)


def _turns(positions: Tensor, *, d_head: int, base: float) -> Tensor:
    """Give the numbers that turn the pairs of a vector at each position: (time, d_head/2), complex."""
    if d_head % 2:
        raise ValueError(f"d_head ({d_head}) must be even: columns are turned in pairs")
    # float64 inside, as in the sinusoidal encoding.
    frequency = base ** (-torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
    angle = positions[:, None] * frequency.to(positions.device)
    return torch.polar(torch.ones_like(angle), angle)


def _turn(x: Tensor, turns: Tensor) -> Tensor:
    """Multiply: a pair is one complex number, and a turn a product, as many operations in one pass."""
    wide = torch.promote_types(x.dtype, torch.float32)  # there are no complex numbers of bfloat16
    copied = x.to(wide, copy=True, memory_format=torch.contiguous_format)  # however x lies in memory
    pairs = torch.view_as_complex(copied.unflatten(-1, (-1, 2)))  # (*batch, time, d_head/2)
    return torch.view_as_real(pairs * turns.to(pairs)).flatten(start_dim=-2).to(x)


@lru_cache(maxsize=16)
@torch.inference_mode(mode=False)  # training may need later what was made while nothing was learned
def _first_turns(n: int, d_head: int, base: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Give the turns of the positions below n, the same each time: every layer and step asks for them."""
    turns = _turns(torch.arange(n), d_head=d_head, base=base)
    return turns.to(device, torch.promote_types(dtype, torch.float32).to_complex())


class RotaryPositions(nn.Module):
    """Rotate queries and keys in every head; nothing is learned, and there is no largest position.

    Args:
        base: See :func:`rotate`.

    Source:
        Su et al. 2021, section 3.2.
    """

    def __init__(self, *, base: float = 10_000.0) -> None:
        super().__init__()
        self.base = base

    def forward(
        self,
        q: Float[Tensor, "batch heads position d_head"],
        k: Float[Tensor, "batch kv_heads position d_head"],
        *,
        start: int = 0,
    ) -> tuple[
        Float[Tensor, "batch heads position d_head"], Float[Tensor, "batch kv_heads position d_head"], None
    ]:
        """Rotate the queries and keys of consecutive positions.

        Args:
            q: Queries.
            k: Keys of the same positions.
            start: How many positions came before, as in a cache.

        Returns:
            Rotated queries, rotated keys, and None: nothing is added to the scores.

        Raises:
            ValueError: If queries and keys differ in number, or ``d_head`` is odd.
        """
        check_same_positions(q, k)
        end = start + k.size(2)
        kept = 1 << end.bit_length()  # a power of two: a text that grows seldom needs new ones
        # What is only traced (torch.export) has no numbers that could be kept.
        first_turns = _first_turns if type(k) is Tensor else _first_turns.__wrapped__
        turns = first_turns(kept, k.size(-1), self.base, k.dtype, k.device)[start:end]
        return _turn(q, turns), _turn(k, turns), None


def check_same_positions(q: Tensor, k: Tensor) -> None:
    """Refuse queries and keys (batch, heads, position, d_head) that are not those of the same positions.

    Raises:
        ValueError: If they differ in number.
    """
    if q.size(2) != k.size(2):
        raise ValueError(
            f"relative positions need queries and keys of the same positions, got {q.size(2)} queries and "
            f"{k.size(2)} keys: use them in self-attention only"
        )
