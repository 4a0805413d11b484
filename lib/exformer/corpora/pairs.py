"""A sentence and its translation, and the two sets that an experiment needs."""

from dataclasses import dataclass
from typing import Generic, TypeVar

Example = TypeVar("Example")


@dataclass(frozen=True, slots=True)
class Pair:
    """Hold a source text and its right target text, with what the corpus knows about them.

    In made-up languages both texts are words with one space between them, so that a word's index is that in
    ``source.split()`` or ``target.split()``.

    Args:
        source: The text to be translated, copied or answered.
        target: Its right translation, copy or answer.
        construction: Kind of sentence, in the words of the corpus that made it; empty if it has no kinds.
        antecedent: The source noun that the pronoun stands for; empty without a pronoun.
        alignment: (source index, target index) of each pair of words that translate each other.
    """

    source: str
    target: str
    construction: str = ""
    antecedent: str = ""
    alignment: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Split(Generic[Example]):
    """Hold a training set and a test set that share no example.

    Args:
        train: Examples to learn from.
        test: Examples to be judged by.
    """

    train: list[Example]
    test: list[Example]
