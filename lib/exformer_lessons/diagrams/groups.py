"""Groups of shapes: a brace along them, an outline around them."""

from exformer_lessons.diagrams.lettering import SMALL, Number
from exformer_lessons.diagrams.marks import Mark, Places, box_of
from exformer_lessons.diagrams.pen import Box, Pen
from exformer_lessons.diagrams.routes import rounded
from exformer_lessons.diagrams.shapes import Shape
from exformer_lessons.diagrams.theme import role_named

GAP, DEPTH = 5, 5.0  # of a brace: to its shapes, and how far its ends reach


def _together(first: Shape, last: Shape, places: Places) -> Box:
    """Return the box around two shapes and all between them."""
    a, b = box_of(first, places), box_of(last, places)
    return Box(min(a.x0, b.x0), min(a.y0, b.y0), max(a.x1, b.x1), max(a.y1, b.y1))


def brace(first: Shape, last: Shape, label: str) -> Mark:
    """Draw a brace below several shapes, with words at its middle.

    Args:
        first: The first of the shapes.
        last: The last of them.
        label: The words.

    Examples:
        >>> from exformer_lessons.diagrams import brace, draw, tokens
        >>> words = tokens(["the", "cat", "sleeps"])
        >>> "subject" in draw(words, brace(words[0], words[1], "subject")).svg
        True
    """

    def ink(pen: Pen, places: Places) -> None:
        whole = _together(first, last, places)
        left, right, edge, tip = whole.x0 + 1, whole.x1 - 1, whole.y1 + GAP, whole.y1 + GAP + DEPTH
        corners = [(left, edge), (left, tip), (right, tip), (right, edge)]
        pen.path(corners, steps=rounded(corners, 4.0))
        pen.text((left + right) / 2, tip + 10, label, size=SMALL)

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
