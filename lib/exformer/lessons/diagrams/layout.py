"""Where the pieces of a diagram go: rows, columns, grids, frames, and words beside a piece."""

from collections.abc import Sequence
from dataclasses import replace

from exformer.lessons.diagrams.lettering import LINE, SMALL, Number, text_width
from exformer.lessons.diagrams.pen import Pen
from exformer.lessons.diagrams.shapes import Shape, text
from exformer.lessons.diagrams.theme import role_named


def row(*shapes: Shape, gap: Number = 16, align: str = "axis") -> Shape:
    """Put shapes beside each other.

    Args:
        shapes: From left to right.
        gap: Between two of them, in units.
        align: By their ``"axis"`` (the middle; words beside a shape do not move it), ``"top"``, ``"bottom"``.

    Raises:
        ValueError: If there is no shape, or the alignment is unknown.

    Examples:
        >>> from exformer.lessons.diagrams import box, row
        >>> row(box("encoder", width=80), box("decoder", width=80), gap=20).width
        180
    """
    tops = _offsets(shapes, align, names=("top", "bottom"), vertical=True)
    x, children = 0.0, []
    for shape, top in zip(shapes, tops, strict=True):
        children.append((shape, x, top))
        x += shape.width + gap
    height = max(top + shape.height for shape, top in zip(shapes, tops, strict=True))
    middle = tops[0] + shapes[0].middle[1] if align == "axis" else height / 2
    width = x - gap
    return Shape(_whole(width), height, children=tuple(children), axis=(width / 2, middle))


def column(*shapes: Shape, gap: Number = 16, align: str = "axis") -> Shape:
    """Put shapes beneath each other.

    Args:
        shapes: From top to bottom.
        gap: Between two of them, in units.
        align: By their ``"axis"`` (the middle; words beside a shape do not move it), ``"left"``, ``"right"``.

    Raises:
        ValueError: If there is no shape, or the alignment is unknown.

    Examples:
        >>> from exformer.lessons.diagrams import box, column
        >>> column(box("logits", height=30), box("softmax", height=30), gap=20).height
        80
    """
    lefts = _offsets(shapes, align, names=("left", "right"), vertical=False)
    y, children = 0.0, []
    for shape, left in zip(shapes, lefts, strict=True):
        children.append((shape, left, y))
        y += shape.height + gap
    width = max(left + shape.width for shape, left in zip(shapes, lefts, strict=True))
    middle = lefts[0] + shapes[0].middle[0] if align == "axis" else width / 2
    height = y - gap
    return Shape(width, _whole(height), children=tuple(children), axis=(middle, height / 2))


def _whole(number: Number) -> float | int:
    return int(number) if number == int(number) else number


def _offsets(shapes: Sequence[Shape], align: str, *, names: tuple[str, str], vertical: bool) -> list[Number]:
    """Return how far each shape is from the first edge across the direction in which they follow."""
    if not shapes:
        raise ValueError("there is nothing to put in order: give at least one shape")
    first, last = names
    if align not in ("axis", first, last):
        raise ValueError(f"align must be 'axis', {first!r} or {last!r}, got {align!r}")
    sizes = [shape.height if vertical else shape.width for shape in shapes]
    if align == first:
        return [0.0] * len(shapes)
    if align == last:
        return [float(max(sizes) - size) for size in sizes]
    middles = [shape.middle[1 if vertical else 0] for shape in shapes]
    return [float(max(middles) - middle) for middle in middles]


def grid(rows: Sequence[Sequence[Shape | None]], *, gap: tuple[Number, Number] = (16, 16)) -> Shape:
    """Put shapes into rows and columns at once, each on the axis of its row and of its column.

    Args:
        rows: Shapes from left to right, row by row from the top; None leaves a gap.
        gap: Between two columns, and between two rows.

    Raises:
        ValueError: If there is no shape, or the rows are not of one length.

    Examples:
        >>> from exformer.lessons.diagrams import box, grid
        >>> states = [box(f"*h*_{{{t}}}", role="encoder") for t in (1, 2, 3)]
        >>> inputs = [box(word) for word in ("the", "animal", "slept")]
        >>> grid([states, inputs]).children[3][1:2] == (0,)
        True
    """
    lengths = sorted({len(each) for each in rows})
    if len(lengths) != 1 or not any(shape for each in rows for shape in each):
        raise ValueError(f"expected rows of one length with at least one shape, got lengths {lengths}")
    columns = list(zip(*rows, strict=True))
    before = [max((s.middle[0] for s in each if s), default=0) for each in columns]
    after = [max((s.width - s.middle[0] for s in each if s), default=0) for each in columns]
    above = [max((s.middle[1] for s in each if s), default=0) for each in rows]
    below = [max((s.height - s.middle[1] for s in each if s), default=0) for each in rows]
    children, x, y = [], 0.0, 0.0
    for each, over, under in zip(rows, above, below, strict=True):
        x = 0.0
        for shape, left, right in zip(each, before, after, strict=True):
            if shape:
                children.append((shape, x + left - shape.middle[0], y + over - shape.middle[1]))
            x += left + right + gap[0]
        y += over + under + gap[1]
    return Shape(x - gap[0], y - gap[1], children=tuple(children))


