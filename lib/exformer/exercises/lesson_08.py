"""Graders of lesson 08: a choice of a pair, a cut by merges, bytes to text, the gradient of a table."""

from collections.abc import Callable

import numpy as np
import torch

from exformer.exercises import merge_mistakes as merging
from exformer.exercises import token_mistakes as known
from exformer.exercises.grading import Verdict, grade, takes_functions

_WIDTH = 64  # wider than any right answer here, so that answers of every length can be compared
_CUTS = (  # a word, and what each pair becomes, in the order of learning
    ((1, 2, 3, 4), {(2, 3): 10, (1, 2): 11, (10, 4): 12}),
    ((1, 2, 3, 9, 1, 2), {(1, 2): 10, (2, 3): 11, (1, 11): 12}),  # 12 holds 1 2 3, and never comes to be
    ((1, 2, 3, 4, 3, 4), {(1, 2): 10, (3, 4): 11, (10, 11): 12}),
    ((7, 7, 7), {(7, 7): 20, (20, 7): 21}),
    ((7, 7, 7, 7, 7), {(7, 7): 20}),
    ((3, 5, 3, 5, 9, 5, 3, 4), {(3, 5): 22, (22, 22): 23}),
    ((5, 3, 3, 5), {(3, 5): 23, (5, 3): 24}),
    ((8, 9), {(3, 5): 24}),
    ((8,), {(3, 5): 25}),
    ((), {(3, 5): 26}),
)
_WORDS = (
    {(1, 2, 3): 5, (2, 3, 1, 2): 2, (9, 9): 6, (4, 9): 1},  # (1, 2) comes 7 times
    {(9, 4): 1, (5, 6): 1, (5, 7): 1, (8, 6): 1},  # one each: (5, 6) before (5, 7)
    {(6, 1): 2, (2, 9): 2, (9, 2, 9): 1, (1, 6): 1},
    {(3, 3, 3): 2, (4, 5): 3, (8, 7): 3},  # (3, 3) comes twice in its word
    {(7, 1): 2, (2, 8): 2},  # the first number decides
    {(4, 6): 3, (6, 4): 3, (6,): 9},
    {(8, 8, 8): 4, (2, 3): 1},
    {(8, 8, 8): 2, (2, 3): 5},
    {(1, 2, 5, 1, 2): 2, (6, 7): 3},
)
_TOKENS = (b"", b"", b"", b"a", b" ", b"\xc3", b"\xa9", b"perch", b"\xf0\x9f", b"\xa6\x8a", b"\xc3\xa9", b"!")
_IDS = ([7, 10, 4, 3], [7, 5, 6, 11], [8, 9, 4, 8, 9], [7, 5], [6, 3, 5], [8, 3, 0, 2], [], [3, 4, 4, 3])


@takes_functions
def check_best_pair(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_best_pair(words)``.

    Args:
        answer: Takes words (tuples of numbers), each with how often it occurs; returns the most frequent pair
            of neighbours, of several the one with the smallest numbers.

    Returns:
        The verdict; a known mistake is named.
    """
    return grade(
        lambda words: answer(dict(words)),
        right=known.best_pair,
        mistakes=known.BEST_PAIR,
        cases=[(words,) for words in _WORDS],
        praise="Pairs count as often as their words, and a tie has one winner.",
    )


@takes_functions
def check_encode(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_encode(word, merges)``.

    Args:
        answer: Takes a tuple of symbols (numbers) and a dictionary of merges, pairs with the symbol that each
            becomes, in the order of learning; returns the symbols that are left when all merges are made.

    Returns:
        The verdict; a known mistake is named.

    Examples:
        >>> check_encode(lambda word, merges: None)
        Not yet. Your function returns nothing yet.
    """
    return grade(
        lambda word, merges: _framed(answer(word, dict(merges))),
        right=_as_frame(merging.encode),
        mistakes={hint: _as_frame(mistake) for hint, mistake in merging.ENCODE.items()},
        cases=list(_CUTS),
        praise="The merges in their order, from the left, and no symbol is used twice.",
    )


@takes_functions
def check_decode(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_decode(tokens, ids)``.

    Args:
        answer: Takes the bytes of each token and the ids of a text; returns the text, with U+FFFD for what is
            no UTF-8.

    Returns:
        The verdict; a known mistake is named.
    """
    complaint = ""

    def characters(tokens: tuple[bytes, ...], ids: list[int]) -> object:
        nonlocal complaint
        given = answer(tokens, list(ids))
        if isinstance(given, bytes | bytearray):
            complaint = "You return bytes: read them as text, .decode(...)."
        return _framed(list(map(ord, given))) if isinstance(given, str) else given

    def coded(decode: Callable[..., str]) -> Callable[..., object]:
        return lambda tokens, ids: _framed(list(map(ord, decode(tokens, ids))))

    verdict = grade(
        characters,
        right=coded(known.decode),
        mistakes={hint: coded(mistake) for hint, mistake in known.DECODE.items()},
        cases=[(_TOKENS, ids) for ids in _IDS],
        praise="Bytes first, text last, and broken ones do not stop you.",
    )
    return Verdict(False, complaint) if complaint else verdict


@takes_functions
def check_table_gradient(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_table_gradient(ids, ahead, vocab_size)``.

    Args:
        answer: Takes ids (time,), the gradient of the loss by each of their vectors (time, d_model), and the
            number of rows; returns the gradient by the table (vocab_size, d_model).

    Returns:
        The verdict; a known mistake is named.
    """
    draw = torch.Generator().manual_seed(8)
    cases = []
    for ids, vocab_size, width in (([4, 1, 4, 4, 0], 7, 3), ([2, 2], 5, 4), ([10, 3, 6], 11, 2)):
        ahead = torch.randn((len(ids), width), generator=draw)
        cases.append((torch.tensor(ids), ahead, vocab_size))
    return grade(
        answer,
        right=known.table_gradient,
        mistakes=known.TABLE_GRADIENT,
        cases=cases,
        praise="Each row gets the sum of what its uses ask for, all others get nothing.",
    )


def _as_frame(cut: Callable[..., object]) -> Callable[..., object]:
    return lambda word, merges: _framed(cut(word, merges))


def _framed(given: object) -> object:
    """Put a row of numbers into a frame of one size, in which -1 marks what is not there."""
    if not isinstance(given, tuple | list | np.ndarray | torch.Tensor):
        return given
    values = np.asarray(given).ravel()
    if values.size and not np.issubdtype(values.dtype, np.number):
        return given
    frame = np.full(_WIDTH + 1, -1.0)
    frame[: min(len(values), _WIDTH)] = values[:_WIDTH]
    frame[_WIDTH] = len(values)
    return frame
