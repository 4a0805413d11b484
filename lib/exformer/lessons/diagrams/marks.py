"""What joins the pieces of a diagram: arrows, weighted links between words, braces."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from exformer.lessons.diagrams.lettering import SMALL, Number, short
from exformer.lessons.diagrams.pen import Box, Pen, Point
from exformer.lessons.diagrams.shapes import Anchor, Shape
from exformer.lessons.diagrams.theme import role_named

Places = Mapping[Shape, Box]
End = Shape | Anchor
SIDES = {"top": (0, -1), "bottom": (0, 1), "left": (-1, 0), "right": (1, 0)}
ROUTES = ("straight", "elbow", "curve")


@dataclass(frozen=True)
class Mark:
    """Something drawn between shapes once their places are known."""

    ink: Callable[[Pen, Places], None]


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
        >>> from exformer.lessons.diagrams import arrow, box, draw, row
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
        (p, out), (q, into) = _ends(start, end, places)
        size = 6.0 + 1.3 * thick
        points, steps, heading = _ROUTES[route](p, out, q, into, float(reach), 0.7 * size * head)
        dash = "5 3" if dashed else None
        pen.path(points, steps=steps, role=role, width=thick, dash=dash, opacity=opacity)
        if head:
            pen.head(q, heading, role=role, size=size, opacity=opacity)
        if label:
            _write(pen, label, points, float(along), side)

    return Mark(ink)


def _box(shape: Shape, places: Places) -> Box:
    if shape not in places:
        raise ValueError("an arrow's end is not in the picture: put that shape into a row or a column of it")
    return places[shape]


def _point(anchor: Anchor, places: Places) -> tuple[Point, tuple[int, int]]:
    """Return where an anchor is, and the direction out of its shape there, (0, 0) inside."""
    b = _box(anchor.shape, places)
    point = (
        b.x0 + anchor.across * (b.x1 - b.x0) + anchor.shift[0],
        b.y0 + anchor.down * (b.y1 - b.y0) + anchor.shift[1],
    )
    if anchor.down in (0, 1) and anchor.across not in (0, 1):
        return point, (0, 1 if anchor.down else -1)
    if anchor.across in (0, 1):
        return point, (1 if anchor.across else -1, 0)
    return point, (0, 0)


def _ends(
    start: End, end: End, places: Places
) -> tuple[tuple[Point, tuple[int, int]], tuple[Point, tuple[int, int]]]:
    """Return both ends with their directions out; a whole shape gives the side that faces the other."""
    boxes = [
        _box(each, places) if isinstance(each, Shape) else _around(_point(each, places)[0])
        for each in (start, end)
    ]
    found = []
    for each, own, other in ((start, boxes[0], boxes[1]), (end, boxes[1], boxes[0])):
        found.append(_facing(own, other) if isinstance(each, Shape) else _point(each, places))
    return found[0], found[1]


def _around(point: Point) -> Box:
    return Box(*point, *point)


def _facing(own: Box, other: Box) -> tuple[Point, tuple[int, int]]:
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


def _straight(
    p: Point, out: tuple[int, int], q: Point, into: tuple[int, int], reach: Number, head: Number
) -> tuple[list[Point], str, Number]:
    heading = math.atan2(q[1] - p[1], q[0] - p[0])
    return [p, (q[0] - head * math.cos(heading), q[1] - head * math.sin(heading))], "", heading


def _curve(
    p: Point, out: tuple[int, int], q: Point, into: tuple[int, int], reach: Number, head: Number
) -> tuple[list[Point], str, Number]:
    pull = max(reach, 0.45 * math.dist(p, q))
    a = (p[0] + pull * out[0], p[1] + pull * out[1])
    stop = (q[0] + head * into[0], q[1] + head * into[1])
    b = (stop[0] + pull * into[0], stop[1] + pull * into[1])
    words = [f"{short(x)} {short(y)}" for x, y in (p, a, b, stop)]
    curve = [_bezier(p, a, b, stop, n / 16) for n in range(17)]
    heading = math.atan2(-into[1], -into[0]) if into != (0, 0) else math.atan2(q[1] - b[1], q[0] - b[0])
    return curve, f"M{words[0]}C{words[1]} {words[2]} {words[3]}", heading


def _bezier(p: Point, a: Point, b: Point, q: Point, t: Number) -> Point:
    u = 1 - t
    x, y = (u**3 * p[i] + 3 * u * u * t * a[i] + 3 * u * t * t * b[i] + t**3 * q[i] for i in (0, 1))
    return x, y


def _elbow(
    p: Point, out: tuple[int, int], q: Point, into: tuple[int, int], reach: Number, head: Number
) -> tuple[list[Point], str, Number]:
    """Go along the directions of the page, with rounded corners: one turn, or two."""
    across = abs(out[0] or (not any(out) and not into[0]))  # the first stretch is horizontal
    last_across = abs(into[0] or (not any(into) and not across))
    if across != last_across:
        corners = [(q[0], p[1])] if across else [(p[0], q[1])]
    elif across:
        same = out[0] == into[0]
        x = (
            (max(p[0], q[0]) + reach if out[0] > 0 else min(p[0], q[0]) - reach)
            if same
            else (p[0] + q[0]) / 2
        )
        corners = [(x, p[1]), (x, q[1])]
    else:
        same = out[1] == into[1]
        y = (
            (max(p[1], q[1]) + reach if out[1] > 0 else min(p[1], q[1]) - reach)
            if same
            else (p[1] + q[1]) / 2
        )
        corners = [(p[0], y), (q[0], y)]
    heading = math.atan2(q[1] - corners[-1][1], q[0] - corners[-1][0])
    stop = (q[0] - head * math.cos(heading), q[1] - head * math.sin(heading))
    points = [p, *corners, stop]
    return points, _rounded(points), heading


def _rounded(points: Sequence[Point], radius: Number = 7.0) -> str:
    steps = f"M{short(points[0][0])} {short(points[0][1])}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        a, b = (_toward(corner, other, radius) for other in (before, after))
        steps += (
            f"L{short(a[0])} {short(a[1])}Q{short(corner[0])} {short(corner[1])} {short(b[0])} {short(b[1])}"
        )
    return steps + f"L{short(points[-1][0])} {short(points[-1][1])}"


def _toward(corner: Point, other: Point, radius: Number) -> Point:
    distance = math.dist(corner, other) or 1.0
    part = min(radius, distance / 2) / distance
    return corner[0] + part * (other[0] - corner[0]), corner[1] + part * (other[1] - corner[1])


_ROUTES = {"straight": _straight, "elbow": _elbow, "curve": _curve}


def _write(pen: Pen, label: str, points: Sequence[Point], along: Number, side: str) -> None:
    """Write a label beside a line, at a part of its length."""
    (x, y), heading = _walk(points, along)
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


def _walk(points: Sequence[Point], part: Number) -> tuple[Point, Number]:
    """Return the point at a part of a line's length, and the line's heading there."""
    pieces = list(pairwise(points))
    rest = part * sum(math.dist(a, b) for a, b in pieces)
    for a, b in pieces:
        length = math.dist(a, b)
        if rest <= length and length:
            t = rest / length
            return (a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])), math.atan2(b[1] - a[1], b[0] - a[0])
        rest -= length
    return points[-1], 0.0


def links(
    queries: Shape,
    keys: Shape,
    weights: object,
    *,
    role: str = "high",
    least: Number = 0.05,
    side: str = "",
) -> list[Mark]:
    """Draw the weights between two rows of tokens as lines, or within one row as arcs: the thicker the more.

    Args:
        queries: A row of tokens, whose words attend.
        keys: A row of tokens, to which they attend; the same row for self-attention.
        weights: Numbers (query, key) from 0 to 1.
        role: Whose color the lines have.
        least: Weights below it are not drawn.
        side: Of arcs within one row: ``"above"`` (without it) or ``"below"``.

    Raises:
        ValueError: If there is not one weight for each pair of tokens, or one is not between 0 and 1.

    Examples:
        >>> from exformer.lessons.diagrams import column, draw, links, tokens
        >>> italian, english = tokens(["il", "gatto"]), tokens(["the", "cat"])
        >>> lines = links(italian, english, [[0.9, 0.1], [0.2, 0.8]])
        >>> draw(column(english, italian, gap=60), lines).svg.count("<path")
        4
    """
    found: Any = weights.tolist() if hasattr(weights, "tolist") else weights
    n, m = len(queries.parts), len(keys.parts)
    if len(found) != n or any(len(each) != m for each in found):
        sizes = " or ".join(str(size) for size in sorted({len(each) for each in found}))
        raise ValueError(f"expected weights of {n} × {m} tokens, got {len(found)} × {sizes}")
    wrong = next((w for each in found for w in each if not -1e-6 <= w <= 1 + 1e-6), None)
    if wrong is not None:
        raise ValueError(f"weights must be between 0 and 1, got {wrong}")
    if side not in ("", "above", "below"):
        raise ValueError(f"side must be 'above' or 'below', got {side!r}")
    role_named(role)
    drawn = sorted((w, i, j) for i, each in enumerate(found) for j, w in enumerate(each) if w >= least)
    return [
        _link(queries[i], keys[j], min(1.0, max(0.0, w)), role, arc=queries is keys, below=side == "below")
        for w, i, j in drawn
    ]


def _link(query: Shape, key: Shape, weight: Number, role: str, *, arc: bool, below: bool) -> Mark:
    def ink(pen: Pen, places: Places) -> None:
        a, b = _box(query, places), _box(key, places)
        middle_a, middle_b = (a.x0 + a.x1) / 2, (b.x0 + b.x1) / 2
        if arc:
            edge, way = (a.y1, 1) if below else (a.y0, -1)
            far = abs(middle_b - middle_a)
            rise = way * (14 + 0.34 * far)
            aside = 9.0 if far == 0 else 0.0
            p, q = (middle_a - aside, edge), (middle_b + aside, edge)
            c, d = (p[0], edge + rise * 1.2), (q[0], edge + rise * 1.2)
        else:
            down = b.y0 > a.y0
            p, q = (middle_a, a.y1 if down else a.y0), (middle_b, b.y0 if down else b.y1)
            c, d = (p[0], 0.55 * p[1] + 0.45 * q[1]), (q[0], 0.45 * p[1] + 0.55 * q[1])
        words = [f"{short(x)} {short(y)}" for x, y in (p, c, d, q)]
        points = [_bezier(p, c, d, q, n / 16) for n in range(17)]
        steps = f"M{words[0]}C{words[1]} {words[2]} {words[3]}"
        opacity = 0.3 + 0.7 * weight
        pen.path(points, steps=steps, role=role, width=0.6 + 5.0 * weight, opacity=opacity)

    return Mark(ink)


def brace(
    first: Shape, last: Shape, label: str, *, side: str = "below", gap: Number = 5, role: str = ""
) -> Mark:
    """Draw a brace along several shapes, with words at its middle.

    Args:
        first: The first of the shapes.
        last: The last of them.
        label: The words.
        side: Of the shapes: ``"above"``, ``"below"``, ``"left"`` or ``"right"``.
        gap: Between the shapes and the brace.
        role: Whose color it has; without it ink.

    Raises:
        ValueError: If side or role are unknown.

    Examples:
        >>> from exformer.lessons.diagrams import brace, draw, tokens
        >>> words = tokens(["the", "cat", "sleeps"])
        >>> "subject" in draw(words, brace(words[0], words[1], "subject")).svg
        True
    """
    sides = {"above": "top", "below": "bottom", "left": "left", "right": "right"}
    if side not in sides:
        raise ValueError(f"side must be one of {', '.join(sides)}, got {side!r}")
    if role:
        role_named(role)
    out = SIDES[sides[side]]

    def ink(pen: Pen, places: Places) -> None:
        a, b = _box(first, places), _box(last, places)
        whole = Box(min(a.x0, b.x0), min(a.y0, b.y0), max(a.x1, b.x1), max(a.y1, b.y1))
        if out[1]:
            edge = (whole.y1 if out[1] > 0 else whole.y0) + gap * out[1]
            ends, tip = [(whole.x0 + 1, edge), (whole.x1 - 1, edge)], 5.0 * out[1]
            corners = [(x, edge + tip) for x, _ in ends]
            pen.path(
                [ends[0], *corners, ends[1]], steps=_rounded([ends[0], *corners, ends[1]], 4.0), role=role
            )
            pen.text((whole.x0 + whole.x1) / 2, edge + tip + 10 * out[1], label, size=SMALL)
            return
        edge = (whole.x1 if out[0] > 0 else whole.x0) + gap * out[0]
        ends, tip = [(edge, whole.y0 + 1), (edge, whole.y1 - 1)], 5.0 * out[0]
        corners = [(edge + tip, y) for _, y in ends]
        pen.path([ends[0], *corners, ends[1]], steps=_rounded([ends[0], *corners, ends[1]], 4.0), role=role)
        anchor = "start" if out[0] > 0 else "end"
        pen.text(edge + tip + 5 * out[0], (whole.y0 + whole.y1) / 2, label, size=SMALL, anchor=anchor)

    return Mark(ink)
