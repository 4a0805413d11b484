"""Labels beside a shape, a frame around it."""

from collections.abc import Sequence

from exformer_lessons.diagrams.lettering import LINE, SMALL, Number, text_width
from exformer_lessons.diagrams.pen import Pen
from exformer_lessons.diagrams.shapes import Shape, text
from exformer_lessons.diagrams.theme import role_named


def label(
    shape: Shape,
    *,
    above: str = "",
    below: str = "",
    left: str = "",
    right: str = "",
    size: Number = SMALL,
    muted: bool = True,
    bold: bool = False,
    gap: Number = 3,
) -> Shape:
    """Write words beside a shape, which keeps its axis: a row of labeled shapes stays in line.

    Args:
        shape: What the words belong to; arrows may still lead to it.
        above: Words above it.
        below: Words beneath it.
        left: Words to the left of it.
        right: Words to the right of it.
        size: Of the letters.
        muted: Whether the words come second to others.
        bold: Whether the letters are.
        gap: Between the shape and the words.

    Examples:
        >>> from exformer_lessons.diagrams import box, draw, label, row
        >>> q = box("*Q*", role="query", width=60, height=90)
        >>> draw(row(label(q, left="*n*", below="*d*_{k}"), box("*n* queries"))).width > 150
        True
    """
    x, y = shape.middle
    placed = [(shape, 0.0, 0.0)]

    def words(label: str, align: str) -> Shape:
        return text(label, size=size, muted=muted, bold=bold, align=align)

    if above:
        w = words(above, "middle")
        placed.append((w, x - w.width / 2, -gap - w.height))
    if below:
        w = words(below, "middle")
        placed.append((w, x - w.width / 2, shape.height + gap))
    if left:
        w = words(left, "end")
        placed.append((w, -gap - w.width, y - w.height / 2))
    if right:
        w = words(right, "start")
        placed.append((w, shape.width + gap, y - w.height / 2))
    return _around(placed, axis=(x, y), parts=shape)


def _around(
    placed: Sequence[tuple[Shape, Number, Number]], *, axis: tuple[Number, Number], parts: Shape
) -> Shape:
    """Return the shape that holds all the placed ones, with the axis and the parts of one of them."""
    left, top = min(x for _, x, _ in placed), min(y for _, _, y in placed)
    return Shape(
        max(x + shape.width for shape, x, _ in placed) - left,
        max(y + shape.height for shape, _, y in placed) - top,
        children=tuple((shape, x - left, y - top) for shape, x, y in placed),
        axis=(axis[0] - left, axis[1] - top),
        parts=parts.parts,
    )


def frame(
    shape: Shape,
    *,
    title: str = "",
    role: str = "plain",
    padding: Number = 12,
    width: Number = 0,
) -> Shape:
    """Draw a frame around a shape, for what belongs together, such as one layer.

    Args:
        shape: What is in it; its axis stays where it is.
        title: Words in the frame's upper left corner.
        role: Whose color the frame has.
        padding: Between the shape and the frame.
        width: At least that of the shape with its padding.

    Raises:
        ValueError: If there is no such role.

    Examples:
        >>> from exformer_lessons.diagrams import box, draw, frame
        >>> drawn = draw(frame(box("LSTM", role="encoder"), title="encoder", role="encoder"))
        >>> drawn.height > 70
        True
    """
    role_named(role)
    head = SMALL * LINE + 2 if title else 0
    wide = max(shape.width + 2 * padding, text_width(title, size=SMALL, bold=True) + 20, width)
    high = shape.height + 2 * padding + head
    inset = (wide - shape.width) / 2

    def ink(pen: Pen, x: Number, y: Number) -> None:
        pen.rectangle(x, y, wide, high, role=role, radius=9, layer="frames", hollow=True)
        if title:
            pen.text(x + 10, y + 8 + SMALL / 2, title, size=SMALL, anchor="start", bold=True)

    axis = (inset + shape.middle[0], padding + head + shape.middle[1])
    return Shape(wide, high, ink, children=((shape, inset, padding + head),), axis=axis, parts=shape.parts)
