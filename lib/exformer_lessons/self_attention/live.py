"""A soft lookup in the plane: a reader drags a query and the values, and the weighted mean follows."""

import torch
from jaxtyping import Float
from torch import Tensor

from exformer_lessons.diagrams import Diagram, Shape, draw
from exformer_lessons.diagrams.lettering import SMALL, Number
from exformer_lessons.diagrams.pen import Pen
from exformer_lessons.live.figure import Live

#: Water and money of the words of two sentences; those with neither are one entry. And how many each is.
BANK = (2.0, 2.0)
VECTORS = {
    "river": {"river": (5.0, 0.0), "bank": BANK, "swam": (2.0, 0.0), "five others": (0.0, 0.0)},
    "cash": {"cash": (0.0, 5.0), "bank": BANK, "six others": (0.0, 0.0)},
}
COUNTS = {"five others": 5, "six others": 6}
UNIT = 44  # units of the picture to one of the plane


def new_bank(noun: str) -> tuple[Float[Tensor, " word"], Float[Tensor, "2"]]:
    """Return the weights that *bank* gives to the words of a sentence, and the mean of their vectors.

    Args:
        noun: What names the sentence, ``river`` or ``cash``.

    >>> from exformer_lessons.self_attention.live import new_bank
    >>> weights, mean = new_bank("river")
    >>> [round(weight, 3) for weight in weights.tolist()], [round(x, 1) for x in mean.tolist()]
    ([0.689, 0.253, 0.034, 0.023], [4.0, 0.5])
    """
    vectors = torch.tensor(list(VECTORS[noun].values()), dtype=torch.float64)
    counts = torch.tensor([COUNTS.get(word, 1) for word in VECTORS[noun]], dtype=torch.float64)
    scores = vectors @ torch.tensor(BANK, dtype=torch.float64) / 2
    weights = (scores + counts.log()).softmax(dim=0)
    return weights, weights @ vectors


def still() -> Diagram:
    """Draw both sentences: the words, the triangles that they span, and the new *bank* in each."""

    def ink(pen: Pen, left: Number, top: Number) -> None:
        def at(x: Number, y: Number) -> tuple[Number, Number]:
            return left + 40 + UNIT * x, top + UNIT * (5.4 - y)

        pen.path([at(-0.3, 0), at(6.4, 0)], width=1, opacity=0.4)
        pen.path([at(0, -0.3), at(0, 5.4)], width=1, opacity=0.4)
        for name, x, y in (("water", 6.1, -0.25), ("money", 0.6, 5.3)):
            pen.text(*at(x, y), name, size=SMALL, muted=True)
        words = VECTORS["river"] | VECTORS["cash"]
        for noun in VECTORS:
            corners = [at(*words[each]) for each in ("five others", noun, "bank")]
            pen.path(corners, role="value", filled=True, opacity=0.16)
        for noun in VECTORS:
            x, y = new_bank(noun)[1].tolist()
            px, py = at(x, y)
            pen.path([at(*BANK), (px, py)], width=2, dash="4 3")
            pen.circle(px, py, 5, role="focus")
            for n, line in enumerate((f"*bank* beside *{noun}*", f"({x:.1f}, {y:.1f})")):
                pen.text(px + 12, py - 16 + 15 * n, line, size=SMALL, anchor="start", halo=True)
        for word, (x, y) in words.items():
            if word == "six others":
                continue
            px, py = at(x, y)
            pen.rectangle(px - 7, py - 7, 14, 14, role="value", radius=2)
            name = "the others" if word == "five others" else word
            beside, anchor = ((px + 13, py), "start") if y else ((px, py + 17), "middle")
            pen.text(*beside, name, size=SMALL, anchor=anchor, halo=True)

    return draw(Shape(40 + 6.6 * UNIT, 5.9 * UNIT, ink))


FIGURE = Live(
    name="lookup",
    still=still,
    alt=(
        "A plane with the axes water and money. River is at 5, 0, cash at 0, 5, bank at 2, 2, swam at 2, 0, "
        "and the other words at the origin. In the river sentence bank becomes 4.0, 0.5, inside the triangle "
        "of the origin, river and bank; in the cash sentence 0.5, 4.1, inside that of the origin, cash, bank."
    ),
    caption=(
        "Water and money of the words. Green: where their means can lie. Drag the query <em>q</em>, at first "
        "<em>bank</em>: the weights, as blue lines, and the mean, the new <em>bank</em>, follow. Drag a "
        "value: only the mean changes."
    ),
)
