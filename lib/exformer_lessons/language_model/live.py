"""The next token: the loss of each, what else could come, beam search, and the key-value cache."""

from exformer_lessons.diagrams import Diagram, bars, column, draw, label, tokens
from exformer_lessons.live.figure import Live

MODEL = "shakespeare-bpe"
#: The first text of the figure, and minus the log-probability of each of its tokens under the model.
TEXT = "KATHARINA:\nWhat is your crest? a coxcomb?"
PIECES = (
    *("K", "A", "TH", "AR", "IN", "A", ":", "\n", "What", " is", " your"),
    *(" c", "re", "st", "?", " a", " c", "o", "x", "c", "om", "b", "?"),
)
NATS = (
    *(6.2, 2.7, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.2, 3.3, 2.0),
    *(4.2, 6.0, 2.6, 1.0, 6.7, 3.4, 2.7, 7.2, 6.7, 2.6, 3.4, 9.2),
)
#: What the model expects after "your crest?": the five most probable tokens, and all others together.
BEFORE = "KATHARINA:\nWhat is your crest?"
EXPECTED = {"\n": 0.819, " I": 0.019, " ": 0.011, " What": 0.010, " O": 0.010, "1,254 others": 0.131}


def still() -> Diagram:
    """Draw the text colored by loss, and what the model expects at one of its positions."""
    text = tokens(PIECES, values=NATS, digits=1, limit=8, size=12, gap=2)
    expected = bars({_visible(piece): p for piece, p in EXPECTED.items()}, width=130)
    return draw(column(text, label(expected, above="after your crest?"), gap=20))


def _visible(piece: str) -> str:
    return piece if piece in list(EXPECTED)[5:] else piece.replace(" ", "␣").replace("\n", "↵")


FIGURE = Live(
    name="next-token",
    still=still,
    models=(MODEL,),
    alt=(
        "Katharina: What is your crest? a coxcomb? Each token has its loss beneath it. The pieces of coxcomb "
        "cost 3.4, 2.7, 7.2, 6.7, 2.6 and 3.4 nats and the question mark after it 9.2; the end of the name, "
        "the colon and the line break cost 0.0. Below are bars: after your crest? a line break has 0.82, "
        "four other tokens 0.01 to 0.02 each, and 1,254 others together 0.13."
    ),
    caption="Beneath each token is its loss in nats. Choose a token, or type your own text.",
)
