"""What every tokenizer can do: text <-> token ids."""

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class Tokenizer(Protocol):
    """Say what every tokenizer can do.

    Ids run from 0 to ``vocab_size`` - 1. Three of them are special: ``pad_id`` fills up the short rows of a
    batch, ``bos_id`` and ``eos_id`` stand before and after a text. ``encode`` never gives them, ``decode``
    skips them.
    """

    vocab_size: int
    pad_id: int
    bos_id: int
    eos_id: int

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""
        ...


def check_texts(texts: Iterable[str]) -> None:
    """Refuse a single string where several texts are expected: each character would be taken for a text.

    Raises:
        ValueError: If it is a string.
    """
    if isinstance(texts, str):
        raise ValueError(f"expected a list of texts, got one string: write [{texts[:20]!r}]")
