"""Known mistakes, each with its hint: sinusoidal code and its shift, rotary positions, ALiBi, T5's bias."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from exformer.nn.positions.alibi import alibi_slopes
from exformer_lessons.exercises.grading import Mistake

Mistakes = dict[str, Mistake]
DEGREES = math.pi / 180


def angles(
    n: int, d_model: int, *, start: int = 0, pair: int = 0, power: float = -2.0, unit: float = 1.0
) -> Tensor:
    """Give the angle of each pair; ``pair`` and ``start`` are where pairs and positions begin."""
    i = torch.arange(d_model // 2, dtype=torch.float64) + pair
    position = torch.arange(n, dtype=torch.float64) + start
    return position[:, None] * 10_000.0 ** (power * i / d_model) * unit


def waves(n: int, d_model: int, **how: Any) -> tuple[Tensor, Tensor]:
    """Give the sines and cosines of each pair; arguments as for :func:`angles`."""
    angle = angles(n, d_model, **how)
    return angle.sin(), angle.cos()


def woven(first: Tensor, second: Tensor) -> Tensor:
    """Put two tables together, column by column in turn."""
    return torch.stack((first, second), dim=-1).flatten(start_dim=-2)


def own_frequencies(n: int, d_model: int, *, power: float = -1.0) -> Tensor:
    """Give each column a frequency of its own, so that no sine has its cosine."""
    column = torch.arange(d_model, dtype=torch.float64)
    angle = torch.arange(n)[:, None] * 10_000.0 ** (power * column / d_model)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


def closed_range(n: int, d_model: int) -> Tensor:
    """Let the last frequency be exactly 1/10000, as some well-known code does."""
    i = torch.arange(d_model // 2, dtype=torch.float64)
    angle = torch.arange(n)[:, None] * 10_000.0 ** (-i / (d_model / 2 - 1))
    return woven(angle.sin(), angle.cos())


#: Arguments: number of positions, width.
ENCODING: Mistakes = {
    "All your sines come first, then all cosines: a sine and its cosine are neighbors here.": (
        lambda n, d: torch.cat(waves(n, d), dim=-1)
    ),
    "Even columns are sines and odd ones cosines; yours are the other way round.": (
        lambda n, d: woven(*reversed(waves(n, d)))
    ),
    "Your pairs are counted from 1: the first one has i = 0 and the frequency 1.": (
        lambda n, d: woven(*waves(n, d, pair=1))
    ),
    "Your positions are counted from 1: row 0 is sin 0 = 0, cos 0 = 1.": (
        lambda n, d: woven(*waves(n, d, start=1))
    ),
    "Your exponent is i/d, and i counts pairs: it is 2i/d, or your frequencies stop at 1/100.": (
        lambda n, d: woven(*waves(n, d, power=-1.0))
    ),
    "Each of your columns has a frequency of its own: a sine and its cosine share one.": own_frequencies,
    "Your last frequency is exactly 1/10000: divide 2i by d, not by d - 2.": closed_range,
    "Your frequencies rise: the position is divided by 10000^(2i/d), not multiplied.": (
        lambda n, d: woven(*waves(n, d, power=2.0))
    ),
    "Your angles are read as degrees: sine and cosine take radians.": (
        lambda n, d: woven(*waves(n, d, unit=DEGREES))
    ),
    "You have sines only: odd columns are cosines.": lambda n, d: woven(waves(n, d)[0], waves(n, d)[0]),
    "You have cosines only: even columns are sines.": lambda n, d: woven(waves(n, d)[1], waves(n, d)[1]),
    "Your exponent is 2j/d, and j counts columns: i counts pairs, so columns 2i and 2i + 1 share 2i/d.": (
        lambda n, d: own_frequencies(n, d, power=-2.0),
        lambda n, d: woven(*waves(n, d, power=-4.0)),
    ),
    "Your angles are 2π times too large: position 1 of the first pair is sin 1, cos 1.": (
        lambda n, d: woven(*waves(n, d, unit=2 * math.pi))
    ),
    "All your pairs have the same frequency: the position is divided by 10000^(2i/d).": (
        lambda n, d: woven(*waves(n, d, power=0.0))
    ),
    "Your table holds the angles: take their sines and cosines.": (
        lambda n, d: woven(angles(n, d), angles(n, d))
    ),
}


def rotated(
    x: Tensor, positions: Tensor, *, power: float = -2.0, pair: int = 0, unit: float = 1.0, signs: str = "-+"
) -> Tensor:
    """Rotate each pair of columns by position times base^(power · i / d), i counted from ``pair``."""
    d = x.size(-1)
    i = torch.arange(d // 2, dtype=torch.float64) + pair
    angle = positions[:, None].to(torch.float64) * 10_000.0 ** (power * i / d) * unit
    first, second = (-1 if sign == "-" else 1 for sign in signs)
    a, b = x[:, 0::2].to(torch.float64), x[:, 1::2].to(torch.float64)
    return woven(a * angle.cos() + first * b * angle.sin(), second * a * angle.sin() + b * angle.cos())


def in_halves(x: Tensor, positions: Tensor) -> Tensor:
    """Rotate column i with column i + d/2, not with its neighbor."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat(
        (rotated(woven(a, b), positions)[:, 0::2], rotated(woven(a, b), positions)[:, 1::2]), dim=-1
    )


