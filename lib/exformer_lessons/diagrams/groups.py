"""Groups of shapes: a brace along them, an outline around them."""

from exformer_lessons.diagrams.lettering import SMALL, Number
from exformer_lessons.diagrams.marks import Mark, Places, box_of
from exformer_lessons.diagrams.pen import Box, Pen
from exformer_lessons.diagrams.routes import rounded
from exformer_lessons.diagrams.shapes import Shape
from exformer_lessons.diagrams.theme import role_named

SIDES = {"above": (0, -1), "below": (0, 1), "left": (-1, 0), "right": (1, 0)}


def _together(first: Shape, last: Shape, places: Places) -> Box:
    """Return the box around two shapes and all between them."""
    a, b = box_of(first, places), box_of(last, places)
    return Box(min(a.x0, b.x0), min(a.y0, b.y0), max(a.x1, b.x1), max(a.y1, b.y1))


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
        >>> from exformer_lessons.diagrams import brace, draw, tokens
        >>> words = tokens(["the", "cat", "sleeps"])
        >>> "subject" in draw(words, brace(words[0], words[1], "subject")).svg
        True
    """
    if side not in SIDES:
        raise ValueError(f"side must be one of {', '.join(SIDES)}, got {side!r}")
    if role:
        role_named(role)
    out = SIDES[side]

    def ink(pen: Pen, places: Places) -> None:
        whole = _together(first, last, places)
        if out[1]:
            edge = (whole.y1 if out[1] > 0 else whole.y0) + gap * out[1]
            ends, tip = [(whole.x0 + 1, edge), (whole.x1 - 1, edge)], 5.0 * out[1]
            corners = [(x, edge + tip) for x, _ in ends]
            pen.path(
                [ends[0], *corners, ends[1]], steps=rounded([ends[0], *corners, ends[1]], 4.0), role=role
            )
            pen.text((whole.x0 + whole.x1) / 2, edge + tip + 10 * out[1], label, size=SMALL)
            return
        edge = (whole.x1 if out[0] > 0 else whole.x0) + gap * out[0]
        ends, tip = [(edge, whole.y0 + 1), (edge, whole.y1 - 1)], 5.0 * out[0]
        corners = [(edge + tip, y) for _, y in ends]
        pen.path([ends[0], *corners, ends[1]], steps=rounded([ends[0], *corners, ends[1]], 4.0), role=role)
        anchor = "start" if out[0] > 0 else "end"
        pen.text(edge + tip + 5 * out[0], (whole.y0 + whole.y1) / 2, label, size=SMALL, anchor=anchor)

    return Mark(ink)


def outline(first: Shape, last: Shape, *, role: str = "", gap: Number = 0) -> Mark:
    """Draw a strong line around several shapes, such as one row of a matrix.

    Args:
        first: The first of the shapes.
        last: The last of them; all between them are inside.
        role: Whose color the line has; without it ink.
        gap: Between the shapes and the line.

    Raises:
        ValueError: If there is no such role.

    Examples:
        >>> from exformer_lessons.diagrams import draw, matrix, outline
        >>> weights = matrix([[0.9, 0.1], [0.4, 0.6]])
        >>> draw(weights, outline(weights[1, 0], weights[1, 1])).svg.count("<path")
        1
    """
    if role:
        role_named(role)

    def ink(pen: Pen, places: Places) -> None:
        whole = _together(first, last, places)
        x0, y0, x1, y1 = whole.x0 - gap, whole.y0 - gap, whole.x1 + gap, whole.y1 + gap
        middle = (x0 + x1) / 2
        corners = [(middle, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0), (middle, y0)]
        pen.path(corners, steps=rounded(corners, 3.0) + "Z", role=role, width=2.2, dash="", layer="shapes")

    return Mark(ink)
