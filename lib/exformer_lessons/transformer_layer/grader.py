"""Graders: layer norm, the number of parameters of a layer."""

from collections.abc import Callable

import torch

from exformer_lessons.exercises.grading import Verdict, grade, takes_functions
from exformer_lessons.transformer_layer import mistakes as known

_SIZES = ((20, 2, 48), (35, 5, 70), (36, 4, 200))


@takes_functions
def grade_layer_norm(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_layer_norm(x, gain, bias, eps)``.

    Args:
        answer: Takes vectors along the last axis of x, gain and bias (d_model,), and the number ε; returns
            what :func:`~exformer.nn.normalization.layer_norm` returns.

    Examples:
        >>> grade_layer_norm(lambda x, g, b, eps: torch.nn.functional.layer_norm(x, g.shape, eps=eps))
        Not yet. Gain and bias are missing.
    """
    rng = torch.Generator().manual_seed(6)
    cases = []
    for shape, eps in (((5, 7, 11), 0.1), ((3, 11), 0.5), ((2, 3, 5, 7), 1e-5)):
        x = 3 + 2 * torch.randn(shape, generator=rng, dtype=torch.float64)
        x[0] = 3.0  # equal numbers: 0/0 without ε
        gain, bias = torch.randn((2, shape[-1]), generator=rng, dtype=torch.float64)
        cases.append((x, gain, bias, eps))
    praise = "Each vector by itself, ε under the root, and equal numbers give the bias."
    return grade(answer, right=known.norm, mistakes=known.NORM, cases=cases, praise=praise)


@takes_functions
def grade_parameters(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_parameters(d_model, n_heads, d_ff)``.

    Args:
        answer: Takes the sizes of an encoder layer; returns how many numbers it learns, biases included.
    """
    return grade(
        answer,
        right=known.parameters,
        mistakes=known.PARAMETERS,
        cases=list(_SIZES),
        praise="Four square matrices, two wide ones, six biases, two norms; heads cost nothing.",
        tolerance=1e-9,  # a count is right to the last digit
    )
