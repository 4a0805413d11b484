"""Weights between the words of two rows."""

from collections.abc import Callable
from typing import Any

from exformer_lessons.diagrams.lettering import Number, short
from exformer_lessons.diagrams.marks import Mark, Places, box_of
from exformer_lessons.diagrams.pen import Pen
from exformer_lessons.diagrams.routes import bezier
from exformer_lessons.diagrams.shapes import Shape
from exformer_lessons.diagrams.theme import role_named


def links(
    queries: Shape,
    keys: Shape,
    weights: object,
    *,
    role: str = "high",
    least: Number = 0.05,
) -> list[Mark]:
    """Draw weights as lines between two rows of tokens: the larger, the thicker.

    Args:
        queries: A row of tokens, whose words attend; or a column, beside that of the keys.
        keys: A row of tokens, to which they attend.
        weights: Numbers (query, key) from 0 to 1.
        role: Whose color the lines have.
        least: Weights below it are not drawn.

    Raises:
        ValueError: If both rows are the same, there is not one weight for each pair of tokens, or one is not
            between 0 and 1.

    Examples:
        >>> from exformer_lessons.diagrams import column, draw, links, tokens
        >>> italian, english = tokens(["il", "gatto"]), tokens(["the", "cat"])
        >>> lines = links(italian, english, [[0.9, 0.1], [0.2, 0.8]])
        >>> draw(column(english, italian, gap=60), lines).svg.count("<path")
        4
    """
    if queries is keys:
        raise ValueError("expected two rows of tokens, got one twice: draw it again for the keys")
    found: Any = weights.tolist() if hasattr(weights, "tolist") else weights
    n, m = len(queries.parts), len(keys.parts)
    if len(found) != n or any(len(each) != m for each in found):
        sizes = " or ".join(str(size) for size in sorted({len(each) for each in found}))
        raise ValueError(f"expected weights of {n} × {m} tokens, got {len(found)} × {sizes}")
    wrong = next((w for each in found for w in each if not -1e-6 <= w <= 1 + 1e-6), None)
    if wrong is not None:
        raise ValueError(f"weights must be between 0 and 1, got {wrong}")
    role_named(role)
    drawn = sorted((w, i, j) for i, each in enumerate(found) for j, w in enumerate(each) if w >= least)
    return [
        _link(
            queries[i],
            keys[j],
            min(1.0, max(0.0, w)),
            role,
            beside=lambda places: _upright(queries, places) and _upright(keys, places),
        )
        for w, i, j in drawn
    ]


def _upright(tokens: Shape, places: Places) -> bool:
    """Return whether the tokens are a column: the first two are beneath each other."""
    return len(tokens.parts) > 1 and box_of(tokens[1], places).y0 >= box_of(tokens[0], places).y1


def _link(
    query: Shape,
    key: Shape,
    weight: Number,
    role: str,
    *,
    beside: Callable[[Places], bool],
) -> Mark:
    def ink(pen: Pen, places: Places) -> None:
        a, b = box_of(query, places), box_of(key, places)
        middle_a, middle_b = (a.x0 + a.x1) / 2, (b.x0 + b.x1) / 2
        if beside(places):
            right = b.x0 > a.x0
            p = (a.x1 if right else a.x0, (a.y0 + a.y1) / 2)
            q = (b.x0 if right else b.x1, (b.y0 + b.y1) / 2)
            c, d = ((p[0] + q[0]) / 2, p[1]), ((p[0] + q[0]) / 2, q[1])
        else:
            down = b.y0 > a.y0
            p, q = (middle_a, a.y1 if down else a.y0), (middle_b, b.y0 if down else b.y1)
            c, d = (p[0], 0.55 * p[1] + 0.45 * q[1]), (q[0], 0.45 * p[1] + 0.55 * q[1])
        words = [f"{short(x)} {short(y)}" for x, y in (p, c, d, q)]
        points = [bezier(p, c, d, q, n / 16) for n in range(17)]
        steps = f"M{words[0]}C{words[1]} {words[2]} {words[3]}"
        opacity = 0.3 + 0.7 * weight
        pen.path(points, steps=steps, role=role, width=0.6 + 5.0 * weight, opacity=opacity)

    return Mark(ink)
