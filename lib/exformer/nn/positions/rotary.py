"""Rotary positions: queries and keys are rotated by their position, so that scores depend on the offset."""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn


@dataclass(frozen=True)
class RopeScaling:
    r"""Slow the rotations down, so that a longer text stays within the angles that a model was trained on.

    With the factor alone, every frequency is divided by it, as if the positions lay closer together. Llama 3
    divides only the low frequencies (NTK by parts), whose wavelength :math:`\lambda_i = 2\pi/\theta_i` is
    near the length L of the texts in training or above:

    .. math::
        \theta'_i = (1 - s_i)\, \frac{\theta_i}{factor} + s_i\, \theta_i, \qquad
        s_i = \mathrm{clip}\left(\frac{L/\lambda_i - low}{high - low}, 0, 1\right)

    Args:
        factor: By how much longer the texts become, at least 1.
        original_max_len: :math:`L`; None: all frequencies are divided alike.
        low_freq_factor: :math:`low`; wavelengths above L / low are divided by the factor.
        high_freq_factor: :math:`high`, above low; wavelengths below L / high stay.

    Raises:
        ValueError: If a number is out of its range.

    Source:
        Chen et al. 2023, section 2.3, for the factor alone; the published code of Llama 3.1,
        apply_scaling, for the frequencies in between.

    >>> import torch
    >>> scaling = RopeScaling(8.0, original_max_len=8192)
    >>> scaling.scale(torch.tensor([1.0, 1e-5]))  # wavelengths of 6 and of 600,000 positions
    tensor([1.0000e+00, 1.2500e-06])
    """

    factor: float
    original_max_len: int | None = None
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not self.factor >= 1:
            raise ValueError(f"factor must be at least 1, got {self.factor}")
        if self.original_max_len is not None and not self.original_max_len >= 1:
            raise ValueError(f"original_max_len must be at least 1, got {self.original_max_len}")
        if not 0 < self.low_freq_factor < self.high_freq_factor:
            raise ValueError(
                "low_freq_factor must be above 0 and below high_freq_factor, got "
                f"{self.low_freq_factor} and {self.high_freq_factor}"
            )

    def scale(self, frequency: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Return the frequencies that take the place of the given ones, in radians per position."""
        if self.original_max_len is None:
            return frequency / self.factor
        turns = self.original_max_len * frequency / (2 * math.pi)  # in a text of the original length
        kept = (turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        kept = kept.clamp(0, 1)
        return (1 - kept) * frequency / self.factor + kept * frequency


def rotate(
    x: Float[Tensor, "*batch position d_head"],
    positions: Int64[Tensor, " position"],
    *,
    base: float = 10_000.0,
    scaling: RopeScaling | None = None,
) -> Float[Tensor, "*batch position d_head"]:
    r"""Rotate each pair of columns by an angle that grows with the position.

    .. math::
        \begin{pmatrix} x'_{2i} \\ x'_{2i+1} \end{pmatrix} =
        \begin{pmatrix} \cos n\theta_i & -\sin n\theta_i \\ \sin n\theta_i & \cos n\theta_i \end{pmatrix}
        \begin{pmatrix} x_{2i} \\ x_{2i+1} \end{pmatrix}, \qquad \theta_i = base^{-2i/d_{head}}

    The dot product of a query at position n and a key at position m depends only on the offset n - m, sign
    included: a key before the query and one as far after it have different scores. Lengths do not change.

    Args:
        x: Queries or keys.
        positions: The position of each, counted from 0.
        base: Wavelengths grow from 2π to 2π · base, as in the sinusoidal encoding.
        scaling: How the frequencies :math:`\theta_i` are slowed down.

    Raises:
        ValueError: If ``d_head`` is odd, there is not one position for each vector, or the vectors hold
            integers, which a rotation would round.

    Source:
        Su et al. 2021, equations 14, 15 and 34; the pairs are neighbors, and i is counted from 0.

    >>> import torch
    >>> rotate(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1]))  # by 0 and by 1 radian
    tensor([[1.0000, 0.0000],
            [0.5403, 0.8415]])
    """
    if not x.is_floating_point():
        raise ValueError(f"rotate needs floating-point numbers, got {x.dtype}: use x.float()")
    rotations = _rotations(positions, d_head=x.size(-1), base=base, scaling=scaling)
    if positions.shape != x.shape[-2:-1]:
        raise ValueError(f"there are {x.size(-2)} vectors and {positions.numel()} positions: each needs one")
    return _rotated(x, rotations)


def _rotations(positions: Tensor, *, d_head: int, base: float, scaling: RopeScaling | None) -> Tensor:
    """Return the numbers that rotate the pairs at each position: (position, d_head/2), complex."""
    if d_head % 2:
        raise ValueError(f"d_head ({d_head}) must be even: columns are rotated in pairs")
    # float64 inside, as in the sinusoidal encoding.
    frequency = base ** (-torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
    frequency = frequency if scaling is None else scaling.scale(frequency)
    angle = positions[:, None] * frequency.to(positions.device)
    return torch.polar(torch.ones_like(angle), angle)


def _rotated(x: Tensor, rotations: Tensor) -> Tensor:
    """Multiply: a pair is one complex number, and rotating it is one product."""
    wide = torch.promote_types(x.dtype, torch.float32)  # there are no complex numbers of bfloat16
    copied = x.to(wide, copy=True, memory_format=torch.contiguous_format)  # however x lies in memory
    pairs = torch.view_as_complex(copied.unflatten(-1, (-1, 2)))  # (*batch, position, d_head/2)
    return torch.view_as_real(pairs * rotations.to(pairs)).flatten(start_dim=-2).to(x)


@lru_cache(maxsize=16)
@torch.inference_mode(mode=False)  # what was made in inference may be used in training later
def _first_rotations(
    n: int,
    d_head: int,
    base: float,
    scaling: RopeScaling | None,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """Return the rotations of the first n positions; kept, because every layer and step asks for them."""
    rotations = _rotations(torch.arange(n), d_head=d_head, base=base, scaling=scaling)
    return rotations.to(device, torch.complex128 if dtype == torch.float64 else torch.complex64)


class RotaryPositions(nn.Module):
    """Rotate queries and keys in every head; nothing is learned, and there is no largest position.

    Args:
        base, scaling: See :func:`rotate`.

    Source:
        Su et al. 2021, section 3.2.
    """

    def __init__(self, *, base: float = 10_000.0, scaling: RopeScaling | None = None) -> None:
        super().__init__()
        self.base, self.scaling = base, scaling

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
        first_rotations = _first_rotations if type(k) is Tensor else _first_rotations.__wrapped__
        rotations = first_rotations(kept, k.size(-1), self.base, self.scaling, k.dtype, k.device)
        return _rotated(q, rotations[start:end]), _rotated(k, rotations[start:end]), None

    def extra_repr(self) -> str:
        """Return the settings that ``print(model)`` shows."""
        return f"base={self.base:g}" + ("" if self.scaling is None else f", scaling={self.scaling}")


def check_same_positions(q: Tensor, k: Tensor) -> None:
    """Check that queries and keys (batch, heads, position, d_head) are those of the same positions.

    Raises:
        ValueError: If they differ in number.
    """
    if q.size(2) != k.size(2):
        raise ValueError(
            f"relative positions need queries and keys of the same positions, got {q.size(2)} queries and "
            f"{k.size(2)} keys: use them in self-attention only"
        )
