"""Text <-> ids by byte-pair encoding, which can encode every string because it begins with bytes."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import index
from pathlib import Path
from typing import Any, ClassVar, Self

from exformer.tokenizers.bpe_merges import MAX_TOKENS, apply_merges, learn_merges
from exformer.tokenizers.pretokenize import split_pieces
from exformer.tokenizers.text_normalization import normalize_text
from exformer.tokenizers.token_file import read_content, write_content
from exformer.tokenizers.tokenizer import check_texts, wrong_argument
from exformer.tokenizers.vocabulary import BOS_ID, EOS_ID, PAD_ID, SPECIALS, check_ids

# GPT-2's order of the bytes: printable ones first. It decides between pairs that are equally frequent.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_BYTES = bytes(_PRINTABLE + [byte for byte in range(256) if byte not in _PRINTABLE])
_BYTE_TOKENS = {byte: chr(len(SPECIALS) + index) for index, byte in enumerate(_BYTES)}
_FIRST = len(SPECIALS) + len(_BYTES)  # the id of the first merge
_UTF_32 = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"
_MAX_BYTES = 2**27  # a short file can hold merges that double a token a hundred times


def _byte_tokens(piece: str) -> str:
    """Return the bytes of a piece as a string of tokens: the character whose code is the byte's id."""
    return piece.encode("utf-8", "surrogateescape").decode("latin-1").translate(_BYTE_TOKENS)


class _PieceCache(dict[str, str]):
    """Cache the tokens of each piece of text, within bounds."""

    max_pieces, max_length = 2**18, 2**8

    def __init__(self, merges: dict[str, str]):
        super().__init__()
        self.merges = merges

    def __missing__(self, piece: str) -> str:
        tokens = apply_merges(_byte_tokens(piece), self.merges)
        if len(piece) <= self.max_length:
            if len(self) >= self.max_pieces:
                self.clear()
            self[piece] = tokens
        return tokens


