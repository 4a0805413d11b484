"""The types of examples: a text with its target, and a training set with its test set."""

from dataclasses import dataclass
from typing import Generic, TypeVar

Example = TypeVar("Example")


@dataclass(frozen=True, slots=True)
class Pair:
    """A source text and its target text, with what the corpus knows about them.

    In made-up languages, both texts are words with one space between them; a word is indexed as in
    ``source.split()`` or ``target.split()``.

    Args:
        source: The text to translate, copy or answer.
        target: Its translation, copy or answer.
        construction: The kind of sentence, as the corpus names it; empty if there are no kinds.
        antecedent: The source noun to which the pronoun refers; empty without a pronoun.
        alignment: (source index, target index) of each pair of words that translate each other.
    """

    source: str
    target: str
    construction: str = ""
    antecedent: str = ""
    alignment: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Split(Generic[Example]):
    """A training set and a test set without common examples; each language's ``sampling.py`` draws its own.

    Args:
        train: Examples to learn from.
        test: Examples to evaluate on.
    """

    train: list[Example]
    test: list[Example]
