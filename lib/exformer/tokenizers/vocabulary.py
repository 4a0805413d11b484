"""Tokens <-> ids, and the JSON file that holds the tokens."""

import re
import reprlib
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from operator import index
from pathlib import Path
from typing import Any

from exformer.tokenizers.text_normalization import normalize_text
from exformer.tokenizers.token_file import read_content, write_content

PAD, BOS, EOS = SPECIALS = ("<pad>", "<s>", "</s>")
#: The ids of :data:`SPECIALS`; a vocabulary has them first.
PAD_ID, BOS_ID, EOS_ID = range(len(SPECIALS))
_MAX_HINTS = 5
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class Vocabulary:
    """The ids of tokens: padding, beginning and end of a text first, then the others in the given order.

    Args:
        tokens: Different strings, none of them a special token.

    Raises:
        ValueError: If a token is repeated, empty or special, or holds a lone surrogate.

    >>> vocabulary = Vocabulary(["il", "cane"])
    >>> vocabulary.tokens
    ('<pad>', '<s>', '</s>', 'il', 'cane')
    >>> vocabulary.ids(["cane", "il"])
    [4, 3]
    """

    def __init__(self, tokens: Iterable[str]):
        self.tokens = (*SPECIALS, *tokens)
        self._ids = {token: index for index, token in enumerate(self.tokens)}
        if len(self._ids) < len(self.tokens):
            twice = [token for token, count in Counter(self.tokens).items() if count > 1]
            raise ValueError(f"expected different tokens, none of them in {SPECIALS}, got {twice} twice")
        if "" in self._ids:
            raise ValueError("expected at least one character in each token, got an empty one")
        if halves := [token for token in self.tokens if _SURROGATE.search(token)]:
            raise ValueError(
                f"expected tokens of whole characters, got lone surrogates in {halves[:_MAX_HINTS]}: "
                "read the text as UTF-8"
            )

    @classmethod
    def from_tokens(cls, tokens: Iterable[str]) -> "Vocabulary":
        """Number the different tokens in sorted order, so that ids depend on nothing else.

        Raises:
            ValueError: If there is no token.
        """
        different = sorted(set(tokens))
        if not different:
            raise ValueError(
                "the texts have no tokens: a vocabulary needs at least one text that is not empty"
            )
        return cls(different)

    def __len__(self) -> int:
        """Return the number of tokens, special ones included."""
        return len(self.tokens)

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """Return the id of each token.

        Raises:
            ValueError: If tokens are unknown; the message lists the first five with close matches, and the
                number of the others.
        """
        unknown = [token for token in dict.fromkeys(tokens) if token not in self._ids]
        if unknown:
            hints = [self._hint(token) for token in unknown[:_MAX_HINTS]]
            hints += [f"and {len(unknown) - _MAX_HINTS} more"] * (len(unknown) > _MAX_HINTS)
            listed = "; ".join(hints)
            raise ValueError(f"expected tokens of the vocabulary ({len(self)}), got unknown ones: {listed}")
        return [self._ids[token] for token in tokens]

    def _hint(self, token: str) -> str:
        close = get_close_matches(token, self.tokens[len(SPECIALS) :])
        # A known token that is not normalized, as in old files, may look like the unknown one.
        shown = [repr(each) if each == normalize_text(each) else ascii(each) for each in close]
        return f"{token!r} (close: {', '.join(shown)})" if close else repr(token)

    def lookup(self, ids: Sequence[int]) -> list[str]:
        """Return the token of each id, without the special ones.

        Raises:
            ValueError: If an id is negative or too large.
        """
        numbers = check_ids(ids, vocab_size=len(self))
        return [self.tokens[number] for number in numbers if number >= len(SPECIALS)]

    def save(self, path: str | Path, *, kind: str) -> None:
        """Write a JSON file in one step: the old file stays until the new one is complete.

        Args:
            path: The file; one that exists is replaced.
            kind: The kind of tokenizer: "word" or "character".
        """
        write_content(path, kind=kind, content={"symbols": self.tokens[len(SPECIALS) :]})

    @classmethod
    def load(cls, path: str | Path, *, kind: str) -> "Vocabulary":
        """Read what ``save`` wrote for a tokenizer of this kind.

        Raises:
            ValueError: If the file is not a tokenizer, of another kind, or damaged.
        """
        tokens: Any = read_content(path, kind=kind).get("symbols")
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise ValueError(f"{path} is damaged: 'symbols' must be a list of strings")
        try:
            return cls(tokens)
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error


def check_ids(ids: Sequence[int], *, vocab_size: int) -> list[int]:
    """Check that every id is that of a token.

    Returns:
        The ids as integers of Python, also those of an array or a tensor.

    Raises:
        ValueError: If they are not a sequence of integers, or an id is negative or too large; the message
            lists the first five.
    """
    try:
        if getattr(ids, "ndim", 1) != 1:  # an array of several texts
            raise TypeError
        numbers = list(map(index, ids))
    except TypeError:
        raise ValueError(f"expected the integer ids of one text, got {reprlib.repr(ids)}") from None
    outside = [number for number in numbers if not 0 <= number < vocab_size]
    if outside:
        more = f" and {len(outside) - _MAX_HINTS} more" * (len(outside) > _MAX_HINTS)
        raise ValueError(f"expected ids from 0 to {vocab_size - 1}, got {outside[:_MAX_HINTS]}{more}")
    return numbers


def check_no_specials(text: str) -> str:
    """Check that no special token stands in a text, and return the text.

    Raises:
        ValueError: If one does.
    """
    found = [token for token in SPECIALS if token in text]
    if found:
        raise ValueError(f"expected a text without special tokens, got {found} in {text[:60]!r}")
    return text
