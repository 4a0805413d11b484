"""The ends of marks between shapes, known once the shapes have their positions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from exformer_lessons.diagrams.lettering import Number
from exformer_lessons.diagrams.pen import Box, Pen, Point
from exformer_lessons.diagrams.shapes import Anchor, Shape

Places = Mapping[Shape, Box]
End = Shape | Anchor
#: A step along the page: to the right, down, or (0, 0) for none.
Direction = tuple[int, int]


@dataclass(frozen=True)
class Mark:
    """A mark drawn between shapes once their positions are known."""

    ink: Callable[[Pen, Places], None]


def box_of(shape: Shape, places: Places) -> Box:
    """Return where a shape is.

    Raises:
        ValueError: If it is not in the picture.
    """
    if shape not in places:
        raise ValueError("an arrow's end is not in the picture: put that shape into a row or a column of it")
    return places[shape]


def point_of(anchor: Anchor, places: Places) -> tuple[Point, Direction]:
    """Return where an anchor is, and the direction out of its shape there, (0, 0) inside."""
    b = box_of(anchor.shape, places)
    point = (
        b.x0 + anchor.across * (b.x1 - b.x0) + anchor.shift[0],
        b.y0 + anchor.down * (b.y1 - b.y0) + anchor.shift[1],
    )
    if anchor.down in (0, 1) and anchor.across not in (0, 1):
        return point, (0, 1 if anchor.down else -1)
    if anchor.across in (0, 1):
        return point, (1 if anchor.across else -1, 0)
    return point, (0, 0)


def ends_of(start: End, end: End, places: Places) -> tuple[tuple[Point, Direction], tuple[Point, Direction]]:
    """Return both ends with their directions out; a whole shape gives the side that faces the other."""
    a, b = (
        box_of(each, places) if isinstance(each, Shape) else Box(*2 * point_of(each, places)[0])
        for each in (start, end)
    )
    return (
        _facing(a, b) if isinstance(start, Shape) else point_of(start, places),
        _facing(b, a) if isinstance(end, Shape) else point_of(end, places),
    )


def _facing(own: Box, other: Box) -> tuple[Point, Direction]:
    """Return the place where a box faces another: on straight lines wherever both have a common strip."""
    gap_x = max(other.x0 - own.x1, own.x0 - other.x1)
    gap_y = max(other.y0 - own.y1, own.y0 - other.y1)
    if gap_y >= gap_x:
        x = _common(own.x0, own.x1, other.x0, other.x1)
        below = other.y0 + other.y1 > own.y0 + own.y1
        return (x, own.y1 if below else own.y0), (0, 1 if below else -1)
    y = _common(own.y0, own.y1, other.y0, other.y1)
    right = other.x0 + other.x1 > own.x0 + own.x1
    return (own.x1 if right else own.x0, y), (1 if right else -1, 0)


def _common(a0: Number, a1: Number, b0: Number, b1: Number) -> Number:
    """Return the middle of the smaller interval if it is within the other, else that of the first."""
    small = (b0 + b1) / 2 if b1 - b0 < a1 - a0 else (a0 + a1) / 2
    return small if max(a0, b0) <= small <= min(a1, b1) else (a0 + a1) / 2
