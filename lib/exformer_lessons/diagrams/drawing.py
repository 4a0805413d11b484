"""From a shape and marks to a picture that a notebook shows, checked so that each word can be read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from exformer_lessons.diagrams.lettering import SMALLEST, Number, short
from exformer_lessons.diagrams.marks import Mark
from exformer_lessons.diagrams.pen import Box, Lettered, Pen
from exformer_lessons.diagrams.shapes import Shape
from exformer_lessons.diagrams.theme import FONT, LIGHT, style_sheet

#: Pixels that the book leaves for a picture on a phone 390 wide, and how much larger a desk shows it.
PHONE = 358
DESK = 1.25


@dataclass(frozen=True)
class Diagram:
    """A picture; the last value of a cell, it is shown. ``print(diagram.svg)`` gives its text.

    Args:
        svg: The picture.
        width: In units; a phone shows about 350 beside each other.
        height: In units.
        texts: Its lines of text and where they are, for checks.
    """

    svg: str = field(repr=False)
    width: Number
    height: Number
    texts: tuple[Lettered, ...] = field(repr=False, default=())

    def __repr__(self) -> str:
        return f"<Diagram {self.width:.0f} × {self.height:.0f}>"

    def _repr_svg_(self) -> str:
        return self.svg


def draw(picture: Shape, *marks: object, padding: Number = 8) -> Diagram:
    """Draw a picture out of shapes, and the marks between them.

    It follows the page's theme, light or dark. Its alternative text is in the metadata of the cell, as
    for all figures: ``"mystnb": {"image": {"alt": "…"}}``.

    Args:
        picture: What rows, columns and grids made of the shapes.
        marks: Arrows, links and braces between shapes of the picture, one by one or in lists.
        padding: Around the picture.

    Raises:
        ValueError: If a shape is in the picture twice, a mark leads to one that is not, two texts overlap, or
            one would be too small on a phone.

    Examples:
        >>> from exformer_lessons.diagrams import arrow, box, column, draw
        >>> decoder, encoder = box("decoder", role="decoder"), box("encoder", role="encoder")
        >>> draw(column(decoder, encoder, gap=30), arrow(encoder, decoder, label="last state"))
        <Diagram 114 × 106>
    """
    places: dict[Shape, Box] = {}
    _place(picture, 0.0, 0.0, places)
    pen = Pen()
    for shape, where in places.items():
        if shape.ink:
            shape.ink(pen, where.x0, where.y0)
    for mark in _flat(marks):
        mark.ink(pen, places)
    if not pen.boxes:
        raise ValueError("there is nothing to see in the picture: give it a box, words or tokens")
    reach = pen.reach()
    x, y = reach.x0 - padding, reach.y0 - padding
    width, height = reach.x1 - reach.x0 + 2 * padding, reach.y1 - reach.y0 + 2 * padding
    _check(pen.texts, width)
    return Diagram(_svg(pen, x, y, width, height), width, height, tuple(pen.texts))


def _flat(marks: Iterable[object]) -> list[Mark]:
    found: list[Mark] = []
    for mark in marks:
        if isinstance(mark, Mark):
            found.append(mark)
        elif isinstance(mark, Sequence) and not isinstance(mark, str):
            found += _flat(mark)
        else:
            raise ValueError(
                f"expected arrows, links or braces after the picture, got {mark!r}: put shapes in a row"
            )
    return found


def _place(shape: Shape, x: Number, y: Number, places: dict[Shape, Box]) -> None:
    if shape in places:
        raise ValueError("a shape is in the picture twice: make a second one")
    places[shape] = Box(x, y, x + shape.width, y + shape.height)
    for child, dx, dy in shape.children:
        _place(child, x + dx, y + dy, places)


def _check(texts: Sequence[Lettered], width: Number) -> None:
    """Check that no words of a picture overlap, and that all can be read on a phone."""
    for one, other in combinations(texts, 2):
        if one.box.overlaps(other.box, by=0.5):
            raise ValueError(f"the texts {one.text!r} and {other.text!r} overlap: give them more room")
    if not texts:
        return
    smallest = min(texts, key=lambda each: each.size)
    shown = smallest.size * min(1.0, PHONE / width)
    if shown < SMALLEST - 0.2:
        raise ValueError(
            f"the picture is {width:.0f} units wide, and {smallest.text!r} is {shown:.1f} px high on a phone:"
            f" expected {SMALLEST:.0f} or more; put shapes beneath each other, or make the letters larger"
        )


def _svg(pen: Pen, x: Number, y: Number, width: Number, height: Number) -> str:
    box = f"{short(x)} {short(y)} {short(width)} {short(height)}"
    card = f'x="{short(x)}" y="{short(y)}" width="{short(width)}" height="{short(height)}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}"'
            f' width="{width * DESK:.0f}" height="{height * DESK:.0f}">',
            f"<style>{style_sheet(pen.roles)}</style>",
            f'<g class="dgm" color="{LIGHT.ink}" font-family="{FONT}" text-anchor="middle"'
            f' stroke-width="1.3" stroke-linecap="round" stroke-linejoin="round">',
            f'<rect class="x-card" {card} rx="6" fill="{LIGHT.paper}"/>',
            *pen.elements(),
            "</g>",
            "</svg>",
        ]
    )
