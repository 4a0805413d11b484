"""Graders: a step of an LSTM, clipping."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from exformer_lessons.exercises.grading import Verdict, grade, takes_functions
from exformer_lessons.exercises.results import UnfitError, as_numbers
from exformer_lessons.recurrence import mistakes as known


@takes_functions
def grade_lstm_step(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_lstm_step(x, h, c, w, u, b)``.

    Args:
        answer: Takes the input x, the state h and the cell state c (d_model,), the matrices w and u
            (4, d_model, d_model) and the bias b (4, d_model), parts in the order i, f, g, o; returns the new
            h and the new c.

    Examples:
        >>> grade_lstm_step(lambda x, h, c, w, u, b: None)
        Not yet. Your function returns nothing.
    """
    rng = torch.Generator().manual_seed(1)
    return grade(
        answer,
        right=known.lstm_step,
        mistakes=known.LSTM,
        cases=[_drawn(rng, (d,), (d,), (d,), (4, d, d), (4, d, d), (4, d)) for d in (5, 3)],
        praise="Your step agrees with the library's, h and c.",
        frame=_two_vectors,
    )


def _two_vectors(given: Any, x: Tensor, *case: Tensor) -> np.ndarray:
    if not isinstance(given, tuple | list | Tensor | np.ndarray) or len(given) != 2:
        raise UnfitError("Return two vectors: the new h and the new c.")
    parts = [as_numbers(part) for part in given]
    shapes = [part.shape for part in parts]
    if shapes != [x.shape] * 2:
        raise UnfitError(f"h and c should both have the shape {tuple(x.shape)}, yours have {shapes}.")
    return np.stack(parts)


@takes_functions
def grade_clip(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_clip(gradients, limit)``.

    Args:
        answer: Takes a list of tensors and the largest length; returns the list, all tensors together at most
            as long as the limit.
    """
    rng = torch.Generator().manual_seed(2)
    cases = [
        ([size * g for g in _drawn(rng, (4, 3), (3,), (2, 5))], limit)
        for size, limit in ((1.0, 2.0), (3.0, 0.5), (0.1, 2.5), (0.2, 1.2), (0.4, 1.8))
    ]
    return grade(
        answer,
        right=known.clip,
        mistakes=known.CLIP,
        cases=cases,
        praise="Long gradients get the limit's length, short ones stay, and none is turned.",
        frame=_one_vector,
    )


def _one_vector(given: Any, gradients: list[Tensor], limit: float) -> np.ndarray:
    shapes = [tuple(g.shape) for g in gradients]
    parts = [as_numbers(part) for part in given] if isinstance(given, tuple | list) else []
    if [part.shape for part in parts] != shapes:
        raise UnfitError(f"Return a list of tensors with the shapes that you got, here {shapes}.")
    return np.concatenate([part.ravel() for part in parts])


def _drawn(rng: torch.Generator, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    return tuple(torch.randn(shape, generator=rng) for shape in shapes)
