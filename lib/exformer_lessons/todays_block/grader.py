"""Graders: attention with grouped queries, a mixture of experts with its balance loss."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from exformer_lessons.exercises.grading import Verdict, grade, takes_functions
from exformer_lessons.exercises.results import UnfitError
from exformer_lessons.todays_block import mistakes as known


@takes_functions
def grade_grouped(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_grouped_attention(q, k, v)``.

    Args:
        answer: Takes queries (heads, query, d_head), and keys and values (kv_heads, key, d_head); returns
            (heads, query, d_head).
    """
    rng = torch.Generator().manual_seed(17)
    cases = [
        (
            torch.randn(heads, 3, d_head, generator=rng),
            torch.randn(kv_heads, 5, d_head, generator=rng),
            torch.randn(kv_heads, 5, d_head, generator=rng),
        )
        for heads, kv_heads, d_head in ((6, 2, 4), (6, 3, 8), (4, 4, 2), (4, 1, 2))
    ]
    return grade(
        answer,
        right=known.grouped,
        mistakes=known.GROUPED,
        cases=cases,
        praise="Neighboring heads share keys and values, and each has its own queries.",
    )


def _part(n: int) -> Callable[..., Any]:
    """Take one of the two results, the output or the balance loss."""

    def frame(given: Any, *case: Any) -> Any:
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise UnfitError("Return two results: the output and the balance loss.")
        return given[n].detach() if isinstance(given[n], Tensor) else given[n]

    return frame


@takes_functions
def grade_mixture(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_mixture(x, w, experts, k)``.

    Args:
        answer: Takes tokens (token, d_model), the router's matrix (d_model, experts), a list of functions and
            how many of them are chosen for each token; returns the output and the balance loss.
    """
    rng = torch.Generator().manual_seed(18)
    cases = []
    for n_tokens, d_model, n_experts, k in ((7, 4, 5, 2), (5, 3, 4, 3), (9, 2, 3, 1)):
        matrices = torch.randn(n_experts, d_model, d_model, generator=rng)
        experts = [lambda x, m=m: (x @ m).tanh() for m in matrices]
        x = torch.randn(n_tokens, d_model, generator=rng)
        cases.append((x, torch.randn(d_model, n_experts, generator=rng), experts, k))
    output, loss = (
        grade(
            answer,
            right=known.both,
            mistakes=mistakes,
            cases=cases,
            praise="Each token goes to its experts, and the router is told which of them are used too much.",
            frame=_part(n),
        )
        for n, mistakes in enumerate((known.MIXTURE, known.BALANCE))
    )
    if not output:
        return output
    return loss or Verdict(False, f"The output is right. The balance loss: {loss.says}")
