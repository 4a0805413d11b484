"""What the commands that measure for a lesson share: their parts and file, and a sweep beyond its edges."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from exformer.training.loop import train
from exformer.training.optimizers import adamw
from exformer.training.schedules import linear_schedule
from exformer_lessons.formatting import rounded
from exformer_lessons.setup import start


def read_runs(file: Path) -> dict[str, Any]:
    """Return the parts that have been measured so far, by name; none before the first."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def write_runs(file: Path, found: dict[str, Any]) -> None:
    """Write all parts on one line."""
    file.write_text(json.dumps(found, ensure_ascii=False) + "\n", encoding="utf-8")


def measure_parts(file: Path, *parts: Callable[[], dict[str, Any]], exact: Sequence[str] = ()) -> None:
    """Measure the parts that the command names, or all; write the file as each is done.

    Args:
        file: Where they are kept, each under the name of its function.
        parts: Each returns what it has measured, and begins with the same random numbers.
        exact: Names of parts whose numbers are not rounded.
    """
    known = {part.__name__: part for part in parts}
    for name in sys.argv[1:] or known:
        start(seed=0)
        measured = known[name]()
        write_runs(file, read_runs(file) | {name: measured if name in exact else rounded(measured)})
        print(name, flush=True)


def train_clipped(
    model: nn.Module,
    batches: Iterable[Any],
    loss_fn: Callable[[Any, Any], Tensor],
    *,
    rate: float,
    warmup: int,
    total: int,
) -> None:
    """Train a model with AdamW, a linear schedule, and gradients of length 1 at most.

    Args:
        model: What is trained.
        batches: One for each step.
        loss_fn: Takes the model and a batch.
        rate: The highest learning rate.
        warmup: Steps in which the learning rate rises.
        total: Steps after which it is 0.
    """
    schedule = partial(linear_schedule, peak=rate, warmup=warmup, total=total)
    optimizer = adamw(model.parameters())
    train(model, batches, loss_fn=loss_fn, optimizer=optimizer, schedule=schedule, clip_norm=1.0)


def sweep_on(
    sweep: dict[float, Any],
    measure: Callable[[float], Any],
    best: Callable[[dict[float, Any]], float],
) -> None:
    """Add learning rates, a factor of two beyond an edge, while the best is the lowest or the highest.

    Args:
        sweep: What was measured, by learning rate.
        measure: Measures at a learning rate.
        best: Names the best learning rate of a sweep.

    >>> sweep = {rate: abs(rate - 8) for rate in (1.0, 2.0)}
    >>> sweep_on(sweep, lambda rate: abs(rate - 8), lambda sweep: min(sweep, key=sweep.get))
    >>> [*sweep]
    [1.0, 2.0, 4.0, 8.0, 16.0]
    """
    while (edge := best(sweep)) in (min(sweep), max(sweep)):
        following = edge / 2 if edge == min(sweep) else edge * 2
        sweep[following] = measure(following)
