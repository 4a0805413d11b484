"""Graders: rotary positions and the biases of ALiBi."""

from collections.abc import Callable

import torch

from exformer.nn.positions.alibi import alibi_bias
from exformer.nn.positions.rotary import rotate
from exformer_lessons.exercises.grading import Verdict, grade, takes_functions
from exformer_lessons.positional_encoding import mistakes as known


@takes_functions
def grade_rotate(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_rotate(x, positions)``.

    Args:
        answer: Takes queries (position, d_head) and one position for each; returns them rotated.
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
        praise="Lengths stay, and a query's dot product with a key depends on their signed offset alone.",
        tolerance=3e-5,  # angles in float32 are a little off
    )


@takes_functions
def grade_alibi(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_alibi(n_positions, n_heads)``.

    Args:
        answer: Takes two numbers, the second a power of two; returns what is added to the scores
            (heads, query, key).
    """
    return grade(
        answer,
        right=lambda n, h: alibi_bias(torch.arange(n), torch.arange(n), n_heads=h),
        mistakes=known.ALIBI,
        cases=[(5, 2), (4, 8), (7, 4), (3, 16)],  # with 16 heads the exponents are not integers
        praise="Scores fall with the distance, at another rate in each head, and alike on both sides.",
    )
