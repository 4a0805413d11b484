"""Graders: the context vector, weights against an alignment."""

from collections.abc import Callable

import torch
from torch import Tensor

from exformer_lessons.exercises.grading import (
    FINITE_FILL,
    Verdict,
    and_also,
    first_of,
    grade,
    takes_functions,
    with_large_scores,
)
from exformer_lessons.first_attention import mistakes as known

#: The numbers of target and source words, and pairs of (source position, target position).
_SQUARE = (
    ((8, 8), [(0, 0), (1, 2), (2, 1), (3, 3), (3, 5), (4, 4), (5, 4), (6, 6)]),
    ((6, 6), [(0, 1), (3, 2), (2, 3), (4, 0), (1, 0)]),
)
_OBLONG = ((5, 9), [(0, 1), (3, 2), (8, 3), (7, 0), (1, 0)])


@takes_functions
def grade_context(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_context(h_d, h_e, real)``.

    Args:
        answer: Takes the decoder's states (batch, tgt, d_model), the encoder's (batch, src, d_model) and
            where there is no padding (batch, src); returns the context vectors (batch, tgt, d_model).

    Examples:
        >>> grade_context(lambda h_d, h_e, real: None)
        Not yet. Your function returns nothing.
    """
    rng = torch.Generator().manual_seed(2)
    # In the square cases a mistake has the right shape, and can be named.
    square = [_states(rng, lengths=(4, 6, 2), tgt=6, d_model=6) for _ in range(2)]
    _, h_e, real = _states(rng, lengths=(2, 6), tgt=6, d_model=6)
    square.append((torch.zeros(2, 6, 6), h_e, real))  # all scores are 0, far above none
    oblong = [_states(rng, lengths=(5, 3), tgt=4, d_model=9)]
    first, second, far = (
        grade(
            answer,
            right=known.context,
            mistakes=hints,
            cases=cases,
            praise="Each context is a mean of real states, weighted by their fit.",
            tolerance=tolerance,
            frame=first_of(3),
        )
        for cases, hints, tolerance in (
            (square, known.CONTEXT, 1e-5),
            (oblong, {}, 1e-5),
            ([_far(rng)], known.FAR, 1e-4),  # large scores differ by their rounding
        )
    )
    if far.says == FINITE_FILL and not first and first.says not in known.CONTEXT:
        return far
    seen = and_also(first, second, "With 4 target positions, 5 source positions and states of width 9")
    return with_large_scores(seen, far, ", and padding comes first")


def _states(
    rng: torch.Generator, *, lengths: tuple[int, ...], tgt: int, d_model: int
) -> tuple[Tensor, Tensor, Tensor]:
    src = max(lengths)
    h_d = torch.randn((len(lengths), tgt, d_model), generator=rng)
    h_e = torch.randn((len(lengths), src, d_model), generator=rng)
    return h_d, h_e, torch.arange(src) < torch.tensor(lengths)[:, None]


def _far(rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Make scores near -16,384, exact in float32 because states are integers; padding comes first."""
    h_d, h_e = (torch.randint(-1, 2, (3, length, 4), generator=rng).float() for length in (4, 6))
    h_d[..., 0], h_e[..., 0] = -128.0, 128.0
    return h_d, h_e, torch.arange(6) >= torch.tensor([0, 2, 4])[:, None]


@takes_functions
def grade_agreement(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_agreement(weights, alignment)``.

    Args:
        answer: Takes weights (tgt, src) and pairs (source position, target position); returns the fraction of
            aligned target positions whose largest weight is on a source position they are aligned with.
    """
    rng = torch.Generator().manual_seed(11)
    cases = []
    for shape, alignment in (*3 * _SQUARE, _OBLONG):
        scores = torch.randn(shape, generator=rng)
        for number, (source, target) in enumerate(alignment):
            scores[target, source] += 3.0 * (number % 3 > 0)
        cases.append((scores.softmax(dim=-1), alignment))

    square, oblong = (
        grade(
            answer,
            right=known.agreement,
            mistakes=hints,
            cases=some,
            praise="It counts words, not links, and looks along each row for the largest weight.",
        )
        for some, hints in ((cases[:-1], known.AGREEMENT), (cases[-1:], {}))
    )
    return and_also(square, oblong, "With 5 target words and 9 source words")
