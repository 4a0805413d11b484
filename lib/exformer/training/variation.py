"""Variations of a training, to see whether what it shows depends on steps, rate or order.

Nothing is varied but inside of :func:`varied_training`; there, every model that is trained is.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, is_dataclass, replace
from random import Random
from typing import Any

import torch

from exformer.checks import whole_number
from exformer.data.sampler import BatchSampler
from exformer.training.config import TrainingConfig
from exformer.training.schedules import Schedule


@dataclass(frozen=True, kw_only=True)
class Variation:
    """Say how trainings differ from what their code says.

    Args:
        steps: How many times as many steps; the schedule is stretched, and batches that can be walked through
            again are, in a new order each time.
        rate: How many times the learning rate.
        order: Number of another order of the batches; 0 leaves them as they are.

    Raises:
        ValueError: If no training can follow it.
    """

    steps: int = 1
    rate: float = 1.0
    order: int = 0

    def __post_init__(self) -> None:
        """Refuse what no training can follow."""
        whole_number("steps", self.steps, least=1)
        whole_number("order", self.order, least=0)
        if not 0 < self.rate < math.inf:
            raise ValueError(f"rate must be above 0 and finite, got {self.rate}: 1.0 leaves it")


@dataclass
class TrainingNote:
    """What happened in a training.

    Args:
        optimizer_steps: How often an optimizer stepped.
        losses: The loss before each step.
    """

    optimizer_steps: int
    losses: list[float]


_variation: ContextVar[tuple[Variation, list[TrainingNote]] | None] = ContextVar("variation", default=None)


@contextmanager
def varied_training(variation: Variation) -> Iterator[list[TrainingNote]]:
    """Vary every training inside of the context, and note what happens in each.

    Args:
        variation: How they differ.

    Yields:
        A list that grows with each training.

    >>> import torch
    >>> from exformer import train
    >>> model = torch.nn.Linear(1, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> batches = [torch.ones(2, 1)] * 10
    >>> with varied_training(Variation(steps=4)) as notes:
    ...     losses = train(model, batches, loss_fn=lambda m, x: m(x).square().mean(), optimizer=optimizer)
    >>> len(losses), notes[0].optimizer_steps
    (40, 40)
    """
    notes: list[TrainingNote] = []
    token = _variation.set((variation, notes))
    try:
        yield notes
    finally:
        _variation.reset(token)


def begin_note() -> TrainingNote:
    """Begin the note of a training; it is kept where trainings are varied."""
    note, now = TrainingNote(0, []), _variation.get()
    if now is not None:
        now[1].append(note)
    return note


@contextmanager
def vary_batches(
    batches: Iterable[Any], schedule: Schedule | None, optimizer: torch.optim.Optimizer
) -> Iterator[tuple[Iterable[Any], Schedule | None]]:
    """Give the batches and the schedule of a training as they are to be used now."""
    now = _variation.get()
    if now is None:
        yield batches, schedule
        return
    variation, before = now[0], [group["lr"] for group in optimizer.param_groups]
    if schedule is None:
        for group in optimizer.param_groups:
            group["lr"] *= variation.rate
    try:
        yield _passes(batches, variation), None if schedule is None else _stretched(schedule, variation)
    finally:
        if schedule is None:
            for group, rate in zip(optimizer.param_groups, before, strict=True):
                group["lr"] = rate


def vary_run(config: TrainingConfig, batches: Any) -> tuple[TrainingConfig, Any]:
    """Give the settings and the batches of a Trainer as they are to be used now.

    Raises:
        ValueError: If the batches have no other order.
    """
    now = _variation.get()
    if now is None:
        return config, batches
    variation = now[0]
    counts = {name: getattr(config, name) * variation.steps for name in ("steps", "warmup", "eval_interval")}
    rates = {name: getattr(config, name) * variation.rate for name in ("lr", "muon_lr")}
    parts = {name: rate * variation.rate for name, rate in config.lr_by_module.items()}
    config = replace(config, **counts, **rates, lr_by_module=parts)
    if not variation.order:
        return config, batches
    if not isinstance(batches, BatchSampler):
        return config, list(_passes(batches, Variation(order=variation.order)))
    if not is_dataclass(batches) or isinstance(batches, type) or not hasattr(batches, "seed"):
        raise ValueError(
            f"expected batches with a seed, got {type(batches).__name__}: they have no other order"
        )
    return config, replace(batches, seed=batches.seed + variation.order)


def _stretched(schedule: Schedule, variation: Variation) -> Schedule:
    """Give each step of a schedule to as many steps as there are in its place."""
    return lambda step: variation.rate * schedule(math.ceil(step / variation.steps))


def _passes(batches: Iterable[Any], variation: Variation) -> Iterator[Any]:
    """Walk through batches several times, each time in another order; what gives them once is kept."""
    if variation.steps > 1 and iter(batches) is batches:
        batches = list(batches)
    for turn in range(variation.steps):
        if not variation.order and not turn:
            yield from batches
            continue
        shuffled = list(batches)
        Random(1000 * variation.order + turn).shuffle(shuffled)
        yield from shuffled
