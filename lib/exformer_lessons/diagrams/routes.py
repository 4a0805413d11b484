"""How a line goes from one place to another: straight, around corners, or in a bend."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from exformer_lessons.diagrams.lettering import Number, short
from exformer_lessons.diagrams.marks import Direction
from exformer_lessons.diagrams.pen import Point


class Route(NamedTuple):
    """The points of a line, its commands (none where it is straight), its heading at the end, clockwise."""

    points: list[Point]
    steps: str
    heading: Number


def _straight(p: Point, out: Direction, q: Point, into: Direction, reach: Number, head: Number) -> Route:
    """Go straight, whatever the directions."""
    heading = math.atan2(q[1] - p[1], q[0] - p[0])
    return Route([p, (q[0] - head * math.cos(heading), q[1] - head * math.sin(heading))], "", heading)


def _curve(p: Point, out: Direction, q: Point, into: Direction, reach: Number, head: Number) -> Route:
    """Leave and arrive at right angles to the edges, in one bend."""
    pull = max(reach, 0.45 * math.dist(p, q))
    a = (p[0] + pull * out[0], p[1] + pull * out[1])
    stop = (q[0] + head * into[0], q[1] + head * into[1])
    b = (stop[0] + pull * into[0], stop[1] + pull * into[1])
    words = [f"{short(x)} {short(y)}" for x, y in (p, a, b, stop)]
    curve = [bezier(p, a, b, stop, n / 16) for n in range(17)]
    heading = math.atan2(-into[1], -into[0]) if into != (0, 0) else math.atan2(q[1] - b[1], q[0] - b[0])
    return Route(curve, f"M{words[0]}C{words[1]} {words[2]} {words[3]}", heading)


def bezier(p: Point, a: Point, b: Point, q: Point, t: Number) -> Point:
    """Return the point at a part t of a cubic curve."""
    u = 1 - t
    x, y = (u**3 * p[i] + 3 * u * u * t * a[i] + 3 * u * t * t * b[i] + t**3 * q[i] for i in (0, 1))
    return x, y


def _elbow(p: Point, out: Direction, q: Point, into: Direction, reach: Number, head: Number) -> Route:
    """Go along the directions of the page, with rounded corners: one turn, or two."""
    across = abs(out[0] or (not any(out) and not into[0]))  # the first stretch is horizontal
    last_across = abs(into[0] or (not any(into) and not across))
    if across != last_across:
        corners = [(q[0], p[1])] if across else [(p[0], q[1])]
    else:
        axis = 0 if across else 1
        turn = (p[axis] + q[axis]) / 2  # midway, or beyond both if it leaves and arrives on the same side
        if out[axis] == into[axis]:
            turn = max(p[axis], q[axis]) + reach if out[axis] > 0 else min(p[axis], q[axis]) - reach
        corners = [(turn, p[1]), (turn, q[1])] if across else [(p[0], turn), (q[0], turn)]
    heading = math.atan2(q[1] - corners[-1][1], q[0] - corners[-1][0])
    stop = (q[0] - head * math.cos(heading), q[1] - head * math.sin(heading))
    points = [p, *corners, stop]
    return Route(points, rounded(points), heading)


def rounded(points: Sequence[Point], radius: Number = 7.0) -> str:
    """Return the commands of a line whose corners are rounded."""
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


def walk(points: Sequence[Point], part: Number) -> tuple[Point, Number]:
    """Return the point at a part of a line's length, and the line's heading there."""
    pieces = list(pairwise(points))
    rest = part * sum(math.dist(a, b) for a, b in pieces)
    heading = 0.0
    for a, b in pieces:
        length = math.dist(a, b)
        if not length:
            continue
        heading = math.atan2(b[1] - a[1], b[0] - a[0])
        if rest <= length:
            t = rest / length
            return (a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])), heading
        rest -= length
    return points[-1], heading  # at the very end rounding may leave a rest


#: Each goes from p to q, where the directions out of the shapes are known, and stops before the head;
#: reach is how far it goes out where it turns back.
ROUTES = {"straight": _straight, "elbow": _elbow, "curve": _curve}
