"""The interface of every tokenizer: text <-> token ids."""

import reprlib
from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class Tokenizer(Protocol):
    """The interface of every tokenizer.

    Ids run from 0 to ``vocab_size`` - 1. Three of them are special: ``pad_id`` fills up the short sequences
    of a batch, ``bos_id`` and ``eos_id`` mark the beginning and the end of a text. ``encode`` never returns
    them, and ``decode`` leaves them out. A text is encoded as
    :func:`~exformer.tokenizers.text_normalization.normalize_text` returns it.
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


def end_ids(tokenizer: Tokenizer) -> list[int]:
    """Return the tokens at which generation ends: ``eos_ids`` where a tokenizer has them, else ``eos_id``."""
    return list(getattr(tokenizer, "eos_ids", [tokenizer.eos_id]))


def wrong_argument(kind: type, got: object, *, expected: str) -> str:
    """Return the message for a tokenizer that is made from something else, such as a text."""
    texts = [got[:20]] if isinstance(got, str) else "texts"
    learn = f"to learn from texts, write {kind.__name__}.from_texts({texts})"
    return f"expected {expected}, got {reprlib.repr(got)}: {learn}"


def check_texts(texts: Iterable[str]) -> None:
    """Check that texts are a list: each character of a single string would be taken for a text.

    Raises:
        ValueError: If they are a string or not iterable.
    """
    if not isinstance(texts, Iterable):
        raise ValueError(f"expected a list of texts, got {type(texts).__name__}")
    if isinstance(texts, str):
        raise ValueError(f"expected a list of texts, got one string: write [{texts[:20]!r}]")
