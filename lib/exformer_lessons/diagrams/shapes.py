"""The pieces of a diagram: boxes, words, signs and dots, and the places on them where arrows end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from exformer_lessons.diagrams.lettering import LINE, SIZE, SMALL, Number, short, text_width
from exformer_lessons.diagrams.pen import Pen
from exformer_lessons.diagrams.theme import role_named

#: Between words without a box and an arrow that leads to them.
AIR = 2.0


@dataclass(frozen=True, eq=False)
class Shape:
    """A piece of a picture: its size, how it is drawn, what is placed in it.

    Args:
        width: In units; a phone shows about 350 beside each other.
        height: In units.
        ink: Draws what the piece itself shows, given a pen and the place of its top left corner.
        children: Other pieces and where their top left corners are.
        axis: The point by which rows and columns align it; without it the middle.
        parts: What an index gives: ``tokens[2]``, ``matrix[0, 1]``.
    """

    width: Number
    height: Number
    ink: Callable[[Pen, Number, Number], None] | None = None
    children: tuple[tuple["Shape", Number, Number], ...] = ()
    axis: tuple[Number, Number] | None = None
    parts: Mapping = field(default_factory=dict)

    @property
    def middle(self) -> tuple[Number, Number]:
        """The point by which rows and columns align it."""
        return self.axis or (self.width / 2, self.height / 2)

    def __getitem__(self, index: object) -> "Shape":
        if index not in self.parts:
            known = ", ".join(map(str, self.parts)) or "it has none"
            raise ValueError(f"no part {index!r}: choose one of its parts ({known})")
        return self.parts[index]

    def at(self, across: Number, down: Number) -> "Anchor":
        """Return a place on the shape: (0, 0) is its top left corner, (1, 1) its bottom right one."""
        return Anchor(self, across, down)

    #: The middles of its edges.
    top, bottom = property(lambda self: self.at(0.5, 0)), property(lambda self: self.at(0.5, 1))
    left, right = property(lambda self: self.at(0, 0.5)), property(lambda self: self.at(1, 0.5))


@dataclass(frozen=True)
class Anchor:
    """A place on a shape: parts of its width and height, and a shift in units."""

    shape: Shape
    across: Number
    down: Number
    shift: tuple[Number, Number] = (0, 0)

    def moved(self, dx: Number = 0, dy: Number = 0) -> "Anchor":
        """Return the place so many units to the right and further down."""
        return Anchor(self.shape, self.across, self.down, (self.shift[0] + dx, self.shift[1] + dy))


def box(
    label: str = "",
    *,
    role: str = "plain",
    note: str = "",
    width: Number | None = None,
    height: Number | None = None,
    size: Number = SIZE,
    radius: Number = 5,
    dashed: bool = False,
    literal: bool = False,
) -> Shape:
    r"""Make a box with words in it.

    Args:
        label: The words; ``\n`` starts a line, ``_{1}`` is a subscript, ``*x*`` italic.
        role: Whose color it has: query, key, value, encoder, decoder, plain, masked, focus, high, low.
        note: A smaller line beneath the words, such as a shape.
        width: At least that of the words.
        height: At least that of the words.
        size: Of the letters.
        radius: Of the corners.
        dashed: Whether the border is, as of what is not there yet.
        literal: Whether the words have no markup.

    Raises:
        ValueError: If there is no such role.

    Examples:
        >>> from exformer_lessons.diagrams import box, draw
        >>> draw(box("queries", role="query", note="seq × *d*_{k}"))
        <Diagram 85 × 61>
    """
    role_named(role)
    lines = [(line, size, False) for line in label.split("\n")] if label else []
    faint = role not in ("high", "low")  # on which muted words are too faint
    lines += [(line, SMALL, faint) for line in note.split("\n")] if note else []
    words = [text_width(line, size=s, literal=literal) for line, s, _ in lines]
    tall = sum(s * LINE for _, s, _ in lines)
    wide = max([width or 0, *(word + 16 for word in words)])
    high = max(height or 0, tall + 12)

    def ink(pen: Pen, x: Number, y: Number) -> None:
        pen.rectangle(x, y, wide, high, role=role, radius=radius, dash="4 3" * dashed)
        edge = y + (high - tall) / 2
        for line, s, muted in lines:
            pen.text(x + wide / 2, edge + s * LINE / 2, line, size=s, muted=muted, literal=literal)
            edge += s * LINE

    return Shape(wide, high, ink)


def text(
    label: str,
    *,
    size: Number = SIZE,
    bold: bool = False,
    muted: bool = False,
    align: str = "middle",
    literal: bool = False,
) -> Shape:
    """Make words without a box.

    Args:
        label: The words, with the markup of `box`.
        size: Of the letters.
        bold: Whether the letters are.
        muted: Whether they come second to others.
        align: Of several lines: ``"start"``, ``"middle"`` or ``"end"``.
        literal: Whether the words have no markup.

    Raises:
        ValueError: If the alignment is unknown.

    Examples:
        >>> from exformer_lessons.diagrams import draw, text
        >>> "font-style" in draw(text("*h*_{t} = tanh(*W x*_{t})")).svg
        True
    """
    if align not in ("start", "middle", "end"):
        raise ValueError(f"align must be 'start', 'middle' or 'end', got {align!r}")
    lines = label.split("\n")
    wide = max(text_width(line, size=size, bold=bold, literal=literal) for line in lines) + 2 * AIR
    place = {"start": AIR, "middle": wide / 2, "end": wide - AIR}[align]

    def ink(pen: Pen, x: Number, y: Number) -> None:
        for n, line in enumerate(lines):
            own = {"bold": bold, "muted": muted, "literal": literal, "anchor": align}
            pen.text(x + place, y + AIR + (n + 0.5) * size * LINE, line, size=size, **own)

    return Shape(wide, len(lines) * size * LINE + 2 * AIR, ink)


def operator(sign: str, *, role: str = "focus", radius: Number = 10) -> Shape:
    """Make a small circle with a sign in it: ``+``, ``×`` or a letter.

    Args:
        sign: What is done to what comes in.
        role: Whose color it has.
        radius: Of the circle.

    Raises:
        ValueError: If there is no such role.

    Examples:
        >>> from exformer_lessons.diagrams import draw, operator
        >>> draw(operator("+")).svg.count("<circle")
        1
    """
    role_named(role)

    def ink(pen: Pen, x: Number, y: Number) -> None:
        pen.circle(x + radius, y + radius, radius, role=role)
        arm = radius * 0.5
        turned = arm * 0.7071
        strokes = {
            "+": [(-arm, 0.0, arm, 0.0), (0.0, -arm, 0.0, arm)],
            "×": [(-turned, -turned, turned, turned), (-turned, turned, turned, -turned)],
        }
        if sign not in strokes:
            pen.text(x + radius, y + radius, sign, size=SMALL)
        for x0, y0, x1, y1 in strokes.get(sign, []):
            ends = [(x + radius + x0, y + radius + y0), (x + radius + x1, y + radius + y1)]
            pen.path(ends, layer="texts")

    return Shape(2 * radius, 2 * radius, ink)


def dot() -> Shape:
    """Make a small dot, where lines part or meet.

    Examples:
        >>> from exformer_lessons.diagrams import arrow, column, dot, draw
        >>> fork = dot()
        >>> draw(fork).height
        21.0
    """

    def ink(pen: Pen, x: Number, y: Number) -> None:
        steps = f"M{short(x)} {short(y + 2.5)}a2.5 2.5 0 1 1 5 0a2.5 2.5 0 1 1 -5 0Z"
        pen.path([(x, y), (x + 5, y + 5)], steps=steps, filled=True)

    return Shape(5.0, 5.0, ink)


def blank(width: Number = 0, height: Number = 0) -> Shape:
    """Make room where nothing is drawn, and to which lines may lead.

    Examples:
        >>> from exformer_lessons.diagrams import blank, row, text
        >>> row(text("left"), blank(60), text("right"), gap=0).width > 100
        True
    """
    return Shape(width, height)
