"""A query and a key that are moved along a text, and their score: no code, a sinusoidal and a rotary one."""

import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from exformer.nn.positions.absolute import sinusoidal_encoding
from exformer.nn.positions.rotary import rotate
from exformer_lessons.diagrams import Diagram, draw, label, matrix
from exformer_lessons.live.figure import Live

CODES = ("no code", "sinusoidal", "rotary")
N_POSITIONS = 80
#: Placements of query and key in the still picture.
SHOWN = ((6, 5), (20, 19), (60, 59), (5, 6), (6, 68))


def scores(code: str) -> Float[Tensor, "query key"]:
    """Return a trained head's scores of one token's query for another token's key, at all pairs of positions.

    The heads are the first of three readers of lesson 05; ``book/_tools/position_heads.py`` trains them and
    writes the numbers that are used here and in the page.

    Args:
        code: Of :data:`CODES`.

    >>> from exformer_lessons.positional_encoding.live import scores
    >>> rotary = scores("rotary")
    >>> bool((rotary[6, 5] - rotary[60, 59]).abs() < 1e-9)  # the same offset
    True
    """
    q, k = (_vectors(code, name) for name in "qk")
    return q @ k.T / math.sqrt(q.size(-1))


def _vectors(code: str, name: str) -> Float[Tensor, "position d_head"]:
    """Return the query or the key at each position."""
    text = Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
    head = {part: torch.tensor(x, dtype=torch.float64) for part, x in json.loads(text)[code].items()}
    if code == "no code":
        return head[name].expand(N_POSITIONS, -1)
    if code == "rotary":
        return rotate(head[name].expand(N_POSITIONS, -1), torch.arange(N_POSITIONS))
    x = head[f"x_{name}"]
    coded = x + sinusoidal_encoding(N_POSITIONS, d_model=len(x), dtype=torch.float64)
    normal = F.layer_norm(coded, x.shape, head["weight"], head["bias"])
    return normal @ head[f"w_{name}"].T + head[f"b_{name}"]


def still() -> Diagram:
    """Draw the scores of some placements: what is to be seen where the figure cannot live."""
    rows = [[f"{scores(code)[n, m].item() + 0.0:.1f}" for n, m in SHOWN] for code in CODES]
    written = [[each.replace("-0.0", "0.0").replace("-", "−") for each in row] for row in rows]
    names = [f"{n}, {m}" for n, m in SHOWN]
    fill = [["plain"] * 5, ["plain"] * 5, ["focus"] * 3 + ["plain"] * 2]
    shown = matrix(written, rows=CODES, columns=names, cell=(50, 30), fill=fill)
    return draw(label(shown, above="positions of query and key", size=12))


FIGURE = Live(
    name="positions",
    still=still,
    alt=(
        "Scores of a query for a key, at five pairs of positions. Without a code the score is −1.6 at all"
        " of them. With a sinusoidal code it is 8.9 at query 6 and key 5, 3.2 and 3.3 when both move to "
        "20 and 19 and to 60 and 59. With a rotary code it is 37.7 at all three, 25.6 when query and key "
        "are exchanged, and 37.3 for a key 62 positions after the query."
    ),
    caption=(
        "A trained head scores a key for a query; four circles show its eight columns, <em>q</em> thin and "
        "<em>k</em> thick. When both move, the rotary score stays, and the sinusoidal one varies. "
        "Gray: the positions of training."
    ),
)
