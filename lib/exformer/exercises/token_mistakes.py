"""What goes wrong in cutting and joining tokens: each hint beside a function that makes the mistake."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor

Pair = tuple[int, int]


def merge(word: Sequence[int], pair: Pair, new: int) -> list[int]:
    """Merge rightly: from the left, each symbol in at most one pair."""
    return _merge(word, pair, new)


def _merge(word: Sequence[int], pair: Pair, new: int, *, step: int = 2, most: int = 999) -> list[int]:
    merged, place = [], 0
    while place < len(word):
        found = tuple(word[place : place + 2]) == tuple(pair) and most > 0
        most -= found
        merged.append(new if found else word[place])
        place += step if found else 1
    return merged


def _from_the_right(word: Sequence[int], pair: Pair, new: int) -> list[int]:
    return _merge(word[::-1], (pair[1], pair[0]), new)[::-1]


def _either_order(word: Sequence[int], pair: Pair, new: int) -> list[int]:
    merged, place = [], 0
    while place < len(word):
        found = sorted(word[place : place + 2]) == sorted(pair)
        merged.append(new if found else word[place])
        place += 2 if found else 1
    return merged


def _last_lost(word: Sequence[int], pair: Pair, new: int) -> list[int]:
    merged, place = [], 0
    while place < len(word) - 1:
        found = tuple(word[place : place + 2]) == tuple(pair)
        merged.append(new if found else word[place])
        place += 2 if found else 1
    return merged


def _overlapping(word: Sequence[int], pair: Pair, new: int) -> list[int]:
    found = [False, *((before, now) == tuple(pair) for before, now in pairwise(word)), False]
    rows = zip(word, found, found[1:], strict=False)  # is it the second of a pair, is it the first of one?
    return [new if first else symbol for symbol, second, first in rows if first or not second]


#: Wrong merges.
MERGE: dict[str, Callable[..., list[int]]] = {
    "You merge from the right: where pairs overlap, as in a a a, the left one counts.": _from_the_right,
    "You merge the first pair only: merge all of them.": lambda w, p, n: _merge(w, p, n, most=1),
    "You leave the second symbol of a pair in its place: go on behind it.": (
        lambda w, p, n: _merge(w, p, n, step=1)
    ),
    "You merge the pair in either order: first and second are not the same.": _either_order,
    "You lose the last symbol where it is not merged: it has no right neighbour, but it stays.": _last_lost,
    "You use a symbol for two pairs: in a a a the middle one is gone after the first merge.": _overlapping,
    "You leave the pair out and put nothing in its place.": (
        lambda w, p, n: [symbol for symbol in _merge(w, p, -9) if symbol != -9]
    ),
}


def best_pair(words: Mapping[tuple[int, ...], int]) -> Pair:
    """Choose rightly: the most frequent pair, of several the one with the smallest numbers."""
    counts = _counts(words)
    return min(counts, key=lambda pair: (-counts[pair], pair))


def _counts(words: Mapping[tuple[int, ...], int], *, weigh: bool = True, once: bool = False) -> Counter[Pair]:
    counts: Counter[Pair] = Counter()
    for word, n in words.items():
        pairs = list(pairwise(word))
        for pair in dict.fromkeys(pairs) if once else pairs:
            counts[pair] += n if weigh else 1
    return counts


def _by(**how: bool) -> Callable[[Mapping[tuple[int, ...], int]], Pair]:
    def choose(words: Mapping[tuple[int, ...], int]) -> Pair:
        counts = _counts(words, **how)
        return min(counts, key=lambda pair: (-counts[pair], pair))

    return choose


def _across(words: Mapping[tuple[int, ...], int]) -> Pair:
    line = tuple(symbol for word, n in words.items() for _ in range(n) for symbol in word)
    return best_pair({line: 1})


def _largest(words: Mapping[tuple[int, ...], int]) -> Pair:
    counts = _counts(words)
    return max(counts, key=lambda pair: (counts[pair], pair))


def _rarest(words: Mapping[tuple[int, ...], int]) -> Pair:
    counts = _counts(words)
    return min(counts, key=lambda pair: (counts[pair], pair))


def _second_number_first(words: Mapping[tuple[int, ...], int]) -> Pair:
    counts = _counts(words)
    return min(counts, key=lambda pair: (-counts[pair], pair[::-1]))


#: Wrong choices of a pair.
BEST_PAIR: dict[str, Callable[..., Pair]] = {
    "You count each word once: a pair counts as often as its word occurs.": _by(weigh=False),
    "You count a pair once a word: a word may hold it several times.": _by(once=True),
    "You count neither repeats of a word nor those within it.": _by(weigh=False, once=True),
    "You count pairs across the ends of words: no pair goes from one word into the next.": _across,
    "Of equally frequent pairs you take the largest numbers: take the smallest.": _largest,
    "Of equally frequent pairs you take the first that you met: take the smallest numbers.": (
        lambda words: _counts(words).most_common(1)[0][0]
    ),
    "Of equally frequent pairs you compare the second numbers first: begin with the first.": (
        _second_number_first
    ),
    "You take the rarest pair: take the most frequent.": _rarest,
}


def decode(tokens: Sequence[bytes], ids: Sequence[int]) -> str:
    """Decode rightly: join all bytes, then read them as text."""
    return b"".join(tokens[i] for i in ids).decode("utf-8", "replace")


def _each(errors: str) -> Callable[..., str]:
    return lambda tokens, ids: "".join(tokens[i].decode("utf-8", errors) for i in ids)


#: Wrong decodings.
DECODE: dict[str, Callable[..., str]] = {
    "You decode each token by itself: a character may be spread over several. Join the bytes first.": (
        _each("replace")
    ),
    "You decode each token by itself and drop what is broken: join the bytes first.": _each("ignore"),
    "You drop what is no UTF-8: put \N{REPLACEMENT CHARACTER} there, errors='replace'.": (
        lambda tokens, ids: b"".join(tokens[i] for i in ids).decode("utf-8", "ignore")
    ),
    "You read each byte as a character, as Latin-1 does: the bytes are UTF-8.": (
        lambda tokens, ids: b"".join(tokens[i] for i in ids).decode("latin-1")
    ),
    "You write broken bytes as \\x..: put \N{REPLACEMENT CHARACTER} there, errors='replace'.": (
        lambda tokens, ids: b"".join(tokens[i] for i in ids).decode("utf-8", "backslashreplace")
    ),
    "You put a space between tokens: a space is a byte of its token.": (
        lambda tokens, ids: b" ".join(tokens[i] for i in ids).decode("utf-8", "replace")
    ),
}


def table_gradient(ids: Tensor, ahead: Tensor, vocab_size: int) -> Tensor:
    """Send each vector's gradient to its row; what meets in a row adds up."""
    return torch.zeros(vocab_size, ahead.size(-1), dtype=ahead.dtype).index_add(0, ids, ahead)


