"""Graders of lesson 05: the table of sines and cosines, the turn of rotary positions, the bias of ALiBi."""

from collections.abc import Callable

import torch

from exformer.lessons.exercises import positional_encoding_mistakes as known
from exformer.lessons.exercises.grading import Verdict, grade, takes_functions
from exformer.nn.positions.absolute import sinusoidal_encoding
from exformer.nn.positions.alibi import alibi_bias
from exformer.nn.positions.rotary import rotate


@takes_functions
def check_encoding(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_encoding(n_positions, d_model)``.

    Args:
        answer: Takes two numbers; returns the sinusoidal table (position, d_model).

    Examples:
        >>> check_encoding(lambda n_positions, d_model: None)
        Not yet. Your function returns nothing yet.
    """
    return grade(
        answer,
        right=lambda n, d: sinusoidal_encoding(n, d_model=d),
        mistakes=known.ENCODING,
        cases=[(7, 6), (31, 16), (12, 10)],
        praise="Each pair is the same point on a circle, at a frequency of its own.",
        tolerance=3e-5,  # angles in float32 are a little off
    )


@takes_functions
def check_rotate(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_rotate(x, positions)``.

    Args:
        answer: Takes queries (position, d_head) and one position for each; returns them turned.
    """
    rng = torch.Generator().manual_seed(5)
    cases = []
    for positions, d_head in (([0, 1, 2], 4), ([5, 3, 11, 0, 7], 8), ([30, 2], 6)):
        x = torch.randn(len(positions), d_head, generator=rng)
        cases.append((x, torch.tensor(positions)))
    return grade(
        answer,
        right=rotate,
        mistakes=known.ROTATE,
        cases=cases,
        praise="Lengths stay, and a dot product of two turned vectors knows the distance alone.",
        tolerance=3e-5,  # angles in float32 are a little off
    )


@takes_functions
def check_alibi(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_alibi(n_positions, n_heads)``.

    Args:
        answer: Takes two numbers, the second a power of two; returns what is added to the scores
            (heads, query, key).
    """
    return grade(
        answer,
        right=lambda n, h: alibi_bias(torch.arange(n), torch.arange(n), n_heads=h),
        mistakes=known.ALIBI,
        cases=[(5, 2), (4, 8), (7, 4), (3, 16)],  # with 16 heads the exponents are no whole numbers
        praise="Each head loses interest with distance, each at its own rate.",
    )
