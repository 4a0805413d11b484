"""Sampled English sentences: training and test sets."""

from random import Random

from exformer.check_settings import check_integer
from exformer.corpora.english.rules import GRAMMAR
from exformer.corpora.examples import Split

_MOST = 1_000_000


def sample(n: int, *, seed: int) -> list[str]:
    """Sample sentences from the language, each by its probability, independently.

    Args:
        seed: The same seed gives the same sentences.

    Raises:
        ValueError: If n is not between 1 and 1,000,000.
    """
    check_integer("n", n, least=1, most=_MOST)
    rng = Random(seed)
    return [_sentence(rng) for _ in range(n)]


def split(n_train: int, *, n_test: int, seed: int) -> Split[str]:
    """Sample a training set, and a test set without any of its sentences.

    Short sentences are frequent, so the test has fewer of them than the language: the floor of a model
    on the test is ``nats_per_token(test)``, a little above the entropy.

    Args:
        seed: The same seed gives the same sample.

    Raises:
        ValueError: If a number is not between 1 and 1,000,000.
    """
    check_integer("n_train", n_train, least=1, most=_MOST)
    check_integer("n_test", n_test, least=1, most=_MOST)
    rng = Random(seed)
    train = [_sentence(rng) for _ in range(n_train)]
    seen, test = set(train), []
    while len(test) < n_test:
        sentence = _sentence(rng)
        if sentence not in seen:
            test.append(sentence)
    return Split(train, test)


def _sentence(rng: Random) -> str:
    return " ".join(GRAMMAR.expand((GRAMMAR.start,), rng=rng))
