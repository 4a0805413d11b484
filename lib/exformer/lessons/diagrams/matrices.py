"""Matrices as cells, tokens as a row of boxes: each with its number or its word, whatever its color."""

import math
from collections.abc import Sequence
from typing import Any, TypeGuard

from exformer.lessons.diagrams.lettering import LINE, SIZE, SMALL, SMALLEST, Number, signed, text_width
from exformer.lessons.diagrams.pen import Pen
from exformer.lessons.diagrams.shapes import Shape
from exformer.lessons.diagrams.theme import role_named

Roles = str | Sequence[str | None] | Sequence[Sequence[str | None]]
#: Names longer than this many units make cells wider than numbers need.
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
    number is in the cell too, so that nothing hangs on the color alone.

    Args:
        content: Rows of numbers (a tensor, an array, lists), of strings, or of None for an empty cell.
        fill: A role for all the cells, for each column, or for each cell; "" where the number decides.
        rows: A name for each row.
        columns: A name for each column.
        digits: After the point; without it 0 for whole numbers and 2 for others.
        limits: The numbers with the strongest color, below and above 0; without them the largest one.
        numbers: Whether they are written into the cells; where they are not, each cell has a bar, upward or,
            below 0, downward.
        cell: The least width and height of a cell.
        size: Of the letters.

    Raises:
        ValueError: If the content is not a matrix, or names, roles or limits do not fit it.

    Examples:
        >>> import math
        >>> from exformer.lessons.diagrams import draw, matrix
        >>> scores = matrix([[2.0, -math.inf], [0.5, 1.0]], rows=["the", "cat"], columns=["the", "cat"])
        >>> "−∞" in draw(scores).svg
        True
    """
    values = _rows(content)
    n, m = len(values), len(values[0])
    roles = _roles(fill, n, m)
    _check_names(rows, n, "rows")
    _check_names(columns, m, "columns")
    found = [float(v) for each in values for v in each if _is_number(v) and math.isfinite(v)]
    whole = all(value == int(value) for value in found)
    digits = digits if digits is not None else 0 if whole else 2
    low, high = _limits(limits, found)
    floor = 0.5 if min(found, default=0.0) < 0 else 1.0

    def written(value: object) -> str:
        if not _is_number(value):
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
            shaded = _is_number(value) and math.isfinite(value) and roles[i][j] is None
            part = _part(value, low, high) if _is_number(value) and shaded else None
            role = roles[i][j] or _role(value)
            look = {"role": role, "heat": _heat(part), "width": wide, "height": high_cell, "size": size}
            parts[i, j] = _cell(texts[i][j], bar=0 if numbers else part or 0, floor=floor, **look)
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


def _is_number(value: object) -> TypeGuard[Number]:
    return isinstance(value, float | int) and not isinstance(value, bool) and not math.isnan(value)


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
    if value is None or (_is_number(value) and value == -math.inf):
        return "masked"
    if not _is_number(value):
        return "plain"
    return "low" if value < 0 else "high"


def _part(value: Number, low: Number, high: Number) -> Number:
    """Return which part of its limit a number is, from −1 to 1."""
    limit = -low if value < 0 else high
    return max(-1.0, min(1.0, value / limit if limit else 0.0))


def _heat(part: Number | None) -> Number | None:
    """Return how strong a color is for a part of the limit: never so weak that the cell vanishes."""
    return None if part is None else 0.08 + 0.92 * abs(part)


def _cell(
    word: str,
    *,
    role: str,
    heat: Number | None,
    width: Number,
    height: Number,
    size: Number,
    bar: Number = 0,
    floor: Number = 1,
    literal: bool = False,
) -> Shape:
    """Return a cell with a word, or with a bar as long as a part of the room above its floor."""

    def ink(pen: Pen, x: Number, y: Number) -> None:
        gap = 0.0 if heat is None else 0.5
        pen.rectangle(x + gap, y + gap, width - 2 * gap, height - 2 * gap, role=role, radius=2, heat=heat)
        pen.text(x + width / 2, y + height / 2, word, size=size, literal=literal)
        if bar:
            base = y + 1.5 + floor * (height - 3)
            tip = base - bar * floor * (height - 3)
            edges = x + width / 2 - 2, x + width / 2 + 2
            corners = [(edges[0], base), (edges[0], tip), (edges[1], tip), (edges[1], base)]
            pen.path(corners, role=role, filled=True, layer="texts")

    return Shape(width, height, ink)


def tokens(
    words: Sequence[str],
    *,
    role: str | Sequence[str] = "plain",
    values: object = None,
    under: Sequence[object] = (),
    digits: int = 2,
    limit: Number | None = None,
    width: Number = 340,
    gap: Number = 4,
    size: Number = SIZE,
) -> Shape:
    """Make a row of tokens; ``t[2]`` is the third one. A row that is too long goes on in the next line.

    Spaces and line breaks in a token are made visible (␣ and ↵); it has no markup.

    Args:
        words: The tokens.
        role: Whose color they have, all of them or each.
        values: A number for each, such as its loss: it colors the token, in orange if the role is plain, and
            is written beneath it.
        under: Words or numbers beneath the tokens, in place of the values' own.
        digits: Of the values, after the point.
        limit: The value with the strongest color; without it the largest.
        width: At which a line is full.
        gap: Between two tokens.
        size: Of the letters.

    Raises:
        ValueError: If there is no token, or if roles, values or words beneath are not one for each.

    Examples:
        >>> from exformer.lessons.diagrams import draw, tokens
        >>> sentence = tokens(["the", "cat", "sleeps"], values=[2.31, 3.07, 0.42])
        >>> "0.42" in draw(sentence).svg
        True
    """
    if not words:
        raise ValueError("there is no token: give at least one")
    roles = [role] * len(words) if isinstance(role, str) else list(role)
    numbers = None if values is None else _numbers(values)
    beneath = [str(word) for word in under] or [signed(v, digits) for v in numbers or []]
    for what, given in (("roles", roles), ("values", numbers), ("words beneath", beneath)):
        if given and len(given) != len(words):
            raise ValueError(f"{len(given)} {what} for {len(words)} tokens: give one for each")
    strongest = limit or max([abs(v) for v in numbers or []], default=0.0) or 1.0
    parts_of_limit = [_part(v, -strongest, strongest) for v in numbers] if numbers else [None] * len(words)
    heats = [_heat(part) for part in parts_of_limit]
    shown = [word.replace(" ", "␣").replace("\n", "↵") for word in words]
    made = [
        _token(
            word, note, role=role_named("low" if numbers and each == "plain" else each), heat=heat, size=size
        )
        for word, note, each, heat in zip(shown, beneath or [""] * len(words), roles, heats, strict=True)
    ]
    lines, x = [[]], 0.0
    for each in made:
        if lines[-1] and x + each.width > width:
            lines.append([])
            x = 0.0
        lines[-1].append((each, x))
        x += each.width + gap
    step = made[0].height + 2 * gap
    children = tuple((each, x, n * step) for n, line in enumerate(lines) for each, x in line)
    wide = max(x + each.width for each, x, _ in children)
    axis = (wide / 2, made[0].middle[1]) if len(lines) == 1 else None
    parts = dict(enumerate(made))
    return Shape(wide, len(lines) * step - 2 * gap, None, children, axis, parts)


def _numbers(values: object) -> list[Number]:
    found = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(found, list | tuple) or not all(_is_number(v) and math.isfinite(v) for v in found):
        raise ValueError(f"expected a row of finite numbers, got {values!r}")
    return [float(value) for value in found]


def _token(word: str, note: str, *, role: str, heat: Number | None, size: Number) -> Shape:
    """Return a box with a word, and a line beneath it that belongs to it."""
    lines = note.split("\n") if note else []
    wide = max(text_width(word, size=size, literal=True) + 10, 20)
    wide = max([wide, *(text_width(line, size=SMALLEST + 0.5) + 2 for line in lines)])
    tall = size * LINE + 8
    body = _cell(word, role=role, heat=heat, width=wide, height=tall, size=size, literal=True)

    def ink(pen: Pen, x: Number, y: Number) -> None:
        for n, line in enumerate(lines):
            pen.text(x + wide / 2, y + tall + 8 + n * SMALL * LINE, line, size=SMALLEST + 0.5, muted=True)

    beneath = len(lines) * SMALL * LINE + 1 if lines else 0
    return Shape(wide, tall + beneath, ink, ((body, 0, 0),), (wide / 2, tall / 2))
