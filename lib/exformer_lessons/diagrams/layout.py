"""Where the pieces of a diagram go: rows, columns, grids, and points."""

from collections.abc import Sequence

from exformer_lessons.diagrams.lettering import Number
from exformer_lessons.diagrams.shapes import Shape


def row(*shapes: Shape, gap: Number = 16, align: str = "axis") -> Shape:
    """Put shapes beside each other.

    Args:
        shapes: From left to right.
        gap: Between two of them, in units.
        align: By their ``"axis"`` (the middle; words beside a shape do not move it), ``"top"``, ``"bottom"``.

    Raises:
        ValueError: If there is no shape, or the alignment is unknown.

    Examples:
        >>> from exformer_lessons.diagrams import box, row
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
        >>> from exformer_lessons.diagrams import box, column
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
        >>> from exformer_lessons.diagrams import box, grid
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
        >>> from exformer_lessons.diagrams import operator, place
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
