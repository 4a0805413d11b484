"""Which pair is merged next: a reader predicts the merges of a text of their own."""

from collections import Counter
from itertools import pairwise

from exformer_lessons.diagrams import Diagram, column, draw, tokens
from exformer_lessons.live.figure import Live

TEXT = "Peter Piper picked a peck of pickled peppers"

Pair = tuple[str, str]


def learn(text: str, n_merges: int) -> tuple[list[tuple[str, ...]], list[tuple[Pair, int]]]:
    """Return the words of a text after some merges, and each merge with the count of its pair.

    Of pairs that occur equally often the first one in alphabetical order is merged. The merges end when no
    pair is left.

    >>> words, merges = learn("low lower", 2)
    >>> words, merges
    ([('low',), ('low', 'e', 'r')], [(('l', 'o'), 2), (('lo', 'w'), 2)])
    """
    words, merges = [tuple(word) for word in text.split()], []
    while len(merges) < n_merges:
        counts = Counter(pair for word in words for pair in pairwise(word))
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        words = [merge(word, best) for word in words]
        merges.append((best, counts[best]))
    return words, merges


def merge(word: tuple[str, ...], pair: Pair) -> tuple[str, ...]:
    """Join a pair wherever it occurs in a word, from the left."""
    joined: list[str] = []
    i = 0
    while i < len(word):
        fits = word[i : i + 2] == pair
        joined.append("".join(pair) if fits else word[i])
        i += 2 if fits else 1
    return tuple(joined)


def still() -> Diagram:
    """Draw the text after no merge, after two and after six: what is to be seen where nothing runs."""
    rows = []
    for n in (0, 2, 6):
        words, merges = learn(TEXT, n)
        made = {"".join(pair) for pair, _ in merges}
        rows += [[token for word in words for token in (*word, " ")][:-1]]
        rows[-1] = tokens(
            rows[-1], role=["focus" if token in made else "plain" for token in rows[-1]], size=11, gap=1
        )
    return draw(column(*rows, gap=16, align="left"))


FIGURE = Live(
    name="merges",
    still=still,
    alt=(
        "The sentence about Peter Piper as single letters, after two merges, which make the tokens pe and "
        "ck, and after six, which also make ed, ick, pick and per."
    ),
    caption=(
        "Press a pair: the counts appear, and the merge is made. Below, a new word is encoded with the "
        "merges so far."
    ),
)
