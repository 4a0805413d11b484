"""Known mistakes, each with its hint: sinusoidal encoding, rotary positions, ALiBi."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from exformer.nn.positions.alibi import alibi_slopes

Mistakes = dict[str, Callable[..., Tensor]]
DEGREES = math.pi / 180


def waves(
    n: int, d_model: int, *, start: int = 0, pair: int = 0, power: float = -2.0
) -> tuple[Tensor, Tensor]:
    """Give the sines and cosines of each pair; ``pair`` and ``start`` are where pairs and positions begin."""
    i = torch.arange(d_model // 2, dtype=torch.float64) + pair
    position = torch.arange(n, dtype=torch.float64) + start
    angle = position[:, None] * 10_000.0 ** (power * i / d_model)
    return angle.sin(), angle.cos()


def woven(first: Tensor, second: Tensor) -> Tensor:
    """Put two tables together, column by column in turn."""
    return torch.stack((first, second), dim=-1).flatten(start_dim=-2)


def own_frequencies(n: int, d_model: int) -> Tensor:
    """Give each column a frequency of its own, so that no sine has its cosine."""
    column = torch.arange(d_model, dtype=torch.float64)
    angle = torch.arange(n)[:, None] * 10_000.0 ** (-column / d_model)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


def closed_range(n: int, d_model: int) -> Tensor:
    """Let the last frequency be exactly 1/10000, as some well-known code does."""
    i = torch.arange(d_model // 2, dtype=torch.float64)
    angle = torch.arange(n)[:, None] * 10_000.0 ** (-i / (d_model / 2 - 1))
    return woven(angle.sin(), angle.cos())


def in_degrees(n: int, d_model: int) -> Tensor:
    """Read the angles as degrees."""
    i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = torch.arange(n)[:, None] * 10_000.0 ** (-i / d_model) * DEGREES
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
    "Your angles are read as degrees: sine and cosine take radians.": in_degrees,
    "You have sines only: odd columns are cosines.": lambda n, d: woven(waves(n, d)[0], waves(n, d)[0]),
}


def turned(
    x: Tensor, positions: Tensor, *, power: float = -2.0, pair: int = 0, unit: float = 1.0, signs: str = "-+"
) -> Tensor:
    """Turn each pair of columns by position times base^(power · i / d), i counted from ``pair``."""
    d = x.size(-1)
    i = torch.arange(d // 2, dtype=torch.float64) + pair
    angle = positions[:, None].to(torch.float64) * 10_000.0 ** (power * i / d) * unit
    first, second = (-1 if sign == "-" else 1 for sign in signs)
    a, b = x[:, 0::2].to(torch.float64), x[:, 1::2].to(torch.float64)
    return woven(a * angle.cos() + first * b * angle.sin(), second * a * angle.sin() + b * angle.cos())


def in_halves(x: Tensor, positions: Tensor) -> Tensor:
    """Turn column i with column i + d/2, not with its neighbor."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat(
        (turned(woven(a, b), positions)[:, 0::2], turned(woven(a, b), positions)[:, 1::2]), dim=-1
    )


def added(x: Tensor, positions: Tensor) -> Tensor:
    """Add the code of the position, as the transformer of 2017 does."""
    zero_one = torch.tensor([0.0, 1.0]).repeat(len(x), x.size(-1) // 2)
    return x + turned(zero_one, positions, signs="+-")


def overwritten(x: Tensor, positions: Tensor) -> Tensor:
    """Write the first of each pair before it is read for the second."""
    first = turned(x, positions)[:, 0::2]
    return woven(first, turned(woven(first, x[:, 1::2]), positions)[:, 1::2])


#: Arguments: one query per row, the position of each.
ROTATE: Mistakes = {
    "You turn the wrong way: the minus belongs to b · sin φ in the first column of a pair.": (
        lambda x, p: turned(x, p, signs="+-")
    ),
    "Both of your sines have the same sign, so this is no rotation: it changes lengths.": (
        lambda x, p: turned(x, p, signs="++")
    ),
    "All your pairs turn by the position itself: pair i turns by the position times w_i.": (
        lambda x, p: turned(x, p, power=0.0)
    ),
    "You turn by the number of the row: use the positions that you are given.": (
        lambda x, p: turned(x, torch.arange(len(x)))
    ),
    "Your exponent is i/d, and i counts pairs: it is 2i/d.": lambda x, p: turned(x, p, power=-1.0),
    "Your pairs are counted from 1: the first one has i = 0 and turns by the position.": (
        lambda x, p: turned(x, p, pair=1)
    ),
    "Your later pairs turn faster: the position is divided by 10000^(2i/d), not multiplied.": (
        lambda x, p: turned(x, p, power=2.0)
    ),
    "You turn column i with column i + d/2: here the columns of a pair are neighbors.": in_halves,
    "Your angles are read as degrees: sine and cosine take radians.": (
        lambda x, p: turned(x, p, unit=DEGREES)
    ),
    "Your positions are counted from 1: a query at position 0 is not turned.": lambda x, p: turned(x, p + 1),
    "You add the code of the position. Rotary positions turn the vector and keep its length.": added,
    "You write the first of a pair over the number that you still need for the second.": overwritten,
    "Your vectors have not been turned at all.": lambda x, p: x,
}


def bias(n: int, slopes: Tensor, distance: Callable[[Tensor], Tensor] = torch.abs) -> Tensor:
    """Compute minus slope times a distance, made from query position minus key position."""
    place = torch.arange(n, dtype=torch.float64)
    return -slopes.to(torch.float64)[:, None, None] * distance(place[:, None] - place)


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
}
