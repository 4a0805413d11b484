"""Recall, copy, reverse: tasks whose right answer is known at any length and any distance."""

from random import Random

from exformer.checks import whole_number
from exformer.corpora.pairs import Pair


def recall(
    n: int, *, n_pairs: int, n_keys: int, n_values: int, seed: int, distance: int | None = None
) -> list[Pair]:
    """Sample lists of keys with values, and ask for the value of one key.

    "k3 v1 k0 v4 k7 v1 ? k0" has the answer "v4". The keys of a list differ; values may come twice.

    Args:
        n_pairs: Keys in a list.
        n_keys: Different keys there are, at least ``n_pairs``.
        n_values: Different values there are, at least 2.
        seed: The same seed gives the same sample.
        distance: Pairs between the answer and the question: 0 asks for the last pair, ``n_pairs`` - 1 for the
            first; None draws one for each list. Value and question key are 2 · distance + 2 words apart.

    Returns:
        Source: the list and the question; target: the value; construction: "distance " and the distance.

    Raises:
        ValueError: If a number is too small, or the distance is outside the list.
    """
    _check(n=(n, 1), n_pairs=(n_pairs, 1), n_keys=(n_keys, n_pairs), n_values=(n_values, 2))
    if distance is not None and not 0 <= distance < n_pairs:
        raise ValueError(f"distance must be 0 to {n_pairs - 1} (n_pairs - 1), got {distance}")
    rng, found = Random(seed), []
    for _ in range(n):
        keys = [f"k{key}" for key in rng.sample(range(n_keys), n_pairs)]
        values = [f"v{rng.randrange(n_values)}" for _ in keys]
        back = rng.randrange(n_pairs) if distance is None else distance
        asked = n_pairs - 1 - back
        words = [word for pair in zip(keys, values, strict=True) for word in pair]
        found.append(Pair(" ".join([*words, "?", keys[asked]]), values[asked], f"distance {back}"))
    return found


def copy(n: int, *, length: int, n_symbols: int, seed: int) -> list[Pair]:
    """Sample strings of symbols; the target is the string itself.

    Args:
        length: Symbols in a string.
        n_symbols: Different symbols there are: "0", "1", ...
        seed: The same seed gives the same sample.

    Returns:
        Pairs; word i of the source is aligned with word i of the target.

    Raises:
        ValueError: If a number is too small.

    >>> pair = copy(1, length=4, n_symbols=9, seed=0)[0]
    >>> pair.source == pair.target
    True
    """
    strings = _strings(n, length=length, n_symbols=n_symbols, seed=seed)
    links = tuple((place, place) for place in range(length))
    return [Pair(" ".join(words), " ".join(words), "copy", "", links) for words in strings]


def reverse(n: int, *, length: int, n_symbols: int, seed: int) -> list[Pair]:
    """Sample strings of symbols; the target is the string read from its end.

    Args:
        length: Symbols in a string.
        n_symbols: Different symbols there are: "0", "1", ...
        seed: The same seed gives the strings that ``copy`` gives.

    Returns:
        Pairs; word i of the source is aligned with word length - 1 - i of the target.

    Raises:
        ValueError: If a number is too small.

    >>> pair = reverse(1, length=4, n_symbols=9, seed=0)[0]
    >>> pair.source.split() == pair.target.split()[::-1]
    True
    """
    strings = _strings(n, length=length, n_symbols=n_symbols, seed=seed)
    links = tuple((place, length - 1 - place) for place in range(length))
    return [Pair(" ".join(words), " ".join(words[::-1]), "reverse", "", links) for words in strings]


def _strings(n: int, *, length: int, n_symbols: int, seed: int) -> list[list[str]]:
    _check(n=(n, 1), length=(length, 1), n_symbols=(n_symbols, 2))
    rng = Random(seed)
    return [[str(rng.randrange(n_symbols)) for _ in range(length)] for _ in range(n)]


def _check(**numbers: tuple[int, int]) -> None:
    for name, (value, least) in numbers.items():
        whole_number(name, value, least=least)
