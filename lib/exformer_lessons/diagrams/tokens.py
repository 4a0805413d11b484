"""Tokens: a row of boxes, colored by a number for each if there is one."""

import math
from collections.abc import Sequence

from exformer_lessons.diagrams.cells import cell_of, heat_of, is_number, part_of
from exformer_lessons.diagrams.lettering import LINE, SIZE, SMALL, SMALLEST, Number, signed, text_width
from exformer_lessons.diagrams.pen import Pen
from exformer_lessons.diagrams.shapes import Shape
from exformer_lessons.diagrams.theme import role_named


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
        >>> from exformer_lessons.diagrams import draw, tokens
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
    parts_of_limit = [part_of(v, -strongest, strongest) for v in numbers] if numbers else [None] * len(words)
    heats = [heat_of(part) for part in parts_of_limit]
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
    step = max(each.height for each in made) + 2 * gap
    children = tuple((each, x, n * step) for n, line in enumerate(lines) for each, x in line)
    wide = max(x + each.width for each, x, _ in children)
    axis = (wide / 2, made[0].middle[1]) if len(lines) == 1 else None
    parts = dict(enumerate(made))
    return Shape(wide, len(lines) * step - 2 * gap, None, children, axis, parts)


def _numbers(values: object) -> list[Number]:
    found = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(found, list | tuple) or not all(is_number(v) and math.isfinite(v) for v in found):
        raise ValueError(f"expected a row of finite numbers, got {values!r}")
    return [float(value) for value in found]


def _token(word: str, note: str, *, role: str, heat: Number | None, size: Number) -> Shape:
    """Return a box with a word, and a line beneath it that belongs to it."""
    lines = note.split("\n") if note else []
    wide = max(text_width(word, size=size, literal=True) + 10, 20)
    wide = max([wide, *(text_width(line, size=SMALLEST + 0.5) + 2 for line in lines)])
    tall = size * LINE + 8
    body = cell_of(word, role=role, heat=heat, width=wide, height=tall, size=size, literal=True)

    def ink(pen: Pen, x: Number, y: Number) -> None:
        for n, line in enumerate(lines):
            pen.text(x + wide / 2, y + tall + 8 + n * SMALL * LINE, line, size=SMALLEST + 0.5, muted=True)

    beneath = len(lines) * SMALL * LINE + 1 if lines else 0
    return Shape(wide, tall + beneath, ink, ((body, 0, 0),), (wide / 2, tall / 2))