def added(x: Tensor, positions: Tensor) -> Tensor:
    """Add the code of the position, as the transformer of 2017 does."""
    zero_one = torch.tensor([0.0, 1.0]).repeat(len(x), x.size(-1) // 2)
    return x + rotated(zero_one, positions, signs="+-")


def with_crossed_angles(x: Tensor, positions: Tensor) -> Tensor:
    """Pair neighbors, and lay the angles out for halves."""
    angle = _angles(x, positions).repeat(1, 2)
    return x * angle.cos() + woven(-x[:, 1::2], x[:, 0::2]) * angle.sin()


def halves_with_crossed_angles(x: Tensor, positions: Tensor) -> Tensor:
    """Pair column i with column i + d/2, and lay the angles out for neighbors."""
    angle = _angles(x, positions).repeat_interleave(2, dim=1)
    first, second = x.chunk(2, dim=-1)
    return x * angle.cos() + torch.cat((-second, first), dim=-1) * angle.sin()


def _angles(x: Tensor, positions: Tensor) -> Tensor:
    i = torch.arange(x.size(-1) // 2, dtype=torch.float64)
    return positions[:, None] * 10_000.0 ** (-2 * i / x.size(-1))


def overwritten(x: Tensor, positions: Tensor) -> Tensor:
    """Write the first of each pair before it is read for the second."""
    first = rotated(x, positions)[:, 0::2]
    return woven(first, rotated(woven(first, x[:, 1::2]), positions)[:, 1::2])


#: Arguments: one query per row, the position of each.
ROTATE: Mistakes = {
    "You rotate the wrong way: the minus belongs to b · sin φ in the first column of a pair.": (
        lambda x, p: rotated(x, p, signs="+-")
    ),
    "Both of your sines have the same sign, so this is no rotation: it changes lengths.": (
        lambda x, p: rotated(x, p, signs="++")
    ),
    "All your pairs rotate by the position itself: pair i rotates by the position times w_i.": (
        lambda x, p: rotated(x, p, power=0.0)
    ),
    "You rotate by the number of the row: use the positions that you are given.": (
        lambda x, p: rotated(x, torch.arange(len(x)))
    ),
    "Your exponent is i/d, and i counts pairs: it is 2i/d.": lambda x, p: rotated(x, p, power=-1.0),
    "Your pairs are counted from 1: the first one has i = 0 and rotates by the position.": (
        lambda x, p: rotated(x, p, pair=1)
    ),
    "Your later pairs rotate faster: the position is divided by 10000^(2i/d), not multiplied.": (
        lambda x, p: rotated(x, p, power=2.0)
    ),
    "You rotate column i with column i + d/2: here the columns of a pair are neighbors.": in_halves,
    "Your angles are read as degrees: sine and cosine take radians.": (
        lambda x, p: rotated(x, p, unit=DEGREES)
    ),
    "Your positions are counted from 1: a query at position 0 is not rotated.": lambda x, p: rotated(
        x, p + 1
    ),
    "You add the code of the position. Rotary positions rotate the vector and keep its length.": added,
    "You write the first of a pair over the number that you still need for the second.": overwritten,
    "Your vectors have not been rotated at all.": lambda x, p: x,
    "You rotate column i with column i + d/2, by the angles of neighbors: neighbors are the pairs here.": (
        halves_with_crossed_angles
    ),
    "Your angles are laid out for halves: columns 2i and 2i + 1 share one, see repeat_interleave.": (
        with_crossed_angles
    ),
    "Your first columns all come before the second ones: put each pair back into columns 2i and 2i + 1.": (
        lambda x, p: torch.cat((rotated(x, p)[:, 0::2], rotated(x, p)[:, 1::2]), dim=-1)
    ),
    "Your exponent is 2j/d, and j counts columns: i counts pairs, 0 to d/2 - 1.": (
        lambda x, p: rotated(x, p, power=-4.0)
    ),
}


def bias(n: int, slopes: Tensor, distance: Callable[[Tensor], Tensor] = torch.abs) -> Tensor:
    """Compute minus slope times a distance, made from query position minus key position."""
    position = torch.arange(n, dtype=torch.float64)
    return -slopes.to(torch.float64)[:, None, None] * distance(position[:, None] - position)


def powers(n_heads: int, *, first: int = 1, rate: float | None = None) -> Tensor:
    """Give 2^(-rate · h), h counted from ``first``; the right rate is 8 over the number of heads."""
    heads = torch.arange(first, n_heads + first, dtype=torch.float64)
    return 2.0 ** (-(8 / n_heads if rate is None else rate) * heads)


#: Arguments: number of positions, number of heads.
ALIBI: Mistakes = {
    "Your bias grows with the distance: it is subtracted, so that far keys lose.": (
        lambda n, h: -bias(n, alibi_slopes(h))
    ),
    "Your keys after the query get a bonus: the distance is |i - j|, never negative.": (
        lambda n, h: bias(n, alibi_slopes(h), lambda x: x)
    ),
    "Your keys before the query get a bonus: the distance is |i - j|, never negative.": (
        lambda n, h: bias(n, alibi_slopes(h), lambda x: -x)
    ),
    "Your keys after the query get no bias at all: the distance is |i - j| on both sides.": (
        lambda n, h: bias(n, alibi_slopes(h), lambda x: x.clamp(min=0))
    ),
    "You hide the keys after the query. That is the work of a mask, not of the bias.": (
        lambda n, h: bias(n, alibi_slopes(h)).masked_fill(torch.ones(n, n).triu(diagonal=1).bool(), -math.inf)
    ),
    "Your heads are counted from 0: the first slope is 2^(-8/H), not 1.": (
        lambda n, h: bias(n, powers(h, first=0))
    ),
    "Your slopes are 2^(-h) for any number of heads: the exponent is -8h/H.": (
        lambda n, h: bias(n, powers(h, rate=1.0))
    ),
    "Your exponents are rounded down to whole numbers, 8 // H: divide, 8 / H.": (
        lambda n, h: bias(n, powers(h, rate=float(8 // h)))
    ),
    "Your slopes come in the wrong order: the first head has the steepest.": (
        lambda n, h: bias(n, alibi_slopes(h).flip(0))
    ),
    "All your heads have one slope: head h has 2^(-8h/H).": lambda n, h: bias(
        n, alibi_slopes(h)[:1].repeat(h)
    ),
    "You square the distance: the bias is linear.": lambda n, h: bias(n, alibi_slopes(h), torch.square),
    "Your bias has no slopes: multiply the distances of head h by 2^(-8h/H).": (
        lambda n, h: bias(n, torch.ones(h))
    ),
    "Your slopes are 1/h: head h has 2^(-8h/H).": lambda n, h: bias(n, 1 / torch.arange(1, h + 1)),
    "Your slopes are 2^(-8/h), and rise: the exponent is -8h/H.": (
        lambda n, h: bias(n, 2.0 ** (-8 / torch.arange(1, h + 1)))
    ),
    "Your slopes lack the minus in the exponent: head h has 2^(-8h/H), below 1.": (
        lambda n, h: bias(n, 1 / powers(h))
    ),
}


def shift(
    k: int, d_model: int, *, power: float = -2.0, pair: int = 0, unit: float = 1.0, signs: str = "-+"
) -> Tensor:
    """Give the matrix that shifts a row of the sinusoidal code by k; one thing may be changed."""
    i = torch.arange(d_model // 2, dtype=torch.float64) + pair
    first, second = (-1 if sign == "-" else 1 for sign in signs)
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
    for n, angle in enumerate((k * 10_000.0 ** (power * i / d_model) * unit).tolist()):
        c, s = math.cos(angle), math.sin(angle)
        matrix[2 * n : 2 * n + 2, 2 * n : 2 * n + 2] = torch.tensor([[c, first * s], [second * s, c]])
    return matrix


def shift_of_halves(k: int, d_model: int) -> Tensor:
    """Give the matrix for a code that has all its sines first."""
    order = [*range(0, d_model, 2), *range(1, d_model, 2)]
    return shift(k, d_model)[order][:, order]


#: Arguments: the number of positions, the width.
SHIFT: Mistakes = {
    "Your matrix shifts back, by -k: r_n is a row here, r_n M, so transpose it.": (
        lambda k, d: shift(k, d).mT
    ),
    "Both of your sines have the same sign, so this is no rotation: one of them is negative.": (
        lambda k, d: shift(k, d, signs="++"),
        lambda k, d: shift(k, d, signs="--"),
    ),
    "Your exponent is i/d, and i counts pairs: it is 2i/d.": lambda k, d: shift(k, d, power=-1.0),
    "Your exponent is 2j/d, and j counts columns: i counts pairs, 0 to d/2 - 1.": (
        lambda k, d: shift(k, d, power=-4.0)
    ),
    "Your pairs are counted from 1: the first one has i = 0 and the angle k.": (
        lambda k, d: shift(k, d, pair=1)
    ),
    "All your pairs rotate by the same angle: pair i rotates by k times its frequency w_i.": (
        lambda k, d: shift(k, d, power=0.0)
    ),
    "Your matrix is for a code with all its sines first: here each sine has its cosine beside it.": (
        shift_of_halves,
        lambda k, d: shift_of_halves(-k, d),
    ),
    "Your angles are 2π times too large: the first pair rotates by k radians.": (
        lambda k, d: shift(k, d, unit=2 * math.pi)
    ),
    "Your matrix shifts by one position, whatever k is: pair i rotates by k times w_i.": (
        lambda k, d: shift(1, d)
    ),
    "Right for k = 1 only: k belongs to the angle, inside sine and cosine.": (
        lambda k, d: k * shift(1, d),
        lambda k, d: shift(1, d) ** k,
    ),
}


def relative_bias(n_positions: int, table: Tensor, *, sign: int = 1) -> Tensor:
    """Look up the bias of each signed offset, key minus query."""
    most = len(table) // 2
    return table[(sign * offsets(n_positions)).clamp(-most, most) + most]


def offsets(n_positions: int) -> Tensor:
    """Give key position minus query position: (query, key)."""
    position = torch.arange(n_positions)
    return position - position[:, None]


def _unsigned(n_positions: int, table: Tensor) -> Tensor:
    return table[len(table) // 2 :][offsets(n_positions).abs().clamp(max=len(table) // 2)]


def _left_half(n_positions: int, table: Tensor) -> Tensor:
    return table[offsets(n_positions).abs().clamp(max=len(table) // 2)]


def _wrapped(n_positions: int, table: Tensor) -> Tensor:
    return table[(offsets(n_positions) + len(table) // 2) % len(table)]


def _without_middle(n_positions: int, table: Tensor) -> Tensor:
    most = len(table) // 2
    return table[offsets(n_positions).clamp(-most, most)]  # a negative index counts from the end


def _zero_beyond(n_positions: int, table: Tensor) -> Tensor:
    return relative_bias(n_positions, table) * (offsets(n_positions).abs() <= len(table) // 2)


def _one_off(by: int) -> Callable[[int, Tensor], Tensor]:
    return lambda n, table: table[(offsets(n) + len(table) // 2 + by).clamp(0, len(table) - 1)]


#: Arguments: number of positions, one number per offset.
RELATIVE_BIAS: Mistakes = {
    "Your offset is query minus key: take key minus query, so the table begins with keys before the query.": (
        lambda n, table: relative_bias(n, table, sign=-1)
    ),
    "You take the distance, so keys before and after the query share a bias: the offset has a sign.": (
        _unsigned,
        _left_half,
    ),
    "Offsets beyond the table wrap around: clip them to the largest that it has.": (
        _wrapped,
        lambda n, table: table[(offsets(n) + len(table) // 2).clamp(max=len(table) - 1)],  # on one side
    ),
    "Offset 0 is in the middle of the table: add max_distance to the clipped offset.": _without_middle,
    "You are one entry off: offset 0 has the index max_distance, (len(table) - 1) // 2.": (
        _one_off(1),
        _one_off(-1),
        lambda n, table: relative_bias(n, table[:-2]),  # max_distance is taken as one less
        lambda n, table: relative_bias(n, table.roll(1)),
    ),
    "Beyond max_distance you give 0: farther keys share the outermost number.": _zero_beyond,
}
