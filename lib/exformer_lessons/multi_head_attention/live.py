"""The heads of a translator's encoder: where each looks, and what the translation becomes without it."""

from collections.abc import Sequence
from dataclasses import replace

from exformer_lessons.diagrams import Diagram, Shape, column, draw, links, row, tokens
from exformer_lessons.live.figure import Live

MODEL = "multi30k-en-de"
#: The words of the first caption, and where each looks in the head that is chosen at first, the first of
#: layer 2; the last column is the end of the caption. It is what the figure computes first.
WORDS = ["A", "boy", "is", "pushing", "a", "shopping", "cart", "through", "the", "supermarket", "."]
WEIGHTS = (
    (0.01, 0.02, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.01, 0.16, 0.79),
    (0.17, 0.40, 0.02, 0.00, 0.00, 0.00, 0.02, 0.01, 0.00, 0.04, 0.07, 0.27),
    (0.26, 0.64, 0.08, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.01),
    (0.07, 0.11, 0.40, 0.35, 0.02, 0.00, 0.00, 0.00, 0.01, 0.01, 0.01, 0.01),
    (0.00, 0.00, 0.16, 0.82, 0.02, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00),
    (0.01, 0.01, 0.10, 0.27, 0.38, 0.11, 0.02, 0.00, 0.00, 0.01, 0.04, 0.05),
    (0.00, 0.00, 0.01, 0.01, 0.24, 0.45, 0.26, 0.00, 0.00, 0.00, 0.01, 0.01),
    (0.03, 0.01, 0.00, 0.00, 0.02, 0.10, 0.70, 0.09, 0.00, 0.01, 0.01, 0.02),
    (0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.06, 0.91, 0.02, 0.01, 0.00, 0.00),
    (0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.01, 0.08, 0.13, 0.72, 0.02, 0.02),
    (0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.90, 0.03, 0.06),
)
#: Of the forty captions of `exformer.corpora.captions`, written for the book: how many keep their
#: translation word for word without any one head, least and most, and without all heads of the encoder.
CAPTIONS, HEAD_OUT, ALL_OUT = 40, (36, 40), 7


def still() -> Diagram:
    """Draw the first state: two columns of words, and the weights between them."""
    source, keys = _upright(WORDS, align="right"), _upright([*WORDS, "</s>"], align="left")
    return draw(row(source, keys, gap=110, align="top"), links(source, keys, WEIGHTS, role="high", least=0.1))


def _upright(words: Sequence[str], *, align: str) -> Shape:
    boxes = [tokens([word]) for word in words]
    return replace(column(*boxes, gap=5, align=align), parts=dict(enumerate(boxes)))


FIGURE = Live(
    name="heads",
    still=still,
    models=(MODEL,),
    alt=(
        "The words of A boy is pushing a shopping cart through the supermarket twice, side by side, and "
        "lines from the left to the right: most words look at the word before them."
    ),
    caption=(
        "Where each word looks in one of the encoder’s sixteen heads. Choose another head, take it out, and "
        f"read what the translation becomes. Whichever head is out, at least {HEAD_OUT[0]} of {CAPTIONS} "
        f"translations stay the same; without all heads, {ALL_OUT} do."
    ),
)
