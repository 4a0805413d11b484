"""Graders of lesson 01: a step of an LSTM, the reach of a gradient, clipping."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from exformer.exercises import recurrence_mistakes as known
from exformer.exercises.grading import Verdict, grade, takes_functions


@takes_functions
def check_lstm_step(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_lstm_step(x, h, c, w, u, b)``.

    Args:
        answer: Takes the input x, the state h and the store c (d_model,), the matrices w and u
            (4, d_model, d_model) and the bias b (4, d_model), parts in the order i, f, g, o; returns the new
            h and the new c.

    Returns:
        The verdict; a known mistake is named.

    Examples:
        >>> check_lstm_step(lambda x, h, c, w, u, b: None)
        Not yet. Your function returns nothing yet.
    """
    complaint = ""

    def rows(*case: Tensor) -> object:
        nonlocal complaint
        given = answer(*case)
        if given is None or given is Ellipsis:
            return None
        if not isinstance(given, tuple | list) or len(given) != 2:
            complaint = "Return two vectors: the new h and the new c."
            return None
        shapes = [tuple(np.shape(part)) for part in given]
        if shapes != [case[0].shape] * 2:
            complaint = f"h and c should both have the shape {tuple(case[0].shape)}, yours have {shapes}."
            return None
        return torch.stack([torch.as_tensor(part) for part in given])

    draw = torch.Generator().manual_seed(1)
    verdict = grade(
        rows,
        right=known.lstm_step,
        mistakes=known.LSTM,
        cases=[_drawn(draw, (d,), (d,), (d,), (4, d, d), (4, d, d), (4, d)) for d in (5, 3)],
        praise="Your step agrees with the library's, state and store.",
    )
    return Verdict(False, complaint) if complaint else verdict


@takes_functions
def check_reach(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_reach(rho, bound)``.

    Args:
        answer: Takes a factor and a bound, both between 0 and 1; returns the smallest number of steps T with
            ρ^T at most the bound.

    Returns:
        The verdict; a known mistake is named.
    """
    return grade(
        answer,
        right=known.reach,
        mistakes=known.REACH,
        cases=[(0.9, 0.01), (0.5, 0.125), (0.99, 0.5), (0.3, 0.2), (0.8, 1e-6), (0.25, 0.0625), (0.9, 0.95)],
        praise="A factor of 0.9 is below a hundredth after 44 steps, one of 0.99 below a half after 69.",
    )


@takes_functions
def check_clip(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_clip(gradients, limit)``.

    Args:
        answer: Takes a list of tensors and the largest length; returns the list, all tensors together at most
            as long as the limit.

    Returns:
        The verdict; a known mistake is named.
    """
    complaint = ""

    def flat(*case: object) -> object:
        nonlocal complaint
        *gradients, limit = case
        shapes = [tuple(g.shape) for g in gradients]
        given = answer(gradients, limit)
        if given is None or given is Ellipsis:
            return None
        if not isinstance(given, tuple | list) or [tuple(np.shape(g)) for g in given] != shapes:
            complaint = f"Return a list of tensors with the shapes that came in, here {shapes}."
            return None
        return torch.cat([torch.as_tensor(g).flatten() for g in given])

    draw = torch.Generator().manual_seed(2)
    cases = [
        (*(size * g for g in _drawn(draw, (4, 3), (3,), (2, 5))), limit)
        for size, limit in ((1.0, 2.0), (3.0, 0.5), (0.1, 2.5), (0.2, 1.2))
    ]
    verdict = grade(
        flat,
        right=lambda *case: _flat(known.clip, *case),
        mistakes={hint: lambda *case, wrong=wrong: _flat(wrong, *case) for hint, wrong in known.CLIP.items()},
        cases=cases,
        praise="Long gradients get the limit's length, short ones stay, and none is turned.",
    )
    return Verdict(False, complaint) if complaint else verdict


def _drawn(draw: torch.Generator, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    return tuple(torch.randn(shape, generator=draw) for shape in shapes)


def _flat(clip: known.Clip, *case: object) -> Tensor:
    *gradients, limit = case
    return torch.cat([g.flatten() for g in clip(gradients, limit)])
