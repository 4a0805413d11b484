"""Graders: the shift of teacher forcing and the likelihood of a sentence."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from exformer_lessons.encoder_decoder import mistakes as known
from exformer_lessons.exercises.grading import Verdict, grade, takes_functions
from exformer_lessons.exercises.results import UnfitError, as_numbers

_GAP = -99.0  # marks what is not there


@takes_functions
def grade_shift(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_shift(sentences, pad_id, bos_id, eos_id)``.

    Args:
        answer: Takes lists of ids without special tokens; returns the decoder's inputs and its
            targets, one row per sentence, filled up with ``pad_id``.

    Examples:
        >>> grade_shift(lambda sentences, pad_id, bos_id, eos_id: None)
        Not yet. Your function returns nothing.
    """
    return grade(
        answer,
        right=known.shift,
        mistakes=known.SHIFT,
        cases=[
            ([[5, 6, 7, 8], [9]], 0, 1, 2),
            ([[4], [3, 11, 13], [7, 5]], 0, 1, 2),
            ([[8, 3], [6, 5, 4]], 12, 10, 14),
        ],
        praise="Inputs and targets differ by one position, and padding comes last.",
        frame=_framed_pair,
    )


def _framed_pair(given: Any, sentences: list[list[int]], pad_id: int, *ids: int) -> np.ndarray:
    """Put both tables into one frame; the narrower one is filled up to the width of the other."""
    tables = [[as_numbers(row) for row in part] for part in given] if _is_pair(given) else []
    if not tables or any(row.ndim != 1 for part in tables for row in part):
        raise UnfitError(
            "Return two tables, one row of ids per sentence: the decoder's inputs, then its targets."
        )
    if [len(part) for part in tables] != [len(sentences)] * 2:
        found = " and ".join(str(len(part)) for part in tables)
        raise UnfitError(f"Both tables need one row per sentence, here {len(sentences)}; yours have {found}.")
    widths = [{len(row) for row in part} for part in tables]
    wide = max(max(found) for found in widths)
    even = all(len(found) == 1 for found in widths)  # rows of several lengths are a mistake of their own
    frame = np.full((2, len(sentences), wide), pad_id if even else _GAP)
    for rows, part in zip(frame, tables, strict=True):
        for row, values in zip(rows, part, strict=True):
            row[: len(values)] = values
    if even and wide == 1 + max(map(len, sentences)):  # where the target is padding, the input is free
        frame[0][frame[1] == pad_id] = pad_id
    return frame


def _is_pair(given: Any) -> bool:
    if isinstance(given, torch.Tensor | np.ndarray):
        return given.ndim == 3 and len(given) == 2
    kinds = tuple | list | torch.Tensor | np.ndarray
    return isinstance(given, tuple | list) and [isinstance(part, kinds) for part in given] == [True] * 2


@takes_functions
def grade_log_likelihood(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_log_likelihood(logits, targets, pad_id)``.

    Args:
        answer: Takes logits (batch, tgt, vocab_size) and targets (batch, tgt); returns the logarithm of each
            sentence's probability (batch,), in nats.
    """
    rng = torch.Generator().manual_seed(7)
    cases = []
    for lengths, tgt, vocab_size, pad_id in (((7, 4, 1), 7, 7, 0), ((2, 5, 4, 3), 5, 11, 3)):
        logits = 2 * torch.randn((len(lengths), tgt, vocab_size), generator=rng)
        targets = torch.randint(vocab_size - 1, (len(lengths), tgt), generator=rng)
        targets += targets >= pad_id  # none of the words is the padding token
        targets[0, 0] = 0 if pad_id else 1  # 0 is a word like others where it is not the padding
        targets[torch.arange(tgt) >= torch.tensor(lengths)[:, None]] = pad_id
        cases.append((logits, targets, pad_id))
    return grade(
        answer,
        right=known.log_likelihood,
        mistakes=known.LOG_LIKELIHOOD,
        cases=cases,
        praise="One number per sentence, its padding left out, none of them above 0.",
        frame=lambda given, logits, targets, pad_id: known.spread(given, like=targets),
    )
