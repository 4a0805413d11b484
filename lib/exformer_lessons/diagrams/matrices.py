"""Matrices as cells, each with its number or its word, whatever its color."""

import math
from collections.abc import Sequence
from typing import Any

from exformer_lessons.diagrams.cells import cell_of, heat_of, is_number, part_of
from exformer_lessons.diagrams.lettering import LINE, SMALL, Number, signed, text_width
from exformer_lessons.diagrams.pen import Pen
from exformer_lessons.diagrams.shapes import Shape
from exformer_lessons.diagrams.theme import role_named

Roles = str | Sequence[str | None] | Sequence[Sequence[str | None]]
#: Between the words of two cells, in units.
ROOM = 8


def matrix(
    content: object,
    *,
    fill: Roles = "",
    rows: Sequence[object] = (),
    columns: Sequence[object] = (),
    digits: int | None = None,
    limits: tuple[Number, Number] | None = None,
    numbers: bool = True,
    cell: tuple[Number, Number] = (0, 0),
    size: Number = SMALL,
) -> Shape:
    """Make a matrix of cells. ``m[row, column]`` is a cell, to which an arrow may lead.

    A number colors its cell, blue above 0 and orange below, the stronger the larger; −∞ is a dashed cell. The
    number is in the cell too, so that nothing depends on the color alone.

    Args:
        content: Rows of numbers (a tensor, an array, lists), of strings, or of None for an empty cell.
        fill: A role for all the cells, for each column, or for each cell; "" where the number decides.
        rows: A name for each row.
        columns: A name for each column.
        digits: After the point; without it 0 for integers and 2 for others.
        limits: The numbers with the strongest color, below and above 0; without them the largest one.
        numbers: Whether they are written into the cells; where they are not, each cell has a bar, upward or,
            below 0, downward.
        cell: The least width and height of a cell.
        size: Of the letters.

    Raises:
        ValueError: If the content is not a matrix, or names, roles or limits do not fit it.

    Examples:
        >>> import math
        >>> from exformer_lessons.diagrams import draw, matrix
        >>> scores = matrix([[2.0, -math.inf], [0.5, 1.0]], rows=["the", "cat"], columns=["the", "cat"])
        >>> "−∞" in draw(scores).svg
        True
    """
    values = _rows(content)
    n, m = len(values), len(values[0])
    roles = _roles(fill, n, m)
    _check_names(rows, n, "rows")
    _check_names(columns, m, "columns")
    found = [float(v) for each in values for v in each if is_number(v) and math.isfinite(v)]
    whole = all(value == int(value) for value in found)
    digits = digits if digits is not None else 0 if whole else 2
    low, high = _limits(limits, found)
    floor = 0.5 if min(found, default=0.0) < 0 else 1.0

    def written(value: object) -> str:
        if not is_number(value):
            return "" if value is None else str(value)
        return signed(value, digits) if numbers or value == -math.inf else ""

    texts = [[written(value) for value in each] for each in values]
    words = [*(t for each in texts for t in each), *map(str, columns)]
    wide = max(cell[0], 20 if numbers else 12, *(text_width(word, size=size) + ROOM for word in words))
    high_cell = max(cell[1], 24 if numbers else 12)
    left = max((text_width(str(name), size=size) + 7 for name in rows), default=0)
    over = size * LINE + 3 if columns else 0
    parts, children = {}, []
    for i, each in enumerate(values):
        for j, value in enumerate(each):
            part = part_of(value, low, high) if is_number(value) and roles[i][j] is None else None
            role = roles[i][j] or _role(value)
            look = {"role": role, "heat": heat_of(part), "width": wide, "height": high_cell, "size": size}
            parts[i, j] = cell_of(texts[i][j], bar=0 if numbers else part or 0, floor=floor, **look)
            children.append((parts[i, j], left + j * wide, over + i * high_cell))

    def ink(pen: Pen, x: Number, y: Number) -> None:
        for i, name in enumerate(rows):
            pen.text(x + left - 7, y + over + (i + 0.5) * high_cell, str(name), size=size, anchor="end")
        for j, name in enumerate(columns):
            pen.text(x + left + (j + 0.5) * wide, y + size * LINE / 2, str(name), size=size)

    axis = (left + m * wide / 2, over + n * high_cell / 2)
    return Shape(left + m * wide, over + n * high_cell, ink, tuple(children), axis, parts)


def _rows(content: object) -> list[list[object]]:
    found: Any = content.tolist() if hasattr(content, "tolist") else content
    good = isinstance(found, list | tuple) and len(found) and all(isinstance(r, list | tuple) for r in found)
    lengths = sorted({len(each) for each in found}) if good else []
    if len(lengths) != 1 or lengths == [0]:
        raise ValueError(f"expected rows of one length, such as [[1, 2], [3, 4]], got {content!r}")
    rows = [list(each) for each in found]
    wrong = next((v for each in rows for v in each if isinstance(v, list | tuple)), None)
    if wrong is not None:
        raise ValueError(f"expected numbers, strings or None in the cells, got {wrong!r}: pick one matrix")
    return rows


def _roles(fill: Roles, n: int, m: int) -> list[list[Any]]:
    """Return a role for each cell, or None where its number decides."""
    if isinstance(fill, str):
        table: list[list[Any]] = [[fill] * m] * n
    elif any(each is None or isinstance(each, str) for each in fill):
        table = [list(fill)] * n
    else:
        table = [list(each or ()) for each in fill]
    if len(table) != n or any(len(each) != m for each in table):
        raise ValueError(
            f"expected a role for each of {m} columns or for each of {n} × {m} cells, got {fill}"
        )
    return [[role_named(role) if role else None for role in each] for each in table]


def _check_names(names: Sequence[object], length: int, what: str) -> None:
    if len(names) not in (0, length):
        raise ValueError(f"{len(names)} names for {length} {what}: give one for each")


def _limits(limits: tuple[Number, Number] | None, found: Sequence[Number]) -> tuple[Number, Number]:
    if limits is None:
        largest = max((abs(value) for value in found), default=0.0) or 1.0
        return -largest, largest
    low, high = float(limits[0]), float(limits[1])
    if not low <= 0 <= high or low == high:
        raise ValueError(f"limits must be (0 or less, 0 or more), not both 0, got {limits}")
    return low, high


def _role(value: object) -> str:
    if value is None or (is_number(value) and value == -math.inf):
        return "masked"
    if not is_number(value):
        return "plain"
    return "low" if value < 0 else "high"
