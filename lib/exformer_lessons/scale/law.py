"""The scaling law of size and data: fit it to runs, and ask it for the best size."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from exformer_lessons.scale import models
from exformer_lessons.scale.measure import runs

#: A, a, B, b of the law A / N^a + B / D^b.
Law = tuple[float, float, float, float]

POWERS = torch.arange(0.1, 1.4, 0.02, dtype=torch.float64)


def fit(n: Tensor, d: Tensor, loss: Tensor, powers: Tensor = POWERS) -> Law:
    """Try all a and b; the best A and B for each follow at once."""
    a, b = torch.cartesian_prod(powers, powers).T
    x = torch.stack([n ** -a[:, None], d ** -b[:, None]], dim=2) / loss[:, None]
    ones = torch.ones(len(a), len(loss), 1).double()
    scale = torch.linalg.solve(x.mT @ x, x.mT @ ones)  # least squares
    errors = (x @ scale - 1).square().sum(dim=(1, 2))
    best = errors.argmin()
    return scale[best, 0].item(), a[best].item(), scale[best, 1].item(), b[best].item()


def fit_with_floor(
    n: Tensor, d: Tensor, loss: Tensor, powers: Tensor = POWERS, *, nonnegative: bool = False
) -> tuple[float, Law]:
    """Try all a and b; the best floor E, A and B for each follow at once. Return E, and the law above it.

    Args:
        n: Parameters.
        d: Tokens.
        loss: Of each run.
        powers: All a and b to try.
        nonnegative: Allow no floor below 0, as no loss is: a and b whose best floor is lower get E = 0.
    """
    a, b = torch.cartesian_prod(powers, powers).T
    ones = torch.ones(len(a), len(loss)).double()
    x = torch.stack([ones, n ** -a[:, None], d ** -b[:, None]], dim=2) / loss[:, None]
    unit = x.square().sum(dim=1, keepdim=True).sqrt()  # columns of like size, so that the solution is exact
    x = x / unit
    scale = torch.linalg.solve(x.mT @ x, x.mT @ ones[:, :, None])
    errors = (x @ scale - 1).square().sum(dim=(1, 2))
    if nonnegative:
        errors[scale[:, 0, 0] < 0] = float("inf")
        at_zero = fit(n, d, loss, powers)
        if (predict(at_zero, n, d) / loss - 1).square().sum() <= errors.min():
            return 0.0, at_zero
    best = errors.argmin()
    floor, high, low = (scale[best, :, 0] / unit[best, 0]).tolist()
    return floor, (high, a[best].item(), low, b[best].item())


def predict(law: Law, n: Tensor | float, d: Tensor | float) -> Tensor:
    """Return the loss of n parameters and d tokens."""
    A, a, B, b = law  # noqa: N806
    return A * torch.as_tensor(n).double() ** -a + B * torch.as_tensor(d).double() ** -b


def best_size(law: Law, operations: float) -> float:
    """Return the number of parameters with the lowest loss at 6ND operations."""
    A, a, B, b = law  # noqa: N806
    return (a * A / (b * B)) ** (1 / (a + b)) * (operations / 6) ** (b / (a + b))


def columns(part: str, *, most: float = float("inf"), rate: str = "") -> tuple[Tensor, Tensor, Tensor]:
    """Return size, tokens and mean loss of the runs that have at most so many operations.

    Args:
        part: Of the file, see :func:`~exformer_lessons.scale.measure.runs`.
        most: Operations.
        rate: A learning rate for all; without it each run has its own best rate. Runs that did not try it
            are left out.
    """
    cells = [
        cell
        for cell in runs(part)
        if models.operations(cell["width"], cell["facts"]) <= most and (not rate or rate in cell["sweep"])
    ]
    losses = [cell["sweep"][rate] if rate else sum(cell["loss"]) / len(cell["loss"]) for cell in cells]
    sizes = [models.n_parameters(cell["width"]) for cell in cells]
    tokens = [3 * cell["facts"] for cell in cells]
    n, d, loss = (torch.tensor(each).double() for each in (sizes, tokens, losses))
    return n, d, loss


def resampled(
    n: Tensor, d: Tensor, loss: Tensor, *, times: int = 200, by: Callable[..., Any] = fit
) -> list[Any]:
    """Fit again to runs drawn with replacement (a bootstrap); ``by`` makes each fit."""
    rng, laws = Random(0), []
    for _ in range(times):
        drawn = rng.choices(range(len(n)), k=len(n))
        laws.append(by(n[drawn], d[drawn], loss[drawn]))
    return laws


def interval(values: Sequence[float] | Tensor) -> tuple[float, float]:
    """Return where the middle 95% lie."""
    low, high = torch.as_tensor(values).double().quantile(torch.tensor([0.025, 0.975]).double()).tolist()
    return low, high
