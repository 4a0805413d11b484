"""Graders: the causes of eight sick curves, the gradient of several micro-batches."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from exformer_lessons.exercises.grading import Verdict, grade, runs_inside, takes_functions
from exformer_lessons.training import mistakes as known
from exformer_lessons.training.programs import CAUSES, DOZEN

#: What a patient may have, as the exercise lists it.
LISTED = tuple(name for name in DOZEN if name not in ("healthy", "no warm-up, no clipping"))


def grade_clinic(answer: object) -> Verdict:
    """Grade a reader's causes of the eight patients.

    Args:
        answer: The cause of each patient, by its letter; the causes are the names of the lesson's programs.

    Examples:
        >>> grade_clinic(dict.fromkeys("PQRSTUVW", "overfitting"))
        Not yet. 0 of 8 are right. P: It is smooth, and slow from the beginning.
    """
    if not isinstance(answer, Mapping):
        return Verdict(False, "Give a dictionary: the cause of each patient, by its letter.")
    given = {str(letter).strip().upper(): str(cause).strip(" .").lower() for letter, cause in answer.items()}
    if strange := sorted(given.keys() - CAUSES.keys()):
        return Verdict(False, f"There is no patient {strange[0]}: they are {', '.join(CAUSES)}.")
    named = {letter: cause for letter, cause in given.items() if cause not in ("", "none")}
    for letter, cause in named.items():
        if cause not in LISTED:
            return Verdict(False, f"{letter}: there is no cause {cause!r}. They are: {', '.join(LISTED)}.")
    if not named:
        return Verdict(False, "You have named no cause yet.")
    wrong = [letter for letter, cause in CAUSES.items() if named.get(letter) != cause]
    if not wrong:
        return Verdict(True, "All eight, each by a sign that no other has.")
    first = next((letter for letter in wrong if letter in named), wrong[0])
    right = f"{len(CAUSES) - len(wrong)} of {len(CAUSES)} are right."
    if first not in named:
        return Verdict(False, f"{right} {first} has no cause yet.")
    pair = frozenset((CAUSES[first], named[first]))
    return Verdict(False, f"{right} {first}: {known.APART.get(pair, known.SIGNS[CAUSES[first]])}")


@runs_inside
def _loss_sum(w: Tensor, micro_batch: tuple[Tensor, Tensor]) -> tuple[Tensor, int]:
    states, targets = micro_batch
    nats = -(states @ w).log_softmax(dim=-1).gather(-1, targets[:, None])
    return nats.sum(), len(targets)


def _cases() -> list[tuple[Any, ...]]:
    rng = torch.Generator().manual_seed(14)
    cases = []
    for lengths, limit, stale in (((2, 8, 5), 50.0, False), ((7, 3, 1), 0.05, True), ((4, 6), 0.2, False)):
        w = torch.randn((3, 5), generator=rng, dtype=torch.float64).requires_grad_()
        if stale:
            w.grad = torch.randn((3, 5), generator=rng, dtype=torch.float64)
        micro_batches = [
            (
                torch.randn((n, 3), generator=rng, dtype=torch.float64),
                torch.randint(5, (n,), generator=rng),
            )
            for n in lengths
        ]
        cases.append((w, micro_batches, _loss_sum, limit))
    return cases


@takes_functions
def grade_accumulation(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_gradient(w, micro_batches, loss_sum, limit)``.

    Args:
        answer: Takes weights with ``requires_grad``, a list of micro-batches, a function that returns the
            summed loss of one and the number of its tokens, and the largest norm; returns the gradient of the
            mean over all tokens, clipped.
    """
    return grade(
        answer,
        right=known.gradient,
        mistakes=known.ACCUMULATION,
        cases=_cases(),
        praise="The sums are added, divided once by all tokens, and clipped once.",
        tolerance=3e-6,  # clip_grad_norm_ adds a millionth to the norm
        frame=lambda given, *case: given.detach() if isinstance(given, Tensor) else given,
    )
