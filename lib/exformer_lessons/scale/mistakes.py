"""Known mistakes, each with its hint: a plan from a scaling law, and a gradient of several workers."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from exformer_lessons.exercises.grading import Mistake

Fit = Callable[[Tensor, Tensor, Tensor], Sequence[float]]


def plan(table: Tensor, fit: Fit, budget: float) -> tuple[float, float, float]:
    """Return the best size, its tokens, and the predicted loss of the last row of the table."""
    return _plan()(table, fit, budget)


def _plan(
    *,
    ratio: Callable[..., float] = lambda first, a, second, b: a * first / (b * second),
    power: Callable[..., float] = lambda a, b: b / (a + b),
    root: Callable[..., float] = lambda a, b: 1 / (a + b),
    per: float = 6.0,
    per_tokens: float | None = None,
    rows: slice = slice(None, -1),
    predicted: Callable[..., float] | None = None,
) -> Callable[[Tensor, Fit, float], tuple[float, float, float]]:
    def answer(table: Tensor, fit: Fit, budget: float) -> tuple[float, float, float]:
        first, a, second, b = fit(*table[rows].T)
        n = ratio(first, a, second, b) ** root(a, b) * (budget / per) ** power(a, b)
        d = budget / ((per_tokens or per) * n)
        size, tokens = table[-1, :2].tolist()
        loss = first * size**-a + second * tokens**-b
        if predicted is not None:
            loss = predicted(first, a, second, b, n, d)
        return n, d, loss

    return answer


#: Wrong plans.
PLAN: dict[str, Mistake] = {
    "You fit with the last row too: what is to be predicted must not be seen.": _plan(rows=slice(None)),
    "The two terms are not equal at the best size; their derivatives are. The exponents a and b come down as "
    "factors.": _plan(ratio=lambda first, a, second, b: first / second),
    "A token costs six operations for each parameter, not one: C = 6ND.": _plan(per=1.0),
    "Six operations for each parameter and token are forward and backward pass; two are the forward pass "
    "alone.": _plan(per=2.0),
    "Your tokens do not use the budget: C = 6ND holds for D, too.": _plan(per_tokens=1.0),
    "The exponent of the size is b / (a + b): the faster the data pay, the larger the model may be.": _plan(
        power=lambda a, b: a / (a + b)
    ),
    "You have exchanged parameters and tokens: the parameters come first, and a and A belong to them.": _plan(
        ratio=lambda first, a, second, b: b * second / (a * first), power=lambda a, b: a / (a + b)
    ),
    "The ratio of the two terms is turned round: a A is above, b B below.": _plan(
        ratio=lambda first, a, second, b: b * second / (a * first)
    ),
    "The ratio of the two terms is raised to 1 / (a + b).": _plan(root=lambda a, b: 1.0),
    "The third result is the loss of the last row of the table, not that of your plan.": _plan(
        predicted=lambda first, a, second, b, n, d: first * n**-a + second * d**-b
    ),
}


def reduced(sums: Tensor, counts: Tensor) -> Tensor:
    """Return the gradient of the mean over all examples, once for each worker."""
    return (sums.sum(dim=0) / counts.sum()).expand_as(sums)


def _everywhere(how: Callable[[Tensor, Tensor], Any]) -> Callable[[Tensor, Tensor], Any]:
    return lambda sums, counts: torch.as_tensor(how(sums, counts)).expand_as(sums)


#: Wrong ways to combine the gradients of workers.
REDUCED: dict[str, Mistake] = {
    "You average the workers' means, but their parts are unequal: add the sums and the counts, then divide "
    "once.": _everywhere(lambda s, n: (s / n[:, None]).mean(dim=0)),
    "You add the workers' means: add the sums and the counts, then divide once.": _everywhere(
        lambda s, n: (s / n[:, None]).sum(dim=0)
    ),
    "You divide by the number of workers: divide by the number of examples of all of them.": _everywhere(
        lambda s, n: s.mean(dim=0)
    ),
    "You have added the sums, but a mean is also divided by the number of all examples.": _everywhere(
        lambda s, n: s.sum(dim=0)
    ),
    "Each worker divides by its own count: then the workers differ, and so do their weights after a step.": (
        lambda s, n: s.sum(dim=0) / n[:, None]
    ),
    "Each worker keeps its own gradient: nothing has been exchanged.": lambda s, n: s / n[:, None],
    "Only the first worker has the sum: an all-reduce leaves it with every worker.": (
        lambda s, n: torch.cat([s.sum(dim=0, keepdim=True) / n.sum(), s[1:] / n[1:, None]]),
        lambda s, n: torch.cat([s.sum(dim=0, keepdim=True) / n.sum(), s[1:]]),
        lambda s, n: torch.cat([s.sum(dim=0, keepdim=True) / n.sum(), torch.zeros_like(s[1:])]),
    ),
    "You weight the sums by the counts: a sum has as many terms already. Add up, then divide once.": (
        _everywhere(lambda s, n: (s * n[:, None]).sum(dim=0) / n.sum()),
        _everywhere(lambda s, n: (s * n[:, None]).sum(dim=0) / n.sum() ** 2),
        _everywhere(lambda s, n: (s * n[:, None]).mean(dim=0) / n.sum()),
    ),
    "You drop the last worker.": _everywhere(lambda s, n: s[:-1].sum(dim=0) / n[:-1].sum()),
    "Your weights are turned around: the worker with more examples counts for more.": _everywhere(
        lambda s, n: ((s / n[:, None]) * (1 / n)[:, None]).sum(dim=0) / (1 / n).sum()
    ),
}
