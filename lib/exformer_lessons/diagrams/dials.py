"""Angles as pictures: the hand of a clock, and vectors about one origin with the angle between them."""

import math
from collections.abc import Sequence

from exformer_lessons.diagrams.lettering import SIZE, SMALL, Number, short, text_width
from exformer_lessons.diagrams.pen import Pen
from exformer_lessons.diagrams.shapes import Shape
from exformer_lessons.diagrams.theme import role_named


def clock(angle: Number, *, radius: Number = 20) -> Shape:
    """Make a clock whose hand has turned by an angle from the top, clockwise.

    The tip of the hand is at (sin, cos) of the angle: one pair of entries of the sinusoidal encoding.

    Args:
        angle: In radians; more than a whole turn is shown as what remains of it.
        radius: Of the clock.

    Raises:
        ValueError: If the angle is not finite.

    Examples:
        >>> from exformer_lessons.diagrams import clock, draw, row
        >>> slow = row(*[clock(n / 10) for n in range(4)])
        >>> draw(slow).svg.count("<circle")
        4
    """
    if not math.isfinite(angle):
        raise ValueError(f"expected an angle in radians, got {angle}")

    def ink(pen: Pen, x: Number, y: Number) -> None:
        middle = (x + radius, y + radius)
        _face(pen, middle, radius, ticks=12 if radius >= 16 else 4)
        remains = angle % math.tau
        if remains > 0.02:
            _sector(pen, middle, radius * 0.62, remains)
        _hand(pen, middle, radius * 0.86, angle - math.pi / 2)

    return Shape(2 * radius, 2 * radius, ink)


def _face(pen: Pen, middle: tuple[Number, Number], radius: Number, *, ticks: int) -> None:
    x, y = middle
    pen.circle(x, y, radius, role="plain", layer="frames")
    ends = []
    for n in range(ticks):
        inner = radius - (4 if n % (ticks // 4) == 0 else 2.5)
        turn = math.tau * n / ticks
        ends += [(x + r * math.sin(turn), y - r * math.cos(turn)) for r in (inner, radius - 0.5)]
    words = [f"{short(x)} {short(y)}" for x, y in ends]
    steps = "".join(f"M{a}L{b}" for a, b in zip(words[::2], words[1::2], strict=True))
    pen.path(ends, steps=steps, role="plain", width=1.0)


def _sector(pen: Pen, middle: tuple[Number, Number], radius: Number, turn: Number) -> None:
    """Fill what a hand has passed since the top."""
    x, y = middle
    end = (x + radius * math.sin(turn), y - radius * math.cos(turn))
    big = int(turn > math.pi)
    r = short(radius)
    steps = f"M{short(x)} {short(y)}V{short(y - radius)}A{r} {r} 0 {big} 1 {short(end[0])} {short(end[1])}Z"
    pen.path([middle, end], steps=steps, role="plain", filled=True, opacity=0.22)


def _hand(pen: Pen, start: tuple[Number, Number], length: Number, heading: Number, *, role: str = "") -> None:
    """Draw an arrow of a length; the heading is in radians, clockwise from the right."""
    cos, sin = math.cos(heading), math.sin(heading)
    size = min(8.0, max(5.0, 0.3 * length))
    tip = (start[0] + length * cos, start[1] + length * sin)
    back = (tip[0] - 0.7 * size * cos, tip[1] - 0.7 * size * sin)
    pen.path([start, back], role=role, width=2.0)
    pen.head(tip, heading, role=role, size=size)


def vectors(
    hands: Sequence[tuple[str, Number, str]],
    *,
    between: str = "",
    radius: Number = 56,
) -> Shape:
    """Make vectors that start in one point, each with its name at its tip.

    Args:
        hands: Name, angle and role of each; the angle in radians, 0 to the right, counterclockwise.
        between: What the angle between the first two is; drawn as an arc with these words.
        radius: Of the circle, and the length of the vectors.

    Raises:
        ValueError: If there is no vector, or an angle is not finite or between fewer than two.

    Examples:
        >>> from exformer_lessons.diagrams import draw, vectors
        >>> turned = vectors([("*q*", 0.4, "query"), ("*k*", 1.1, "key")], between="40°")
        >>> draw(turned).svg.count("40°")
        2
    """
    if not hands or not all(math.isfinite(angle) for _, angle, _ in hands):
        raise ValueError(f"expected (name, angle in radians, role) of at least one vector, got {hands}")
    if between and len(hands) < 2:
        raise ValueError("an angle is between two vectors: give two")
    names = [_tip(name, angle, radius) for name, angle, _ in hands]
    half_width = max([radius, *(abs(x) + wide / 2 for x, _, wide in names)])
    half_height = radius + 5 + 0.72 * SIZE

    def ink(pen: Pen, x: Number, y: Number) -> None:
        middle = (x + half_width, y + half_height)
        _face(pen, middle, radius, ticks=4)
        for (name, angle, role), (dx, dy, _) in zip(hands, names, strict=True):
            _hand(pen, middle, radius, -angle, role=role_named(role))
            pen.text(middle[0] + dx, middle[1] + dy, name, size=SIZE)
        if between:
            _angle(pen, middle, hands[0][1], hands[1][1], between, radius=radius * 0.42)

    return Shape(2 * half_width, 2 * half_height, ink)


def _tip(name: str, angle: Number, length: Number) -> tuple[Number, Number, Number]:
    """Return where a name goes beyond the tip of a vector, counted from its origin, and how wide it is."""
    wide = text_width(name, size=SIZE)
    gone = length + 5 + 0.5 * (abs(math.cos(angle)) * wide + abs(math.sin(angle)) * 0.72 * SIZE)
    return gone * math.cos(angle), -gone * math.sin(angle), wide


def _angle(
    pen: Pen, middle: tuple[Number, Number], first: Number, second: Number, words: str, *, radius: Number
) -> None:
    """Draw the arc of the lesser angle between two headings, and write what it is."""
    turn = (second - first + math.pi) % math.tau - math.pi
    steps = max(2, int(abs(turn) * 12))
    arc = [
        (
            middle[0] + radius * math.cos(first + turn * n / steps),
            middle[1] - radius * math.sin(first + turn * n / steps),
        )
        for n in range(steps + 1)
    ]
    pen.path(arc, width=1.2, dash="")
    half = first + turn / 2
    gone = (
        radius + 5 + 0.5 * (abs(math.cos(half)) * text_width(words, size=SMALL) + abs(math.sin(half)) * SMALL)
    )
    pen.text(
        middle[0] + gone * math.cos(half), middle[1] - gone * math.sin(half), words, size=SMALL, halo=True
    )
