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
    x, y = (each ** -powers[:, None] / loss for each in (n, d))  # (power, run): A x + B y should be 1
    high, low, errors = _least_squares(x, y, torch.ones_like(loss))
    a, b = divmod(int(errors.argmin()), len(powers))
    return high[a, b].item(), powers[a].item(), low[a, b].item(), powers[b].item()


def fit_with_floor(n: Tensor, d: Tensor, loss: Tensor, powers: Tensor = POWERS) -> tuple[float, Law]:
    """Try all a and b; the best floor E, A and B for each follow at once. Return E, and the law above it.

    Args:
        n: Parameters.
        d: Tokens.
        loss: Of each run.
        powers: All a and b to try.
    """
    x, y = (each ** -powers[:, None] / loss for each in (n, d))  # E / loss + A x + B y should be 1
    one, unit = torch.ones_like(loss), (1 / loss) / (1 / loss).norm()
    rest = (each - (each @ unit)[..., None] * unit for each in (x, y, one))  # what no floor explains
    high, low, errors = _least_squares(*rest)
    floor = (one @ unit - high * (x @ unit)[:, None] - low * (y @ unit)) / (1 / loss).norm()
    a, b = divmod(int(errors.argmin()), len(powers))
    return floor[a, b].item(), (high[a, b].item(), powers[a].item(), low[a, b].item(), powers[b].item())


def _least_squares(x: Tensor, y: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Fit A x + B y to what is wanted, each x with each y; return A, B and the squared errors (x, y)."""
    xx, yy, xy = x.square().sum(dim=1)[:, None], y.square().sum(dim=1), x @ y.T
    wx, wy = (x @ wanted)[:, None], y @ wanted
    high, low = ((p / (xx * yy - xy**2)) for p in (yy * wx - xy * wy, xx * wy - xy * wx))
    return high, low, wanted @ wanted - high * wx - low * wy


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


def resampled(n: Tensor, d: Tensor, loss: Tensor, *, by: Callable[..., Any] = fit) -> list[Any]:
    """Fit 200 times to runs drawn with replacement (a bootstrap); ``by`` makes each fit."""
    rng, laws = Random(0), []
    for _ in range(200):
        drawn = rng.choices(range(len(n)), k=len(n))
        laws.append(by(n[drawn], d[drawn], loss[drawn]))
    return laws


def interval(values: Sequence[float] | Tensor) -> tuple[float, float]:
    """Return where the middle 95% lie."""
    low, high = torch.as_tensor(values).double().quantile(torch.tensor([0.025, 0.975]).double()).tolist()
    return low, high
