"""The exact properties of the English language: probabilities, entropy, grammaticality, the next word."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from math import inf, log

from exformer.corpora.english import lengths, parsing
from exformer.corpora.english.lexicon import WORDS
from exformer.corpora.english.rules import GRAMMAR

_KNOWN = frozenset(WORDS)


def entropy() -> float:
    """Return the entropy of a sentence, in nats."""
    return GRAMMAR.entropy()


def expected_length() -> float:
    """Return the mean number of words of a sentence."""
    return GRAMMAR.expected_length()


def entropy_per_token() -> float:
    r"""Return the least loss that any language model can have on average, in nats per token.

    .. math:: \frac{H}{E[\mathrm{length}] + 1}

    The 1 is the end token, which a model predicts too. It is the limit of the loss over many sentences: all
    nats by all tokens.
    """
    return entropy() / (expected_length() + 1)


def sentence_probability(sentence: str) -> float:
    """Return the exact probability of a sentence; 0 if it is not grammatical.

    Args:
        sentence: Words of ``WORDS`` with spaces between them.

    Raises:
        ValueError: If a word is unknown.

    >>> sentence_probability("the keys is heavy"), sentence_probability("the keys are heavy") > 0
    (0.0, True)
    """
    stacks, _ = parsing.read(GRAMMAR, known_words(sentence))
    return stacks.get((), 0.0)


def is_grammatical(sentence: str) -> bool:
    """Return whether the grammar can generate a sentence.

    Args:
        sentence: Words of ``WORDS`` with spaces between them.

    Raises:
        ValueError: If a word is unknown.
    """
    return first_error(sentence) is None


def first_error(sentence: str) -> int | None:
    """Find the first ungrammatical word of a sentence.

    Args:
        sentence: Words of ``WORDS`` with spaces between them.

    Returns:
        The position of the first word that can't be there; the number of words if the sentence stops too
        early; None if it is grammatical.

    Raises:
        ValueError: If a word is unknown.

    >>> first_error("the keys to the cabinet is heavy"), first_error("the keys to"), first_error("he runs")
    (5, 3, 0)
    """
    words = known_words(sentence)
    stacks, place = parsing.read(GRAMMAR, words)
    if place is not None:
        return place
    return None if () in stacks else len(words)


def prefix_distribution(prefix: str, *, longest: int | None = None) -> dict[str, float]:
    """Return the true probability of each next word, given the words so far.

    Args:
        prefix: The first words of a sentence; may be empty.
        longest: Most words that a sentence may have, where longer ones are known to have been left out.

    Returns:
        word -> probability, the most probable first; ``END`` stands for the end of the sentence.

    Raises:
        ValueError: If no sentence, or none that short, begins with the prefix, or a word is unknown.

    >>> {word: round(p, 3) for word, p in prefix_distribution("the man sleeps").items()}
    {'</s>': 0.471, 'because': 0.196, 'again': 0.182, 'alone': 0.091, 'outside': 0.061}
    """
    words = known_words(prefix)
    stacks, place = parsing.read(GRAMMAR, words)
    if place is not None:
        allowed = parsing.next_words(GRAMMAR, parsing.read(GRAMMAR, words[:place])[0])
        first = ", ".join(list(allowed)[:6])
        raise ValueError(
            f"no sentence begins with {' '.join(words[: place + 1])!r}: after {' '.join(words[:place])!r} "
            f"may come {first}{', …' if len(allowed) > 6 else ''}"
        )
    if longest is None:
        return parsing.next_words(GRAMMAR, stacks)
    return _next_words_within(stacks, longest - len(words))


def _next_words_within(stacks: parsing.Stacks, room: int) -> dict[str, float]:
    found = {}
    for word in parsing.next_words(GRAMMAR, stacks):
        after = {(): stacks[()]} if word == parsing.END else parsing.advance(GRAMMAR, stacks, word)
        left = room - (word != parsing.END)
        found[word] = sum(p * lengths.chance_within(GRAMMAR, stack, left) for stack, p in after.items())
    total = sum(found.values())
    if not total:
        raise ValueError(f"no sentence that begins so has {room} more words or fewer: allow more")
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return {word: p / total for word, p in ranked if p}


def nats_per_token(sentences: Iterable[str]) -> float:
    """Compute the loss of the grammar itself on given sentences: the floor for a model on this very text.

    Args:
        sentences: At least one; words of ``WORDS`` with spaces between them.

    Returns:
        Nats per token, end tokens counted; infinite if a sentence is not grammatical.

    Raises:
        ValueError: If there is no sentence, or a word is unknown.
    """
    nats, tokens = 0.0, 0
    for sentence in sentences:
        p = sentence_probability(sentence)
        nats, tokens = nats - (log(p) if p else -inf), tokens + len(sentence.split()) + 1
    if not tokens:
        raise ValueError("there are no sentences to measure")
    return nats / tokens


def sentences(length: int) -> Iterator[tuple[str, float]]:
    """List all sentences of a length, each with its probability: 480 of 3 words, 1,522,080 of 6 words."""
    for words, p in lengths.derivations(GRAMMAR, length):
        yield " ".join(words), p


def known_words(text: str) -> list[str]:
    """Cut a text into words.

    Args:
        text: Words of ``WORDS`` with spaces between them.

    Raises:
        ValueError: If a word is unknown.
    """
    words = text.split()
    for word in words:
        if word not in _KNOWN:
            close = get_close_matches(word.lower(), WORDS)
            hint = f"did you mean {' or '.join(close)}?" if close else "WORDS lists those known"
            raise ValueError(f"the word {word!r} is not in the language: {hint}")
    return words
