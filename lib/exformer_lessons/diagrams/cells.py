"""Cells of matrices and of tokens, whose color shows what their number or word says."""

import math
from typing import TypeGuard

from exformer_lessons.diagrams.lettering import Number
from exformer_lessons.diagrams.pen import Pen
from exformer_lessons.diagrams.shapes import Shape


def is_number(value: object) -> TypeGuard[Number]:
    """Return whether a value is a number, not a boolean or NaN."""
    return isinstance(value, float | int) and not isinstance(value, bool) and not math.isnan(value)


def part_of(value: Number, low: Number, high: Number) -> Number | None:
    """Return which part of its limit a number is, from −1 to 1; None for an infinite one."""
    if math.isinf(value):
        return None
    limit = -low if value < 0 else high
    return max(-1.0, min(1.0, value / limit if limit else 0.0))


def heat_of(part: Number | None) -> Number | None:
    """Return how strong a color is for a part of the limit: never so weak that the cell vanishes."""
    return None if part is None else 0.08 + 0.92 * abs(part)


def cell_of(
    word: str,
    *,
    role: str,
    heat: Number | None,
    width: Number,
    height: Number,
    size: Number,
    bar: Number = 0,
    floor: Number = 1,
    literal: bool = False,
) -> Shape:
    """Return a cell with a word, or with a bar as long as a part of the room above its floor."""

    def ink(pen: Pen, x: Number, y: Number) -> None:
        gap = 0.0 if heat is None else 0.5
        pen.rectangle(x + gap, y + gap, width - 2 * gap, height - 2 * gap, role=role, radius=2, heat=heat)
        pen.text(x + width / 2, y + height / 2, word, size=size, literal=literal)
        if bar:
            base = y + 1.5 + floor * (height - 3)
            tip = base - bar * floor * (height - 3)
            edges = x + width / 2 - 2, x + width / 2 + 2
            corners = [(edges[0], base), (edges[0], tip), (edges[1], tip), (edges[1], base)]
            pen.path(corners, role=role, filled=True, layer="texts")

    return Shape(width, height, ink)
