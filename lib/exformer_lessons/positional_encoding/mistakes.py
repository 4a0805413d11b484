"""Known mistakes, each with its hint: rotary positions and ALiBi."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from exformer.nn.positions.alibi import alibi_slopes
from exformer_lessons.exercises.grading import Mistake

Mistakes = dict[str, Mistake]
DEGREES = math.pi / 180


def woven(first: Tensor, second: Tensor) -> Tensor:
    """Put two tables together, column by column in turn."""
    return torch.stack((first, second), dim=-1).flatten(start_dim=-2)


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
    """Return 2^(-rate · h), h counted from ``first``; the right rate is 8 over the number of heads."""
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
    "Your exponents are rounded down to integers, 8 // H: divide, 8 / H.": (
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
