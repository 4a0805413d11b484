"""Graders: a cut by merges, bytes to text."""

from collections.abc import Callable
from typing import Any

from exformer_lessons.exercises.grading import Verdict, grade, takes_functions
from exformer_lessons.exercises.results import UnfitError
from exformer_lessons.tokens import mistakes as known

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
    ((11, 2, 1, 2), {(1, 2): 5}),  # the text "1 2" is found in "11 2", too
)
_TOKENS = (b"", b"", b"", b"a", b" ", b"\xc3", b"\xa9", b"perch", b"\xf0\x9f", b"\xa6\x8a", b"\xc3\xa9", b"!")
_IDS = (
    [7, 10, 4, 3],
    [7, 5, 6, 11],
    [8, 9, 4, 8, 9],
    [7, 5],
    [6, 3, 5],
    [8, 3, 0, 2],
    [],
    [3, 4, 4, 3],
    [4, 6, 6, 4],
    [5, 6, 7, 5],
)


@takes_functions
def grade_encode(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_encode(word, merges)``.

    Args:
        answer: Takes a tuple of tokens (numbers) and a dictionary of merges, pairs with the token that each
            becomes, in the order of learning; returns the tokens that are left when all merges are made.

    Examples:
        >>> grade_encode(lambda word, merges: None)
        Not yet. Your function returns nothing.
    """
    return grade(
        answer,
        right=known.encode,
        mistakes=known.ENCODE,
        cases=list(_CUTS),
        praise="The merges in their order, from the left, and no token is used twice.",
    )


@takes_functions
def grade_decode(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_decode(tokens, ids)``.

    Args:
        answer: Takes the bytes of each token and the ids of a text; returns the text, with U+FFFD for what is
            no UTF-8.
    """
    return grade(
        answer,
        right=known.decode,
        mistakes=known.DECODE,
        cases=[(_TOKENS, ids) for ids in _IDS],
        praise="Bytes first, text last, and broken ones do not stop you.",
        frame=_characters,
    )


def _characters(given: Any, *case: object) -> list[int]:
    if isinstance(given, bytes | bytearray):
        raise UnfitError("You return bytes: read them as text, .decode(...).")
    if not isinstance(given, str):
        raise UnfitError(f"Return a text, yours is a {type(given).__name__}.")
    return list(map(ord, given))
