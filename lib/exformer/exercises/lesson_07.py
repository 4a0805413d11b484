"""Graders of lesson 07: the shift of teacher forcing, the likelihood of a sentence, greedy writing."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from exformer.exercises import teaching_mistakes as teaching
from exformer.exercises import writing_mistakes as writing
from exformer.exercises.grading import Verdict, grade, takes_functions

_WIDTH = 16  # wider than any right answer here, so that answers of every length can be compared
_CALLS = 60  # more than any right answer needs


@takes_functions
def check_shift(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_shift(sentences, pad_id, bos_id, eos_id)``.

    Args:
        answer: Takes lists of ids without special symbols; returns what the decoder is shown and what it
            should say, one row a sentence, filled up with ``pad_id``.

    Returns:
        The verdict; a known mistake is named.

    Examples:
        >>> check_shift(lambda sentences, pad_id, bos_id, eos_id: None)
        Not yet. Your function returns nothing yet.
    """
    complaint = ""

    def both(sentences: Sequence[Sequence[int]], *ids: int) -> object:
        nonlocal complaint
        given = answer([list(sentence) for sentence in sentences], *ids)
        if given is None or given is Ellipsis:
            return None
        if not isinstance(given, tuple | list) or len(given) != 2 or not all(map(_is_table, given)):
            complaint = "Return two tables, one row of ids a sentence: what is shown, what is to be said."
            return None
        return _framed_pair(given, rows=len(sentences), pad_id=ids[0])

    def framed(shift: teaching.Shift) -> Callable[..., np.ndarray]:
        return lambda s, *ids: _framed_pair(shift(s, *ids), rows=len(s), pad_id=ids[0])

    verdict = grade(
        both,
        right=framed(teaching.shift),
        mistakes={hint: framed(mistake) for hint, mistake in teaching.SHIFT.items()},
        cases=[([[5, 6, 7, 8], [9]], 0, 1, 2), ([[4], [3, 11, 13], [7, 5]], 0, 1, 2), ([[8, 3]], 12, 10, 14)],
        praise="Shown and said differ by one place, and padding comes last.",
    )
    return Verdict(False, complaint) if complaint else verdict


def _framed_pair(parts: Sequence[Any], *, rows: int, pad_id: int) -> np.ndarray:
    """Frame both tables; the narrower one is filled up to the width of the other, as many answers do."""
    frames = np.stack([_framed(part, rows=rows) for part in parts])
    widths = [{len(row) for row in part} for part in parts]
    if all(len(found) == 1 for found in widths):  # rows of several lengths are a mistake of their own
        wide = max(*map(max, widths))
        for frame, (own,) in zip(frames, widths, strict=True):
            frame[:rows, own:wide] = pad_id
    return frames


def _is_table(part: object) -> bool:
    if isinstance(part, torch.Tensor | np.ndarray):
        return part.ndim == 2
    return isinstance(part, tuple | list) and all(
        isinstance(row, tuple | list | torch.Tensor | np.ndarray) for row in part
    )


def _framed(part: object, *, rows: int) -> np.ndarray:
    """Put rows of ids into a frame of one size, in which -1 marks what is not there."""
    frame = np.full((rows + 1, _WIDTH), -1, dtype=np.int64)
    for row, ids in zip(frame[:rows], part, strict=False):
        values = np.asarray(ids)[:_WIDTH]
        row[: len(values)] = values
    frame[rows, 0] = len(part)
    return frame


@takes_functions
def check_log_likelihood(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_log_likelihood(logits, targets, pad_id)``.

    Args:
        answer: Takes logits (batch, tgt, vocab_size) and targets (batch, tgt); returns the logarithm of each
            sentence's probability (batch,), in nats.

    Returns:
        The verdict; a known mistake is named.
    """
    draw = torch.Generator().manual_seed(7)
    cases = []
    for lengths, tgt, vocab_size, pad_id in (((7, 4, 1), 7, 7, 0), ((2, 5, 4, 3), 5, 11, 3)):
        logits = 2 * torch.randn((len(lengths), tgt, vocab_size), generator=draw)
        targets = torch.randint(1, vocab_size - 1, (len(lengths), tgt), generator=draw)
        targets += targets >= max(pad_id, 1)  # none of the words is the padding symbol
        targets[torch.arange(tgt) >= torch.tensor(lengths)[:, None]] = pad_id
        cases.append((logits, targets, pad_id))

    def numbers(logits: torch.Tensor, targets: torch.Tensor, pad_id: int) -> object:
        given = answer(logits, targets, pad_id)
        return None if given is None or given is Ellipsis else teaching.spread(given, like=targets)

    return grade(
        numbers,
        right=teaching.log_likelihood,
        mistakes=teaching.LOG_LIKELIHOOD,
        cases=cases,
        praise="One number a sentence, its padding left out, none of them above 0.",
    )


@takes_functions
def check_greedy(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_greedy(logits_of, bos_id, eos_id, limit)``.

    Args:
        answer: Takes a function that gives one row of logits for each id of a list, the id of the start
            symbol, that of the end symbol, and the largest number of new ids; returns the new ids, without
            start and end symbol.

    Returns:
        The verdict; a known mistake is named.
    """
    longest = []

    def new_ids(salt: int, length: int, limit: int) -> object:
        language = writing.Language(salt, length=length, calls=_CALLS)
        try:
            given = answer(language, writing.BOS, writing.EOS, limit)
        except writing.TooManyCallsError:
            given = writing.ENDLESS
        longest.append(language.longest)
        if given is None or given is Ellipsis:
            return None
        return _framed([np.asarray(given).ravel().tolist()], rows=1)

    verdict = grade(
        new_ids,
        right=writing.framed(writing.greedy, frame=_framed),
        mistakes={hint: writing.framed(mistake, frame=_framed) for hint, mistake in writing.GREEDY.items()},
        cases=[(1, 4, 9), (2, 1, 9), (3, 30, 6), (5, 6, 6), (7, 0, 5), (11, 7, 12)],
        praise="It feeds on its own words, stops at the end symbol, and never goes beyond the limit.",
    )
    if verdict.says == writing.FIRST_ROW and max(longest) == 1:
        return Verdict(False, writing.NEVER_FED)
    return verdict
