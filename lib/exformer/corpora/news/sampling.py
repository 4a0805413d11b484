"""Sampled articles: who did what where, told in many orders, with other names in between."""

from collections.abc import Sequence
from dataclasses import asdict
from random import Random

from exformer.check_settings import check_integer
from exformer.corpora.examples import Split
from exformer.corpora.news.lexicon import (
    DAYS,
    JOBS,
    NUMBERS,
    OPINIONS,
    TOWNS,
    events,
    persons,
)
from exformer.corpora.news.writing import (
    ASIDES,
    ENDINGS,
    OPENINGS,
    Facts,
    Report,
    fill,
    leave_out,
    summarize,
)

_MOST = 100_000
_N_ASIDES, _N_ENDINGS = 2, 2


def _two(rng: Random, words: list[str]) -> tuple[str, str]:
    """Sample two different words: the one that counts and the one that distracts."""
    first, second = rng.sample(words, 2)
    return first, second


def _draw(rng: Random, *, held_out: bool, omit: Sequence[str]) -> Report:
    person, other_person = _two(rng, _PERSONS[held_out])
    while set(person.split()) & set(other_person.split()):  # a name shared by two would be no distraction
        person, other_person = _two(rng, _PERSONS[held_out])
    verb, thing = rng.choice(_EVENTS[held_out])
    (town, other_town), (day, other_day) = _two(rng, TOWNS), _two(rng, DAYS)
    people, other_people = _two(rng, NUMBERS)
    opening, endings = rng.choice(OPENINGS), rng.sample(ENDINGS, _N_ENDINGS)
    asides = rng.sample(ASIDES, _N_ASIDES)
    job, opinion = rng.choice(JOBS), rng.choice(OPINIONS)
    middle = [*opening[2:], *asides]
    rng.shuffle(middle)
    facts = leave_out(Facts(person, verb, thing, town, day, people), omit)
    words = asdict(facts) | {
        "last": person.split()[1],
        "other_person": other_person,
        "other_town": other_town,
        "other_day": other_day,
        "other_people": other_people,
        "job": job,
        "opinion": opinion,
    }
    sentences = [fill(template, words) for template in (*opening[:2], *middle, *endings)]
    return Report(" ".join(filter(None, sentences)), summarize(facts), facts)


_PERSONS = {side: persons(held_out=side) for side in (True, False)}
_EVENTS = {side: events(held_out=side) for side in (True, False)}


def sample(n: int, *, seed: int, held_out: bool = False, omit: Sequence[str] = ()) -> list[Report]:
    """Sample n different articles with their summaries.

    Args:
        seed: The same seed gives the same articles.
        held_out: Whether they are of the persons and events kept for testing, or of the others.
        omit: Facts that no article says: of "day" and "people" those that are wanted. With the same seed all
            else stays as it is.

    Raises:
        ValueError: If n is not between 1 and 100,000, or a fact cannot be left out.
    """
    check_integer("n", n, least=1, most=_MOST)
    # A stream of its own for each side: no test article is the twin of a training article with other names.
    rng, found = Random(2 * seed + held_out), {}
    while len(found) < n:
        report = _draw(rng, held_out=held_out, omit=omit)
        found.setdefault(report.article, report)
    return list(found.values())


def split(n_train: int, *, n_test: int, seed: int) -> Split[Report]:
    """Sample a training set, and a test set whose every person and event is new as a combination.

    Certain first and last names never meet in training, nor do certain verbs and things. Each test article
    has one of these persons and one of these events; the words by themselves are all in training.

    Args:
        seed: Determines the sample; which combinations are held out does not depend on it.

    Returns:
        Training set and test set, each without repeats.

    Raises:
        ValueError: If a number is not between 1 and 100,000.
    """
    return Split(sample(n_train, seed=seed), sample(n_test, seed=seed, held_out=True))
