"""Sampled sentences: training sets, test sets of new combinations, and minimal pairs for "it"."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from random import Random

from exformer.check_settings import check_integer
from exformer.corpora.english_italian.combinations import facts, is_held_out
from exformer.corpora.english_italian.grammar import (
    CONSTRUCTIONS,
    DEGREES,
    PREPOSITIONS,
    NounPhrase,
    Sentence,
    derive,
)
from exformer.corpora.english_italian.lexicon import ADJECTIVES, ANIMALS, PLACES, VERBS
from exformer.corpora.examples import Pair, Split

_NOUNS = {"animal": ANIMALS, "place": PLACES}
_ADJECTIVES = {kind: [entry for entry in ADJECTIVES if entry.kind == kind] for kind in _NOUNS}
_VERBS = {takes: [verb for verb in VERBS if verb.takes == takes] for takes in ("nothing", "animal", "place")}
_OBJECT = {"intransitive": "nothing", "animal object": "animal", "place object": "place"}
_MIX = (*CONSTRUCTIONS, "pronoun")  # a third of the training sentences have an "it"
_MOST = 100_000  # with more pairs, a call would run out of sentences of the shortest kinds


def _noun_phrase(rng: Random, kind: str, *, plural: float = 0.4) -> NounPhrase:
    is_plural = rng.random() < plural
    determiner = "the" if rng.random() < 0.65 else "many" if is_plural else "a"
    adjective = rng.choice(_ADJECTIVES[kind]) if rng.random() < 0.5 else None
    return NounPhrase(determiner, rng.choice(_NOUNS[kind]), is_plural, adjective)


def _described(rng: Random, kind: str) -> dict[str, object]:
    return {"degree": rng.choice(list(DEGREES)), "adjective": rng.choice(_ADJECTIVES[kind])}


def _tree(rng: Random, construction: str) -> Sentence:
    negative = rng.random() < 0.5
    if construction == "copula":
        kind = rng.choice(("animal", "place"))
        return Sentence(_noun_phrase(rng, kind), negative=negative, **_described(rng, kind))
    if construction == "pronoun":
        subject, place = (_noun_phrase(rng, kind, plural=0.0) for kind in ("animal", "place"))
        described = _described(rng, rng.choice(("animal", "place")))
        return Sentence(subject, rng.choice(_VERBS["place"]), negative, place, **described)
    takes = _OBJECT[construction]
    tree = Sentence(_noun_phrase(rng, "animal"), rng.choice(_VERBS[takes]), negative)
    if takes != "nothing":
        tree = replace(tree, object=_noun_phrase(rng, takes))
    if takes != "place" and rng.random() < 0.5:
        tree = replace(tree, preposition=rng.choice(list(PREPOSITIONS)), place=_noun_phrase(rng, "place"))
    return tree


def _is_case(tree: Sentence, kind: str, decisive: bool) -> bool:
    return tree.adjective.kind == kind and facts(tree).decisive == decisive


def _pairs(rng: Random, n: int, *, mix: tuple[str, ...], accept: Callable[[Sentence], bool]) -> list[Pair]:
    """Sample n different accepted sentences: constructions in turn, and the four cases of "it" in turn.

    The four: "it" is the subject or the object, and the other noun would give another form or the same. A
    translator whose adjective always agrees with the subject is right in half of the sentences that can tell.
    """
    cases = itertools.cycle(itertools.product(("animal", "place"), (True, False)))
    found: dict[str, Pair] = {}
    for construction in itertools.islice(itertools.cycle(mix), n):
        case = next(cases) if construction == "pronoun" else None
        while True:
            tree = _tree(rng, construction)
            if (case is None or _is_case(tree, *case)) and accept(tree):
                pair = derive(tree)
                if pair.source not in found:
                    break
        found[pair.source] = pair
    return list(found.values())


def sample(n: int, *, seed: int) -> list[Pair]:
    """Sample n different sentences with their translations, in random order.

    A third of them have the pronoun construction, a sixth each of the other four.

    Args:
        seed: The same seed gives the same sentences.

    Raises:
        ValueError: If n is not between 1 and 100,000.
    """
    check_integer("n", n, least=1, most=_MOST)
    rng = Random(seed)
    pairs = _pairs(rng, n, mix=_MIX, accept=lambda tree: True)
    rng.shuffle(pairs)
    return pairs


def split(n_train: int, *, n_test: int, seed: int) -> Split[Pair]:
    """Sample a training set, and a test set whose every sentence has a combination that is new.

    Certain pairs of noun and adjective, and certain triples of subject, object and adjective around "it",
    are never in training; each test sentence has one of them. Their words are all in training, often.

    Args:
        n_train: Training sentences; a third have the pronoun construction.
        n_test: Test sentences, the same number of each construction.
        seed: Determines the sample; which combinations are held out does not depend on it.

    Returns:
        Training set and test set, each without repeats, in random order.

    Raises:
        ValueError: If a number is not between 1 and 100,000.
    """
    check_integer("n_train", n_train, least=1, most=_MOST)
    check_integer("n_test", n_test, least=1, most=_MOST)
    rng = Random(seed)
    train = _pairs(rng, n_train, mix=_MIX, accept=lambda tree: not is_held_out(tree))
    test = _pairs(rng, n_test, mix=CONSTRUCTIONS, accept=is_held_out)
    rng.shuffle(train)
    rng.shuffle(test)
    return Split(train, test)


def pronoun_pairs(n: int, *, seed: int) -> list[tuple[Pair, Pair]]:
    """Sample minimal pairs for "it": two sentences, alike but for the last word, that need different genders.

    "It" is the animal in the first and the place in the second. Both have held-out combinations.

    Args:
        seed: The same seed gives the same sample.

    Returns:
        (sentence about the animal, sentence about the place), no two alike.

    Raises:
        ValueError: If n is not between 1 and 100,000.
    """
    check_integer("n", n, least=1, most=_MOST)
    rng, found = Random(seed), {}
    while len(found) < n:
        tree = replace(_tree(rng, "pronoun"), adjective=rng.choice(_ADJECTIVES["animal"]))
        twin = replace(tree, adjective=rng.choice(_ADJECTIVES["place"]))
        if all(facts(each).decisive and is_held_out(each) for each in (tree, twin)):
            found.setdefault(derive(tree).source, (derive(tree), derive(twin)))
    return list(found.values())


def count_sentences() -> dict[str, int]:
    """Count the sentences of each construction: products of the numbers of choices.

    Returns:
        The number of different English sentences, by construction.
    """
    n_nouns, n_adjectives, n_verbs = (
        {k: len(v) for k, v in t.items()} for t in (_NOUNS, _ADJECTIVES, _VERBS)
    )
    # the or a, or in the plural the or many; without an adjective, or with one
    one = {kind: 2 * n_nouns[kind] * (1 + n_adjectives[kind]) for kind in _NOUNS}
    any_number = {kind: 2 * count for kind, count in one.items()}
    denied, n_degrees = 2, len(DEGREES)
    where = 1 + len(PREPOSITIONS) * any_number["place"]
    animal, place = any_number["animal"], any_number["place"]
    return {
        "intransitive": animal * denied * n_verbs["nothing"] * where,
        "animal object": animal * denied * n_verbs["animal"] * animal * where,
        "place object": animal * denied * n_verbs["place"] * place,
        "copula": sum(any_number[kind] * denied * n_degrees * n_adjectives[kind] for kind in _NOUNS),
        "pronoun": one["animal"]
        * denied
        * n_verbs["place"]
        * one["place"]
        * n_degrees
        * sum(n_adjectives.values()),
    }