def _last(ids: Tensor, ahead: Tensor, vocab_size: int) -> Tensor:
    rows = torch.zeros(vocab_size, ahead.size(-1), dtype=ahead.dtype)
    for i, gradient in zip(ids.tolist(), ahead, strict=True):
        rows[i] = gradient
    return rows


def _mean(ids: Tensor, ahead: Tensor, vocab_size: int) -> Tensor:
    times = torch.bincount(ids, minlength=vocab_size).clamp(min=1)
    return table_gradient(ids, ahead, vocab_size) / times[:, None]


#: Wrong gradients of a table.
TABLE_GRADIENT: dict[str, Callable[..., Tensor]] = {
    "A row that is used again loses its first gradient: add, do not overwrite.": _last,
    "A row that is used again keeps its first gradient alone: all of them add up.": (
        lambda ids, ahead, n: _last(ids.flip(0), ahead.flip(0), n)
    ),
    "You take the mean of the gradients that meet in a row: take their sum.": _mean,
    "You divide by the number of ids: the loss has done that already, if it wants to.": (
        lambda ids, ahead, n: table_gradient(ids, ahead, n) / len(ids)
    ),
    "You count how often each row is used: the gradients themselves must go there.": (
        lambda ids, ahead, n: table_gradient(ids, torch.ones_like(ahead), n)
    ),
    "You subtract: this is the step that an optimizer takes, not the gradient.": (
        lambda ids, ahead, n: -table_gradient(ids, ahead, n)
    ),
}
