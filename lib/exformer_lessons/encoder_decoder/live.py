"""The translator: where each English word looks, and what becomes of it when it is told to look elsewhere."""

from collections.abc import Sequence
from dataclasses import replace

from exformer_lessons.diagrams import Diagram, Shape, column, draw, links, row, tokens
from exformer_lessons.live.figure import Live

MODEL = "multi30k-de-en"
#: The words of the first caption, of its translation, and the mean weights over all heads of cross-attention
#: where each English word begins: what the figure computes first.
GERMAN = ["Zwei", "Hunde", "spielen", "im", "hohen", "Gras", "mit", "einem", "orangen", "Spielzeug", "."]
ENGLISH = ["Two", "dogs", "play", "with", "an", "orange", "toy", "in", "the", "tall", "grass", "."]
WEIGHTS = (
    (0.84, 0.07, 0.02, 0.00, 0.01, 0.01, 0.00, 0.00, 0.02, 0.00, 0.01),
    (0.05, 0.85, 0.03, 0.01, 0.01, 0.01, 0.01, 0.01, 0.00, 0.00, 0.01),
    (0.02, 0.07, 0.60, 0.05, 0.03, 0.04, 0.05, 0.01, 0.00, 0.01, 0.04),
    (0.01, 0.03, 0.07, 0.16, 0.02, 0.11, 0.40, 0.05, 0.01, 0.01, 0.05),
    (0.00, 0.01, 0.02, 0.04, 0.03, 0.03, 0.09, 0.34, 0.28, 0.10, 0.02),
    (0.02, 0.01, 0.02, 0.01, 0.03, 0.02, 0.02, 0.02, 0.69, 0.04, 0.05),
    (0.01, 0.01, 0.00, 0.00, 0.01, 0.03, 0.00, 0.01, 0.02, 0.80, 0.06),
    (0.00, 0.00, 0.01, 0.20, 0.03, 0.05, 0.12, 0.05, 0.04, 0.01, 0.22),
    (0.00, 0.00, 0.01, 0.25, 0.51, 0.05, 0.01, 0.01, 0.01, 0.01, 0.03),
    (0.02, 0.01, 0.01, 0.03, 0.70, 0.06, 0.03, 0.03, 0.03, 0.01, 0.02),
    (0.01, 0.01, 0.01, 0.01, 0.01, 0.69, 0.01, 0.02, 0.03, 0.07, 0.09),
    (0.00, 0.00, 0.01, 0.03, 0.04, 0.02, 0.11, 0.06, 0.03, 0.01, 0.26),
)


def still() -> Diagram:
    """Draw the first state: two columns of words, and the weights between them."""
    german, english = (
        _upright(GERMAN, role="encoder", align="right"),
        _upright(ENGLISH, role="decoder", align="left"),
    )
    return draw(row(german, english, gap=90), links(english, german, WEIGHTS, role="plain", least=0.1))


def _upright(words: Sequence[str], *, role: str, align: str) -> Shape:
    boxes = [tokens([word], role=role) for word in words]
    return replace(column(*boxes, gap=5, align=align), parts=dict(enumerate(boxes)))


#: What the caption says, measured on the forty captions of `exformer.corpora.captions`, written for the
#: book: pairs of an English and a German word; how often pointing gives the German word's translation.
PAIRS, MOVED = 290, 250

FIGURE = Live(
    name="translator",
    still=still,
    models=(MODEL,),
    alt=(
        "Eleven German words on the left, twelve English words on the right, and lines between them: "
        "most English words attend to their translation, and the lines cross, because German puts the "
        "grass before the toy."
    ),
    caption=(
        "Lines show where the decoder looks to predict each English word. If you point one at another German "
        f"word, it becomes that word’s translation in {MOVED} of {PAIRS} trials."
    ),
)
