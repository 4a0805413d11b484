"""Known mistakes, each with its hint: byte-pair encoding, decoding bytes."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

Pair = tuple[int, int]


def decode(tokens: Sequence[bytes], ids: Sequence[int]) -> str:
    """Decode: join all bytes, then read them as text."""
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


Word = tuple[int, ...]
Merges = Mapping[Pair, int]


def encode(word: Word, merges: Merges) -> Word:
    """Encode: each merge everywhere, the one learned first before the others."""
    return _one_after_another(_merge)(word, merges)


def _one_after_another(merge: Callable[[Word, Pair, int], Word]) -> Callable[[Word, Merges], Word]:
    def cut(word: Word, merges: Merges) -> Word:
        for pair, new in merges.items():
            word = merge(word, pair, new)
        return word

    return cut


def _merge(word: Word, pair: Pair, new: int, *, step: int = 2, most: int = 999) -> Word:
    merged, place = [], 0
    while place < len(word):
        found = word[place : place + 2] == pair and most > 0
        most -= found
        merged.append(new if found else word[place])
        place += step if found else 1
    return tuple(merged)


def _from_the_right(word: Word, pair: Pair, new: int) -> Word:
    return _merge(word[::-1], (pair[1], pair[0]), new)[::-1]


def _either_order(word: Word, pair: Pair, new: int) -> Word:
    merged, place = [], 0
    while place < len(word):
        found = sorted(word[place : place + 2]) == sorted(pair)
        merged.append(new if found else word[place])
        place += 2 if found else 1
    return tuple(merged)


def _last_lost(word: Word, pair: Pair, new: int) -> Word:
    merged, place = [], 0
    while place < len(word) - 1:
        found = word[place : place + 2] == pair
        merged.append(new if found else word[place])
        place += 2 if found else 1
    return tuple(merged)


def _overlapping(word: Word, pair: Pair, new: int) -> Word:
    found = [False, *(two == pair for two in pairwise(word)), False]
    rows = zip(word, found, found[1:], strict=False)  # is it the second of a pair, is it the first of one?
    return tuple(new if first else symbol for symbol, second, first in rows if first or not second)


def _by_place(word: Word, merges: Merges) -> Word:
    while fitting := [place for place, pair in enumerate(pairwise(word)) if pair in merges]:
        first = fitting[0]
        word = (*word[:first], merges[word[first], word[first + 1]], *word[first + 2 :])
    return word


def _one_pass(word: Word, merges: Merges) -> Word:
    merged, place = [], 0
    while place < len(word):
        new = merges.get(word[place : place + 2])
        merged.append(word[place] if new is None else new)
        place += 1 if new is None else 2
    return tuple(merged)


def _first_that_fits(word: Word, merges: Merges) -> Word:
    for pair, new in merges.items():
        if pair in pairwise(word):
            return _merge(word, pair, new)
    return word


def _longest(word: Word, merges: Merges) -> Word:
    holds: dict[int, Word] = {}
    for (first, second), new in merges.items():
        holds[new] = holds.get(first, (first,)) + holds.get(second, (second,))
    cut, place = [], 0
    while place < len(word):
        fitting = [new for new, held in holds.items() if word[place : place + len(held)] == held]
        best = max(fitting, key=lambda new: len(holds[new]), default=word[place])
        cut.append(best)
        place += len(holds.get(best, (best,)))
    return tuple(cut)


#: Wrong cuts.
ENCODE: dict[str, Callable[[Word, Merges], Word]] = {
    "You merge nothing: a list is never equal to a tuple, compare tuple(word[i : i + 2]).": lambda w, m: w,
    "You merge what comes first in the word: the merge that was learned first comes first.": _by_place,
    "You begin with the merge that was learned last: begin with the first.": (
        lambda w, m: encode(w, dict(reversed(m.items())))
    ),
    "You take the longest token that fits: make the merges in the order of learning.": _longest,
    "You go through the word once: what a merge has made can be merged again.": _one_pass,
    "You stop after the first merge: go on; a list is never equal to a tuple.": _first_that_fits,
    "You make each merge once: make it everywhere in the word.": _one_after_another(
        lambda w, p, n: _merge(w, p, n, most=1)
    ),
    "You merge from the right: where pairs overlap, as in a a a, the left one counts.": _one_after_another(
        _from_the_right
    ),
    "You leave the second token of a pair where it was: go on after it.": _one_after_another(
        lambda w, p, n: _merge(w, p, n, step=1)
    ),
    "You merge the pair in either order: first and second are not the same.": _one_after_another(
        _either_order
    ),
    "You lose the last token where it is not merged: it has no right neighbor, but it stays.": (
        _one_after_another(_last_lost)
    ),
    "You use a token for two pairs: in a a a the middle one is gone after the first merge.": (
        _one_after_another(_overlapping)
    ),
    "You leave the pair out and put nothing in its place.": _one_after_another(
        lambda w, p, n: tuple(symbol for symbol in _merge(w, p, -9) if symbol != -9)
    ),
}
