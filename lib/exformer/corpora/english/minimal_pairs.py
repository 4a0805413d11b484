"""Minimal pairs: beginnings of sentences before a verb or a pronoun, with a right word and a wrong one."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from exformer.check_settings import check_integer
from exformer.corpora.english.lexicon import CLASSES
from exformer.corpora.english.rules import FEATURES, GRAMMAR

_MOST = 1_000_000
_LONGEST = 20  # attractors
_TRIES = 20  # for each item, until we report that there are not so many different ones
_VERBS = dict.fromkeys(FEATURES["living"], ("BE", "SLEEP", "SEE")) | {"way": ("BE",), "thing": ("BE",)}


@dataclass(frozen=True, slots=True)
class MinimalPair:
    """A prefix of a sentence, a word that may follow it and one that may not.

    Args:
        prefix: The first words of a sentence, up to the word to be judged.
        right: A next word that the grammar allows.
        wrong: The same word in a form that the grammar forbids here: its probability is 0.
    """

    prefix: str
    right: str
    wrong: str


def agreement_items(n: int, *, attractors: int, seed: int) -> list[MinimalPair]:
    """Sample beginnings that end before the verb: "the keys to the cabinet near the door" | are | is.

    Half of the subjects are singular, half plural.

    Args:
        n: How many; all prefixes differ.
        attractors: Nouns between the subject's noun and the verb, which differ from it in number.
        seed: The same seed gives the same sample.

    Raises:
        ValueError: If a number is too small, or there are not so many different prefixes.

    >>> agreement_items(1, attractors=2, seed=3)[0]
    MinimalPair(prefix='the big girls behind this cabinet near a cabinet', right='wait', wrong='waits')
    """
    check_integer("attractors", attractors, least=0, most=_LONGEST)

    def draw(rng: Random, turn: int) -> MinimalPair:
        number, other = ("singular", "plural")[:: 1 if turn % 2 else -1]
        kind = rng.choice(FEATURES["kind"])
        numbers = [number] + [other] * attractors
        prefix = _chain(rng, kinds=[kind] + [None] * attractors, numbers=numbers)
        verb = rng.choice(_VERBS[kind])
        forms = list(zip(CLASSES[f"{verb}.{number}"], CLASSES[f"{verb}.{other}"], strict=True))
        return MinimalPair(prefix, *rng.choice(forms))

    return _different(n, seed=seed, draw=draw)


def coreference_items(n: int, *, attractors: int, seed: int) -> list[MinimalPair]:
    """Sample beginnings that end before a pronoun: "the girl near the king sleeps because" | she | he.

    The pronoun refers to the subject, a man, a woman or an animal in turn.

    Args:
        n: How many; all prefixes differ.
        attractors: Nouns between the subject's noun and the verb, all of the wrong pronoun's gender.
        seed: The same seed gives the same sample.

    Raises:
        ValueError: If a number is too small, or there are not so many different prefixes.

    >>> coreference_items(1, attractors=1, seed=3)[0]
    MinimalPair(prefix='a brother near a sister waits because', right='he', wrong='she')
    """
    check_integer("attractors", attractors, least=0, most=_LONGEST)

    def draw(rng: Random, turn: int) -> MinimalPair:
        living = FEATURES["living"]
        kind = living[turn % len(living)]
        other = rng.choice([each for each in living if each != kind])
        subject = _chain(rng, kinds=[kind] + [other] * attractors, numbers=["singular"] * (attractors + 1))
        verb = GRAMMAR.expand(("SLEEP.singular",), rng=rng)[0]
        right, wrong = (CLASSES[f"PRONOUN.{each}.singular"][0] for each in (kind, other))
        return MinimalPair(f"{subject} {verb} because", right, wrong)

    return _different(n, seed=seed, draw=draw)


def _chain(rng: Random, *, kinds: list[str | None], numbers: list[str]) -> str:
    """Sample a noun phrase of nouns joined by prepositions; a kind that is None is left to chance."""
    symbols, last = [], ""
    for kind, number in zip(kinds, numbers, strict=True):
        if last:
            to = last == "way" and kind in (None, "thing") and rng.random() < 0.5  # as the grammar has it
            symbols.append("to" if to else "PREPOSITION")
            kind = "thing" if to else kind
        last = kind or rng.choice(FEATURES["kind"])
        symbols += [f"DETERMINER.{number}", f"NOMINAL.{last}.{number}"]
    return " ".join(GRAMMAR.expand(tuple(symbols), rng=rng))


def _different(n: int, *, seed: int, draw: Callable[[Random, int], MinimalPair]) -> list[MinimalPair]:
    """Sample n items with different prefixes; a turn that fails is repeated, so that cases stay balanced."""
    check_integer("n", n, least=1, most=_MOST)
    rng, found = Random(seed), {}
    for _ in range(_TRIES * n):
        item = draw(rng, len(found))
        found.setdefault(item.prefix, item)
        if len(found) == n:
            return list(found.values())
    raise ValueError(f"expected {n} different items, got {len(found)} in {_TRIES * n} samples: ask for fewer")
