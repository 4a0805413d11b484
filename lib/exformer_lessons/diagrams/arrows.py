"""Arrows between shapes, with words beside them."""

import math
from collections.abc import Sequence

from exformer_lessons.diagrams.lettering import SMALL, Number
from exformer_lessons.diagrams.marks import End, Mark, Places, ends_of
from exformer_lessons.diagrams.pen import Pen, Point
from exformer_lessons.diagrams.routes import ROUTES, walk
from exformer_lessons.diagrams.theme import role_named


def arrow(
    start: End,
    end: End,
    *,
    label: str = "",
    role: str = "",
    route: str = "straight",
    weight: Number | None = None,
    width: Number = 1.5,
    dashed: bool = False,
    head: bool = True,
    reach: Number = 16,
    side: str = "",
    along: Number = 0.5,
) -> Mark:
    """Draw an arrow from a shape to another.

    Args:
        start: A shape, whose nearest side is taken, or a place on it such as ``h.right``.
        end: A shape or a place.
        label: Words beside the arrow.
        role: Whose color and dashes it has; without it ink.
        route: ``"straight"``; ``"elbow"``, along the directions of the page; ``"curve"``.
        weight: From 0 to 1: the thickness, in place of the width.
        width: Of the line.
        dashed: Whether the line is, whatever its role.
        head: Whether it has a head.
        reach: How far an elbow goes out of its shape where it goes around something.
        side: On which side of the arrow its label is: ``"left"``, ``"right"``, ``"above"`` or ``"below"``.
        along: Which part of the way the label is beside.

    Raises:
        ValueError: If role, route, weight or side are unknown; when drawn, if a shape is not in the picture.

    Examples:
        >>> from exformer_lessons.diagrams import arrow, box, draw, row
        >>> one, two = box("*h*_{1}"), box("*h*_{2}")
        >>> draw(row(one, two, gap=50), arrow(one, two, label="*W*")).svg.count("<path")
        2
    """
    if role:
        role_named(role)
    if route not in ROUTES:
        raise ValueError(f"route must be one of {', '.join(ROUTES)}, got {route!r}")
    if weight is not None and not 0 <= weight <= 1:
        raise ValueError(f"weight must be between 0 and 1, got {weight}")
    if side not in ("", "left", "right", "above", "below"):
        raise ValueError(f"side must be 'left', 'right', 'above' or 'below', got {side!r}")
    thick = float(width) if weight is None else 0.7 + 4.3 * weight
    opacity = 1.0 if weight is None else 0.35 + 0.65 * weight

    def ink(pen: Pen, places: Places) -> None:
        (p, out), (q, into) = ends_of(start, end, places)
        size = 6.0 + 1.3 * thick
        points, steps, heading = ROUTES[route](p, out, q, into, float(reach), 0.7 * size * head)
        dash = "5 3" if dashed else None
        pen.path(points, steps=steps, role=role, width=thick, dash=dash, opacity=opacity)
        if head:
            pen.head(q, heading, role=role, size=size, opacity=opacity)
        if label:
            _write(pen, label, points, float(along), side)

    return Mark(ink)


def _write(pen: Pen, label: str, points: Sequence[Point], along: Number, side: str) -> None:
    """Write a label beside a line, at a part of its length."""
    (x, y), heading = walk(points, along)
    level = abs(math.cos(heading)) > abs(math.sin(heading))
    side = side or ("above" if level else "right")
    gap = 5.0
    if side in ("above", "below"):
        pen.text(x, y + (-1 if side == "above" else 1) * (gap + 0.5 * SMALL), label, size=SMALL, halo=True)
    else:
        right = side == "right"
        pen.text(
            x + gap * (1 if right else -1),
            y,
            label,
            size=SMALL,
            anchor="start" if right else "end",
            halo=True,
        )
