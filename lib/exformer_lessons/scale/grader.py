"""Graders: a plan from a table of runs, the gradient of several workers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from exformer_lessons.exercises.grading import Verdict, grade, takes_functions
from exformer_lessons.exercises.results import UnfitError
from exformer_lessons.scale import mistakes as known
from exformer_lessons.scale.law import POWERS, Law, fit


def _coarse_fit(n: Any, d: Any, loss: Any) -> Law:
    """Fit to columns of any kind: tensors of any type, arrays or lists."""
    n, d, loss = (torch.as_tensor(each).double() for each in (n, d, loss))
    return fit(n, d, loss, powers=POWERS[::4])


def _cases() -> list[tuple[Any, ...]]:
    rng = torch.Generator().manual_seed(20)
    cases = []
    for scale, budget in ((50.0, 3e10), (20.0, 7e11), (90.0, 2e9)):
        n = torch.tensor([300.0, 900.0, 3_000.0, 9_000.0]).double().repeat(3)
        d = torch.tensor([2e4, 8e4, 4e5]).double().repeat_interleave(4)
        n, d = torch.cat([n, torch.tensor([20_000.0])]), torch.cat([d, torch.tensor([2e6])])
        noise = 1 + 0.03 * torch.randn(len(n), generator=rng).double()
        noise[-1] = 1.4  # who fits with it is far off
        loss = (scale * n**-0.7 + 12 * d**-0.34) * noise
        cases.append((torch.stack([n, d, loss], dim=1), _coarse_fit, budget))
    return cases


def _logarithms(given: Any, *case: Any) -> Any:
    if isinstance(given, Tensor | np.ndarray):
        given = given.tolist()
    if not isinstance(given, tuple | list) or len(given) != 3:
        raise UnfitError("Return three numbers: the parameters, the tokens, and the loss of the last row.")
    numbers = torch.tensor([float(each) for each in given]).double()
    if not (numbers > 0).all():
        raise UnfitError("Parameters, tokens and loss must be above 0.")
    return numbers.log()


@takes_functions
def grade_plan(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_plan(table, fit, budget)``.

    Args:
        answer: Takes a table of runs (run, 3) with parameters, tokens and loss, the last of which is held
            out; a function that fits A, a, B, b; and operations. Returns the best number of parameters, their
            tokens, and the predicted loss of the last run.
    """
    return grade(
        answer,
        right=known.plan,
        mistakes=known.PLAN,
        cases=_cases(),
        praise="The derivatives balance, the budget is spent, and the last run was not seen.",
        tolerance=2e-3,
        frame=_logarithms,
    )


@takes_functions
def grade_all_reduce(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_all_reduce(sums, counts)``.

    Args:
        answer: Takes the summed gradients (worker, parameter) and the numbers of examples (worker); returns
            what each worker holds afterwards (worker, parameter).
    """
    rng = torch.Generator().manual_seed(21)
    cases = [
        (
            torch.randn(len(counts), n, generator=rng, dtype=torch.float64),
            torch.tensor(counts, dtype=torch.float64),
        )
        for counts, n in (((2, 6), 3), ((5, 1, 4), 2), ((3, 8, 7, 2), 5))
    ]
    return grade(
        answer,
        right=known.reduced,
        mistakes=known.REDUCED,
        cases=cases,
        praise="Sums and counts are added, and every worker has the gradient of the whole batch.",
    )
