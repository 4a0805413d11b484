"""A few bars with their names and numbers, small enough to be a part of a diagram."""

from collections.abc import Mapping

from exformer_lessons.diagrams.lettering import LINE, SMALL, Number, signed, text_width
from exformer_lessons.diagrams.pen import Pen
from exformer_lessons.diagrams.shapes import Shape
from exformer_lessons.diagrams.theme import role_named


def bars(
    values: Mapping[str, Number],
    *,
    role: str = "high",
    digits: int = 2,
    width: Number = 110,
    limit: Number | None = None,
) -> Shape:
    """Make horizontal bars, each with its name on the left and its number on the right.

    ``b["cat"]`` is a bar, to which an arrow may lead.

    Args:
        values: Name and value of each, 0 or more.
        role: Whose color they have.
        digits: After the point.
        width: Of the longest possible bar.
        limit: Its value; without it the largest one.

    Raises:
        ValueError: If there is no value, one is negative or not finite, or there is no such role.

    Examples:
        >>> from exformer_lessons.diagrams import bars, draw
        >>> "0.62" in draw(bars({"cat": 0.62, "dog": 0.3, "sofa": 0.08})).svg
        True
    """
    role_named(role)
    numbers = {name: float(value) for name, value in values.items()}
    if not numbers or not all(0 <= value < float("inf") for value in numbers.values()):
        raise ValueError(f"expected one or more values of 0 or more, got {dict(values)}")
    longest = limit or max(numbers.values()) or 1.0
    left = max(text_width(name, size=SMALL, literal=True) for name in numbers) + 6
    right = max(text_width(signed(value, digits), size=SMALL) for value in numbers.values()) + 5
    step = SMALL * LINE + 4
    parts = {
        name: _bar(max(1.0, width * min(1.0, value / longest)), step - 3, role)
        for name, value in numbers.items()
    }
    children = tuple((bar, left, n * step + 1.5) for n, bar in enumerate(parts.values()))

    def ink(pen: Pen, x: Number, y: Number) -> None:
        for n, (name, value) in enumerate(numbers.items()):
            middle = y + (n + 0.5) * step
            pen.text(x + left - 6, middle, name, size=SMALL, anchor="end", literal=True)
            end = x + left + parts[name].width + 5
            pen.text(end, middle, signed(value, digits), size=SMALL, anchor="start")

    return Shape(left + width + right, len(numbers) * step, ink, children, parts=dict(parts))


def _bar(width: Number, height: Number, role: str) -> Shape:
    def ink(pen: Pen, x: Number, y: Number) -> None:
        pen.rectangle(x, y, width, height, role=role, radius=1.5)

    return Shape(width, height, ink)
