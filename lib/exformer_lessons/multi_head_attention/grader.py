"""Graders: split and merge heads and attend with several."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from exformer_lessons.exercises.grading import Verdict, first_of, grade, takes_functions
from exformer_lessons.multi_head_attention import mistakes as known


@takes_functions
def grade_split(split: Callable[..., object], merge: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_split(x, n_heads)`` and its inverse ``my_merge(heads)``.

    Args:
        split: Takes (batch, position, d_model) and the number of heads; returns (batch, heads, position,
            d_head).
        merge: Takes that and returns (batch, position, d_model).

    Examples:
        >>> grade_split(lambda x, n_heads: x.unflatten(-1, (n_heads, -1)).transpose(1, 2), lambda heads: None)
        Not yet. my_split is right. my_merge: Your function returns nothing.
    """
    rng = torch.Generator().manual_seed(4)
    cases = [(torch.randn(b, t, d, generator=rng), n) for b, t, d, n in ((2, 3, 20, 4), (1, 5, 6, 3))]
    verdict = grade(split, right=known.split, mistakes=known.SPLIT, cases=cases, praise="")
    if not verdict:
        return _named_order(split, *cases[0], otherwise=verdict)
    verdict = grade(
        merge,
        right=known.merge_heads,
        mistakes=known.MERGE,
        cases=[(known.split(*case).contiguous(),) for case in cases],  # else a view would join heads
        praise="Each head gets its columns of every word, and gives them back.",
    )
    return verdict if verdict else Verdict(False, f"my_split is right. my_merge: {verdict.says}")


def _named_order(
    split: Callable[..., object], x: torch.Tensor, n_heads: int, *, otherwise: Verdict
) -> Verdict:
    """Name the mistake if the axes of a cut have a known wrong order; all four sizes differ."""
    try:
        shape = np.shape(split(x.clone(), n_heads))
    except Exception:  # grade has said so
        return otherwise
    sizes = known.split(x, n_heads).shape
    for order, hint in known.ORDERS.items():
        if shape == tuple(sizes[axis] for axis in order):
            return Verdict(False, hint)
    return otherwise


@takes_functions
def grade_multi_head(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_multi_head(x, w_q, w_k, w_v, w_o, n_heads)``.

    Args:
        answer: Takes the words (position, d_model), four square matrices that multiply from the right and the
            number of heads; returns (position, d_model).
    """
    rng = torch.Generator().manual_seed(4)
    cases = []
    for length, d_model, n_heads in ((6, 8, 2), (5, 12, 2), (3, 16, 8)):
        x = torch.randn(length, d_model, generator=rng)
        maps = torch.randn(4, d_model, d_model, generator=rng) / d_model**0.5
        cases.append((x, *maps, n_heads))
    return grade(
        answer,
        right=known.multi_head,
        mistakes=known.MULTI_HEAD,
        cases=cases,
        praise="Every head attends by itself, and w_o brings them together.",
        frame=_without_batch,
    )


def _without_batch(given: Any, *case: object) -> object:
    """Let an answer return its weights too, and keep the axis of a batch of one."""
    out = first_of(2)(given)
    return out[0] if isinstance(out, torch.Tensor) and out.dim() == 3 and len(out) == 1 else out