def place(shapes: Sequence[tuple[Shape, Number, Number]]) -> Shape:
    """Put each shape's axis (its middle) at a point: for circuits, which no row or column describes.

    Args:
        shapes: Each with the x and the y of its axis, in units, y downward; all in one system.

    Raises:
        ValueError: If there is no shape.

    Examples:
        >>> from exformer.lessons.diagrams import operator, place
        >>> place([(operator("×"), 0, 0), (operator("+"), 60, 0)]).width
        80.0
    """
    if not shapes:
        raise ValueError("there is nothing to place: give at least one shape")
    corners = [(shape, x - shape.middle[0], y - shape.middle[1]) for shape, x, y in shapes]
    left, top = min(x for _, x, _ in corners), min(y for _, _, y in corners)
    width = max(x + shape.width for shape, x, _ in corners) - left
    height = max(y + shape.height for shape, _, y in corners) - top
    return Shape(width, height, children=tuple((shape, x - left, y - top) for shape, x, y in corners))


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
        >>> from exformer.lessons.diagrams import box, draw, label, row
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
    dashed: bool = False,
    width: Number = 0,
) -> Shape:
    """Draw a frame around a shape, for what belongs together, such as one layer.

    Args:
        shape: What is in it; its axis stays where it is.
        title: Words in the frame's upper left corner.
        role: Whose color the frame has.
        padding: Between the shape and the frame.
        dashed: Whether the frame is.
        width: At least that of the shape with its padding.

    Raises:
        ValueError: If there is no such role.

    Examples:
        >>> from exformer.lessons.diagrams import box, draw, frame
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
        pen.rectangle(x, y, wide, high, role=role, radius=9, dash="4 3" * dashed, layer="frames", hollow=True)
        if title:
            pen.text(x + 10, y + 8 + SMALL / 2, title, size=SMALL, anchor="start", bold=True)

    axis = (inset + shape.middle[0], padding + head + shape.middle[1])
    return Shape(wide, high, ink, children=((shape, inset, padding + head),), axis=axis, parts=shape.parts)


def measured(shape: Shape, *, rows: str = "", columns: str = "", gap: Number = 7) -> Shape:
    """Write a matrix's two sizes along its left and its upper edge, with a line as long as the edge.

    Args:
        shape: A matrix.
        rows: How many rows it has, such as ``"*n*"``.
        columns: How many columns it has, such as ``"*d*_{k}"``.
        gap: Between the matrix and the lines.

    Examples:
        >>> from exformer.lessons.diagrams import box, draw, measured
        >>> draw(measured(box("*K*", role="key", height=80), rows="*n*", columns="*d*_{k}")).height > 90
        True
    """
    x, y = shape.middle
    placed = [(shape, 0.0, 0.0)]
    if columns:
        w = text(columns, size=SMALL)
        placed += [(_ruler(shape.width, upright=False), 0.0, -gap - 3.0)]
        placed += [(w, shape.width / 2 - w.width / 2, -gap - 4.0 - w.height)]
    if rows:
        w = text(rows, size=SMALL)
        placed += [(_ruler(shape.height, upright=True), -gap - 3.0, 0.0)]
        placed += [(w, -gap - 7.0 - w.width, shape.height / 2 - w.height / 2)]
    return _around(placed, axis=(x, y), parts=shape)


def _ruler(length: Number, *, upright: bool) -> Shape:
    """Return a thin line with a tick at each end."""

    def ink(pen: Pen, x: Number, y: Number) -> None:
        for points in [(0, 3, length, 3), (0, 0, 0, 6), (length, 0, length, 6)]:
            a, b, c, d = points
            ends = [(y0, x0) if upright else (x0, y0) for x0, y0 in ((a, b), (c, d))]
            pen.path(
                [(x + u - 3 * upright, y + v - 3 * (not upright)) for u, v in ends], width=1.0, opacity=0.7
            )

    return replace(Shape(length, 3, ink), width=3 if upright else length, height=length if upright else 3)
