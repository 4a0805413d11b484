"""Text <-> ids: a text cut into words or into characters, each with a number."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from exformer.tokenizers.vocabulary import BOS, EOS, PAD, SPECIALS, Vocabulary

__all__ = ["BOS", "EOS", "PAD", "CharTokenizer", "Tokenizer", "Vocabulary", "WordTokenizer"]


@runtime_checkable
class Tokenizer(Protocol):
    """Say what every tokenizer can do."""

    vocab_size: int
    pad_id: int
    bos_id: int
    eos_id: int

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without special symbols."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special symbols."""
        ...


def _clean(text: str) -> str:
    """Return the text, or refuse it if it holds a special symbol as plain text."""
    found = [symbol for symbol in SPECIALS if symbol in text]
    if found:
        raise ValueError(f"a text must not hold the special symbols, came {found} in {text[:60]!r}")
    return text


def _sorted_symbols(symbols: Iterable[str]) -> Vocabulary:
    different = sorted(set(symbols))
    if not different:
        raise ValueError("the texts have no symbols: a vocabulary needs at least one text that is not empty")
    return Vocabulary(different)


class WordTokenizer:
    """Cut a text into words at its spaces.

    ``decode(encode(text))`` has one space between two words, and none at the ends.

    Args:
        vocabulary: The symbols and their ids.

    >>> tokenizer = WordTokenizer.from_texts(["il cane", "la volpe"])
    >>> tokenizer.encode("la volpe"), tokenizer.decode([5, 6])
    ([5, 6], 'la volpe')
    """

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary, self.vocab_size = vocabulary, len(vocabulary)
        self.pad_id, self.bos_id, self.eos_id = range(len(SPECIALS))

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> "WordTokenizer":
        """Make the vocabulary from texts; the words are sorted, so that ids depend on nothing else.

        Raises:
            ValueError: If there is no word, or a text holds a special symbol.
        """
        return cls(_sorted_symbols(word for text in texts for word in _clean(text).split()))

    def encode(self, text: str) -> list[int]:
        """Return the id of each word, without special symbols.

        Raises:
            ValueError: If words are unknown, or the text holds a special symbol.
        """
        return self.vocabulary.ids(_clean(text).split())

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text; special symbols are left out.

        Raises:
            ValueError: If an id is outside the vocabulary.
        """
        return " ".join(self.vocabulary.lookup(ids))

    def save(self, path: str | Path) -> None:
        """Write the tokenizer as a JSON file."""
        self.vocabulary.save(path, kind="word")

    @classmethod
    def load(cls, path: str | Path) -> "WordTokenizer":
        """Read a file that ``save`` wrote.

        Raises:
            ValueError: If the file is not of this kind, or damaged.
        """
        return cls(Vocabulary.load(path, kind="word"))


class CharTokenizer:
    """Cut a text into its characters.

    ``decode(encode(text))`` is the text.

    Args:
        vocabulary: The symbols and their ids.

    >>> tokenizer = CharTokenizer.from_texts(["il cane"])
    >>> tokenizer.decode(tokenizer.encode("lana"))
    'lana'
    """

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary, self.vocab_size = vocabulary, len(vocabulary)
        self.pad_id, self.bos_id, self.eos_id = range(len(SPECIALS))

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> "CharTokenizer":
        """Make the vocabulary from texts; the characters are sorted, so that ids depend on nothing else.

        Raises:
            ValueError: If there is no character, or a text holds a special symbol.
        """
        return cls(_sorted_symbols(character for text in texts for character in _clean(text)))

    def encode(self, text: str) -> list[int]:
        """Return the id of each character, without special symbols.

        Raises:
            ValueError: If characters are unknown, or the text holds a special symbol.
        """
        return self.vocabulary.ids(_clean(text))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text; special symbols are left out.

        Raises:
            ValueError: If an id is outside the vocabulary.
        """
        return "".join(self.vocabulary.lookup(ids))

    def save(self, path: str | Path) -> None:
        """Write the tokenizer as a JSON file."""
        self.vocabulary.save(path, kind="character")

    @classmethod
    def load(cls, path: str | Path) -> "CharTokenizer":
        """Read a file that ``save`` wrote.

        Raises:
            ValueError: If the file is not of this kind, or damaged.
        """
        return cls(Vocabulary.load(path, kind="character"))
