"""What goes wrong in counting pairs, joining bytes and looking up: hints, and functions that go wrong so."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise

import torch
from torch import Tensor

Pair = tuple[int, int]


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


def _without_overlap(words: Mapping[tuple[int, ...], int]) -> Pair:
    counts: Counter[Pair] = Counter()
    for word, n in words.items():
        free: dict[Pair, int] = {}  # the first place at which a pair may begin again
        for place, pair in enumerate(pairwise(word)):
            if place >= free.get(pair, 0):
                counts[pair] += n
                free[pair] = place + 2
    return min(counts, key=lambda pair: (-counts[pair], pair))


def _apart(words: Mapping[tuple[int, ...], int]) -> Pair:
    counts: Counter[Pair] = Counter()
    for word, n in words.items():
        for pair in combinations(word, 2):
            counts[pair] += n
    return min(counts, key=lambda pair: (-counts[pair], pair))


def _first_number_alone(words: Mapping[tuple[int, ...], int]) -> Pair:
    counts = _counts(words)
    return min(counts, key=lambda pair: (-counts[pair], pair[0]))


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
    "In a a a you count the pair a a once: it begins at two places, so it counts twice.": _without_overlap,
    "You count pairs across the ends of words: no pair goes from one word into the next.": _across,
    "You count all pairs of a word: only neighbours count.": _apart,
    "Of equally frequent pairs with one first number you take any: the smaller second number decides.": (
        _first_number_alone
    ),
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


def _whole_or_each(tokens: Sequence[bytes], ids: Sequence[int]) -> str:
    try:
        return b"".join(tokens[i] for i in ids).decode()
    except UnicodeDecodeError:
        return _each("replace")(tokens, ids)


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
    "Where a text is broken you decode each token by itself: join the bytes, then errors='replace'.": (
        _whole_or_each
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
