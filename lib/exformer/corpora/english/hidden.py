"""A word taken out of a sentence: how probable each word is there, given both sides."""

from exformer.corpora.english import parsing
from exformer.corpora.english.language import known_words
from exformer.corpora.english.rules import GRAMMAR


def hidden_distribution(left: str, right: str) -> dict[str, float]:
    r"""Return the true probability of each word between two pieces of a sentence.

    .. math:: p(w \mid \text{left}, \text{right})
              = \frac{p(\text{left}\; w\; \text{right})}{\sum_v p(\text{left}\; v\; \text{right})}

    Args:
        left: The words before the hidden one; may be empty.
        right: The words after it, to the end of the sentence; may be empty.

    Returns:
        word -> probability, the most probable first.

    Raises:
        ValueError: If no word in the gap makes a sentence, or a word is unknown.

    >>> {word: round(p, 2) for word, p in hidden_distribution("", "men sleep").items()}
    {'the': 0.48, 'some': 0.24, 'many': 0.16, 'these': 0.12}
    """
    before, after = known_words(left), known_words(right)
    stacks, place = parsing.read(GRAMMAR, before)
    found = {}
    for word in parsing.next_words(GRAMMAR, stacks) if place is None else ():
        rest = parsing.advance(GRAMMAR, stacks, word)
        for each in after:
            rest = parsing.advance(GRAMMAR, rest, each)
        if () in rest:
            found[word] = rest[()]
    if not found:
        raise ValueError(f"no one word makes a sentence of {left!r} … {right!r}")
    total = sum(found.values())
    return {word: p / total for word, p in sorted(found.items(), key=lambda item: (-item[1], item[0]))}