class BPETokenizer:
    """Cut a text into byte sequences that were frequent in the texts from which it was learned.

    Ids: the special tokens, the 256 bytes, then one for each merge. ``decode(encode(text))`` is the text as
    :func:`~exformer.tokenizers.text_normalization.normalize_text` returns it, and
    ``decode_bytes(encode_bytes(data))`` is the data, whatever the bytes are. A special token within a text is
    plain text: "</s>" is four ordinary characters and never becomes ``eos_id``.

    Args:
        merges: Pairs of ids, in the order in which they were learned; the first one makes the id 259.

    Raises:
        ValueError: If they are not pairs of integers, a pair is repeated or has an id that is special or not
            made before, or the tokens take more than 128 MiB together.

    >>> tokenizer = BPETokenizer.from_texts(["peter piper picked a peck of pickled peppers"], n_merges=3)
    >>> [tokenizer.tokens[index] for index in tokenizer.encode("picky paper")]
    [b'pi', b'ck', b'y', b' ', b'p', b'a', b'pe', b'r']
    """

    kind: ClassVar[str] = "byte-pair"  # the name in a file

    def __init__(self, merges: Iterable[tuple[int, int]]):
        try:
            self.merges = tuple((index(first), index(second)) for first, second in merges)
        except (TypeError, ValueError):
            message = wrong_argument(type(self), merges, expected="merges, a list of pairs of ids")
            raise ValueError(message) from None
        self.tokens = _token_bytes(self.merges)
        self.vocab_size = len(self.tokens)
        self.pad_id, self.bos_id, self.eos_id = PAD_ID, BOS_ID, EOS_ID
        pairs = {chr(a) + chr(b): chr(_FIRST + rank) for rank, (a, b) in enumerate(self.merges)}
        self._pieces = _PieceCache(pairs)

    @classmethod
    def from_texts(
        cls, texts: Iterable[str], *, n_merges: int, min_count: int = 2, progress: str = ""
    ) -> Self:
        """Learn the merges from texts.

        Args:
            texts: A list of texts, even if there is only one.
            n_merges: Number of merges to learn.
            min_count: The least number of times that a pair must occur; learning stops when no pair does.
            progress: Title of a progress bar; empty for none.

        Raises:
            ValueError: If ``texts`` is a single string, there is no text, a text holds half a surrogate pair,
                or a number is too small.

        Source:
            Radford et al. 2019, section 2.2.
        """
        check_texts(texts)
        pieces: Counter[str] = Counter()
        for text in texts:
            pieces.update(split_pieces(normalize_text(text)))
        if not pieces:
            raise ValueError("the texts have no characters: merges need at least one text that is not empty")
        merges = learn_merges(
            {_byte_tokens(piece): count for piece, count in pieces.items()},
            n_merges=n_merges,
            first=_FIRST,
            min_count=min_count,
            progress=progress,
        )
        return cls((ord(first), ord(second)) for first, second in merges)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a normalized text, without special tokens.

        Raises:
            ValueError: If the text is not a string, or holds half a surrogate pair.
        """
        return self._ids(normalize_text(text))

    def encode_bytes(self, data: bytes) -> list[int]:
        """Return the ids of bytes exactly as they are, without normalization."""
        return self._ids(data.decode("utf-8", "surrogateescape"))

    def _ids(self, text: str) -> list[int]:
        tokens = "".join(map(self._pieces.__getitem__, split_pieces(text)))
        # Reading all codes at once takes 12% less time than map(ord, tokens).
        return memoryview(tokens.encode(_UTF_32, "surrogatepass")).cast("I").tolist()

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text; special tokens are left out, and invalid UTF-8 becomes U+FFFD.

        Raises:
            ValueError: If an id is outside the vocabulary.
        """
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes, which may begin or end within a character; special tokens are left out.

        Raises:
            ValueError: If an id is outside the vocabulary.
        """
        return b"".join([self.tokens[number] for number in check_ids(ids, vocab_size=self.vocab_size)])

    def render(self, token: int) -> str:
        r"""Return a token as readable text, with ``\x`` escapes for bytes that are not characters.

        Raises:
            ValueError: If the id is outside the vocabulary.

        >>> tokenizer = BPETokenizer.from_texts(["né né"], n_merges=1)
        >>> [tokenizer.render(token) for token in tokenizer.encode("né é")]
        ['n\\xc3', '\\xa9', ' ', '\\xc3', '\\xa9']
        """
        check_ids([token], vocab_size=self.vocab_size)
        if token < len(SPECIALS):
            return SPECIALS[token]
        text = self.tokens[token].decode("utf-8", "backslashreplace")
        return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)

    def __repr__(self) -> str:
        """Name the size and the newest tokens."""
        newest = [self.render(token) for token in range(max(_FIRST, self.vocab_size - 4), self.vocab_size)]
        tokens = f": …, {', '.join(map(repr, newest))}" if newest else ""
        return f"BPETokenizer({self.vocab_size} tokens{tokens})"

    def save(self, path: str | Path) -> None:
        """Write the tokenizer as a JSON file."""
        write_content(path, kind=self.kind, content={"merges": self.merges})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that ``save`` wrote.

        Raises:
            ValueError: If the file is not of this kind, or damaged.
        """
        merges: Any = read_content(path, kind=cls.kind).get("merges")
        if not isinstance(merges, list) or not all(map(_is_pair, merges)):
            raise ValueError(f"{path} is damaged: 'merges' must be a list of pairs of ids")
        try:
            return cls((first, second) for first, second in merges)
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error


def _is_pair(given: object) -> bool:
    return isinstance(given, list) and [type(index) for index in given] == [int, int]


def _token_bytes(merges: Sequence[tuple[int, int]]) -> tuple[bytes, ...]:
    """Return the bytes of each token; a special token has none.

    Raises:
        ValueError: If the merges are not in order, or the tokens are too long.
    """
    if _FIRST + len(merges) > MAX_TOKENS:
        raise ValueError(f"there must be at most {MAX_TOKENS - _FIRST:,} merges, got {len(merges):,}")
    tokens, n_bytes = [*[b""] * len(SPECIALS), *(bytes([byte]) for byte in _BYTES)], 0
    for pair in merges:
        if not all(len(SPECIALS) <= index < len(tokens) for index in pair):
            known = f"{len(SPECIALS)} to {len(tokens) - 1}"
            raise ValueError(f"the merge that makes {len(tokens)} must join ids of {known}, got {pair}")
        tokens.append(tokens[pair[0]] + tokens[pair[1]])
        n_bytes += len(tokens[-1])
        if n_bytes > _MAX_BYTES:
            raise ValueError(f"all tokens together must have at most {_MAX_BYTES:,} bytes, got more")
    if len(set(merges)) < len(merges):
        twice = [pair for pair, count in Counter(merges).items() if count > 1]
        raise ValueError(f"expected different merges, got {twice[:5]} twice")
    return tuple(tokens)
