"""Sentences with labels: what the subject is, the number of each word, whether a verb is wrong."""

from dataclasses import dataclass
from random import Random

from exformer.check_settings import check_integer
from exformer.corpora.english.lexicon import CLASSES
from exformer.corpora.english.rules import FEATURES, GRAMMAR

KINDS = FEATURES["kind"]  #: The classes of a sentence: what its subject is.
NUMBERS = ("none", *FEATURES["number"])  #: The tags of words: without number, singular, plural.
_MOST = 1_000_000
_VERBS = ("BE", "SLEEP", "SEE", "SAY")
_PAIRS = [
    pair
    for verb in _VERBS
    for pair in zip(CLASSES[f"{verb}.singular"], CLASSES[f"{verb}.plural"], strict=True)
]
_OTHER_FORM = dict(_PAIRS) | {plural: singular for singular, plural in _PAIRS}


@dataclass(frozen=True, slots=True)
class LabeledSentence:
    """A sentence, its class, and a tag for each word.

    Args:
        sentence: Words with spaces between them.
        kind: What the subject of the main clause is, one of ``KINDS``.
        numbers: The number of each word, one of ``NUMBERS``. A determiner and an adjective have that of their
            noun: "the" and "small" do not show it themselves.
    """

    sentence: str
    kind: str
    numbers: tuple[str, ...]


def labeled_sample(n: int, *, seed: int) -> list[LabeledSentence]:
    """Sample sentences from the language, each by its probability, and label them.

    Args:
        seed: The sentences are those of ``sample`` with the same seed.

    Raises:
        ValueError: If n is not between 1 and 1,000,000.

    >>> found = labeled_sample(3, seed=4)[2]
    >>> found.sentence, found.kind, found.numbers
    ('a house was heavy', 'thing', ('singular', 'singular', 'singular', 'none'))
    """
    check_integer("n", n, least=1, most=_MOST)
    rng = Random(seed)
    return [_labeled(rng) for _ in range(n)]


def _labeled(rng: Random) -> LabeledSentence:
    """Expand the start symbol; each nonterminal keeps the number of the one above it."""
    words, numbers, subject = [], [], ""
    stack = [(GRAMMAR.start, "none")]
    while stack:
        symbol, above = stack.pop()
        if symbol not in GRAMMAR.rules:
            words.append(symbol)
            numbers.append(above)
            continue
        name, *features = symbol.split(".")
        if name == "NP" and not subject:
            subject = features[0]
        number = next((each for each in features if each in NUMBERS), "none")
        if name == "ADJECTIVE":  # it has one form: its noun decides
            number = above
        shown = number if symbol in CLASSES else "none"  # "that" in a plural noun phrase has no number
        parts = GRAMMAR.sample_rule(symbol, rng=rng)
        stack += [(part, number if part in GRAMMAR.rules else shown) for part in reversed(parts)]
    return LabeledSentence(" ".join(words), subject, tuple(numbers))


@dataclass(frozen=True, slots=True)
class JudgedSentence:
    """A text, and whether the grammar can generate it.

    Args:
        sentence: Words with spaces between them.
        right: False if one verb has the wrong number.
        original: The sentence of the grammar, before a verb was changed: to keep a sentence and its falsified
            twin on one side of a split.
    """

    sentence: str
    right: bool
    original: str


def judged_sample(n: int, *, seed: int) -> list[JudgedSentence]:
    """Sample sentences from the language, and give one verb of about half of them the wrong number.

    Args:
        seed: The same seed gives the same sample.

    Raises:
        ValueError: If n is not between 1 and 1,000,000.

    >>> found = judged_sample(1, seed=1)[0]
    >>> found.sentence, found.right, found.original
    ('every girl behind the big roads wait', False, 'every girl behind the big roads waits')
    """
    check_integer("n", n, least=1, most=_MOST)
    rng = Random(seed)
    found = []
    for _ in range(n):
        words, right = GRAMMAR.expand((GRAMMAR.start,), rng=rng), rng.random() < 0.5
        original = " ".join(words)
        if not right:
            index = rng.choice([index for index, word in enumerate(words) if word in _OTHER_FORM])
            words[index] = _OTHER_FORM[words[index]]
        found.append(JudgedSentence(" ".join(words), right, original))
    return found
