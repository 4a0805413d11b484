"""Graders: top-p, one step of beam search."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from exformer_lessons.exercises.grading import Verdict, grade, takes_functions
from exformer_lessons.exercises.results import UnfitError, as_numbers
from exformer_lessons.generation import mistakes as known


@takes_functions
def grade_top_p(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_top_p(p, threshold)``.

    Args:
        answer: Takes the probabilities of the tokens (vocab_size) and the probability to be reached; returns
            the new probabilities, in the same order.
    """
    cases = [
        (torch.tensor([0.05, 0.4, 0.1, 0.3, 0.15]), 0.8),
        (torch.tensor([0.05, 0.4, 0.1, 0.3, 0.15]), 0.3),
        (torch.tensor([0.25, 0.0625, 0.5, 0.125, 0.0625]), 0.75),  # exactly the sum of two
        (torch.tensor([0.02, 0.03, 0.9, 0.05]), 0.92),
        (torch.tensor([0.25, 0.5, 0.25]), 0.6),  # either of two
        (torch.tensor([0.1, 0.25, 0.3, 0.15, 0.2]), 0.78),  # 1 - p keeps fewer than a sum that stays below p
    ]
    return grade(
        answer,
        right=known.top_p,
        mistakes=known.TOP_P,
        cases=cases,
        praise="The smallest set that reaches the threshold, each probability in its place, with the sum 1.",
        frame=_sorted_among_equals,
    )


def _sorted_among_equals(given: Any, p: torch.Tensor, threshold: float) -> np.ndarray:
    """Make all choices among tokens of one probability alike."""
    found, own = as_numbers(given), as_numbers(p)
    if found.shape == own.shape:
        for value in own:
            found[own == value] = np.sort(found[own == value])
    return found


@takes_functions
def grade_beam_step(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_beam_step(live, further, beam)``.

    Args:
        answer: Takes the log-probabilities of the beginnings (beam), those of each next token after each
            beginning (beam, vocab_size), and how many continuations are kept; returns their
            log-probabilities, the largest first, then the row of the beginning and the token of each.
    """
    rng = torch.Generator().manual_seed(11)
    cases = []
    for beam, vocab_size in ((2, 5), (3, 7), (4, 11)):
        live = torch.randn(beam, generator=rng) - 3.0
        further = (2 * torch.randn(beam, vocab_size, generator=rng)).log_softmax(dim=-1)
        cases.append((live, further, beam))
    return grade(
        answer,
        right=known.beam_step,
        mistakes=known.BEAM_STEP,
        cases=cases,
        praise="All continuations compete, and each remembers from which beginning it comes.",
        frame=_three_rows,
    )


def _three_rows(given: Any, live: torch.Tensor, further: torch.Tensor, beam: int) -> np.ndarray:
    try:
        parts = [as_numbers(part) for part in given]
    except (TypeError, ValueError):
        parts = []
    if [part.shape for part in parts] != [(beam,)] * 3:
        raise UnfitError(f"Return three things of {beam} numbers each: log-probabilities, rows, tokens.")
    return np.stack(parts)
