"""Symbols <-> ids, kept in a file that holds nothing but text."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from exformer.tokenizers.token_file import read_content, write_content

PAD, BOS, EOS = SPECIALS = ("<pad>", "<s>", "</s>")
_MAX_HINTS = 5
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class Vocabulary:
    """Number the symbols: padding, begin and end of sequence first, then the others in the order given.

    Args:
        symbols: Different strings, none of them a special symbol.

    Raises:
        ValueError: If a symbol comes twice, is empty, is special or holds a lone surrogate.

    >>> Vocabulary(["il", "cane"]).ids(["cane", "il"])
    [4, 3]
    """

    def __init__(self, symbols: Iterable[str]):
        self.symbols = (*SPECIALS, *symbols)
        self._ids = {symbol: index for index, symbol in enumerate(self.symbols)}
        if len(self._ids) < len(self.symbols):
            twice = [symbol for symbol, count in Counter(self.symbols).items() if count > 1]
            raise ValueError(f"symbols must differ from each other and from {SPECIALS}, came twice: {twice}")
        if "" in self._ids:
            raise ValueError("a symbol must have at least one character, came an empty one")
        if halves := [symbol for symbol in self.symbols if _SURROGATE.search(symbol)]:
            raise ValueError(
                f"symbols must be whole characters, came lone surrogates in {halves[:_MAX_HINTS]}: "
                "the text was not read as UTF-8"
            )

    def __len__(self) -> int:
        """Return the number of symbols, special ones included."""
        return len(self.symbols)

    def ids(self, symbols: Sequence[str]) -> list[int]:
        """Return the id of each symbol.

        Raises:
            ValueError: If symbols are unknown; the message lists the first five with close matches, and says
                how many more there are.
        """
        unknown = [symbol for symbol in dict.fromkeys(symbols) if symbol not in self._ids]
        if unknown:
            hints = [self._hint(symbol) for symbol in unknown[:_MAX_HINTS]]
            hints += [f"and {len(unknown) - _MAX_HINTS} more"] * (len(unknown) > _MAX_HINTS)
            listed = "; ".join(hints)
            raise ValueError(f"expected symbols of the vocabulary ({len(self)}), came unknown ones: {listed}")
        return [self._ids[symbol] for symbol in symbols]

    def _hint(self, symbol: str) -> str:
        close = get_close_matches(symbol, self.symbols[len(SPECIALS) :])
        return f"{symbol!r} (close: {', '.join(map(repr, close))})" if close else repr(symbol)

    def lookup(self, ids: Sequence[int]) -> list[str]:
        """Return the symbol of each id, leaving out the special ones.

        Raises:
            ValueError: If an id is negative or too large.
        """
        outside = [index for index in ids if not 0 <= index < len(self)]
        if outside:
            raise ValueError(f"ids must be 0 to {len(self) - 1} (the vocabulary), came {outside}")
        return [self.symbols[index] for index in ids if index >= len(SPECIALS)]

    def save(self, path: str | Path, *, kind: str) -> None:
        """Write a JSON file all at once: a reader sees the old file or the new one, never half of it.

        Args:
            path: Where to; a file that is there is replaced.
            kind: Of the tokenizer that the symbols are for.
        """
        write_content(path, kind=kind, content={"symbols": self.symbols[len(SPECIALS) :]})

    @classmethod
    def load(cls, path: str | Path, *, kind: str) -> "Vocabulary":
        """Read what ``save`` wrote.

        Args:
            path: The file.
            kind: Of tokenizer that is wanted.

        Raises:
            ValueError: If the file is something else, of another kind, or damaged.
        """
        symbols: Any = read_content(path, kind=kind).get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise ValueError(f"{path} is damaged: 'symbols' must be a list of strings")
        try:
            return cls(symbols)
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error
