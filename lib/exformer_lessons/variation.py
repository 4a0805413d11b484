"""Vary every training of a notebook: more steps, another learning rate, another order of the batches.

The library knows nothing of this. Inside of :func:`varied_training` the functions by which ``train`` and
``Trainer`` take their steps are replaced; what they compute is the same, of other batches and rates.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, is_dataclass, replace
from random import Random
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from exformer.check_settings import check_integer
from exformer.data.sampler import BatchSampler
from exformer.training import loop, trainer
from exformer.training.config import TrainingConfig
from exformer.training.loop import Losses, training_steps
from exformer.training.optimizers import make_optimizers
from exformer.training.schedules import Schedule
from exformer.training.trainer import Trainer

_Optimizers = Sequence[tuple[torch.optim.Optimizer, Schedule | None]]
_init = Trainer.__init__


@dataclass(frozen=True, kw_only=True)
class Variation:
    """How trainings differ from what their code says.

    Args:
        steps: How many times as many steps; the schedule is stretched, and batches that can be iterated over
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
        """Check the fields."""
        check_integer("steps", self.steps, least=1)
        check_integer("order", self.order, least=0)
        if not 0 < self.rate < math.inf:
            raise ValueError(f"rate must be above 0 and finite, got {self.rate}: 1.0 leaves it")

    def stretched(self, schedule: Schedule | None) -> Schedule | None:
        """Return a schedule of which each step is repeated, with a multiple of its learning rates."""
        if schedule is None:
            return None
        return lambda step: self.rate * schedule(math.ceil(step / self.steps))

    def passes(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Iterate over batches several times, each time in another order; an iterator is kept as a list."""
        if self.steps > 1 and iter(batches) is batches:
            batches = list(batches)
        for turn in range(self.steps):
            if not self.order and not turn:
                yield from batches
                continue
            shuffled = list(batches)
            Random(1000 * self.order + turn).shuffle(shuffled)
            yield from shuffled

    def config(self, config: TrainingConfig) -> TrainingConfig:
        """Return the settings of a Trainer with other steps and learning rates."""
        counts = {name: getattr(config, name) * self.steps for name in ("steps", "warmup", "eval_interval")}
        rates = {name: getattr(config, name) * self.rate for name in ("lr", "muon_lr")}
        parts = {name: rate * self.rate for name, rate in config.lr_by_module.items()}
        return replace(config, **counts, **rates, lr_by_module=parts)

    def batches(self, batches: Any) -> Any:
        """Return the batches of a Trainer in another order.

        Raises:
            ValueError: If they have no other order.
        """
        if not self.order:
            return batches
        if not isinstance(batches, BatchSampler):
            return list(Variation(order=self.order).passes(batches))
        if not is_dataclass(batches) or isinstance(batches, type) or not hasattr(batches, "seed"):
            raise ValueError(
                f"expected batches with a seed, got {type(batches).__name__}: they have no other order"
            )
        return replace(batches, seed=batches.seed + self.order)


@dataclass
class Training:
    """What happened in a training: how often an optimizer stepped, and the loss before each step."""

    optimizer_steps: int = 0
    losses: list[float] = field(default_factory=list)


@contextmanager
def varied_training(variation: Variation) -> Iterator[list[Training]]:
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
    >>> with varied_training(Variation(steps=4)) as trainings:
    ...     losses = train(model, batches, loss_fn=lambda m, x: m(x).square().mean(), optimizer=optimizer)
    >>> len(losses), trainings[0].optimizer_steps
    (40, 40)
    """
    trainings: list[Training] = []

    def noted_steps(
        model: nn.Module,
        batches: Iterable[Any],
        *,
        optimizers: _Optimizers,
        losses: Losses | None = None,
        **rest: Any,
    ) -> Iterator[int]:
        losses = Losses(first_step=rest.get("first_step", 1)) if losses is None else losses
        training = Training(losses=losses.values)
        trainings.append(training)
        for step in training_steps(model, batches, optimizers=optimizers, losses=losses, **rest):
            training.optimizer_steps += len(optimizers)
            yield step

    def varied_steps(
        model: nn.Module, batches: Iterable[Any], *, optimizers: _Optimizers, **rest: Any
    ) -> Iterator[int]:
        fixed = [group for each, schedule in optimizers if schedule is None for group in each.param_groups]
        before = [group["lr"] for group in fixed]
        for group in fixed:
            group["lr"] *= variation.rate
        own = [(each, variation.stretched(schedule)) for each, schedule in optimizers]
        try:
            yield from noted_steps(model, variation.passes(batches), optimizers=own, **rest)
        finally:
            for group, rate in zip(fixed, before, strict=True):
                group["lr"] = rate

    def varied_init(self: Trainer, *arguments: Any, **settings: Any) -> None:
        _init(self, *arguments, **settings)
        self.config = variation.config(self.config)
        self.batches = variation.batches(self.batches)
        self.optimizers = make_optimizers(self.model, self.config)

    with ExitStack() as stack:
        for owner, name, varied in (
            (loop, "training_steps", varied_steps),  # those of train
            (trainer, "training_steps", noted_steps),
            (Trainer, "__init__", varied_init),
        ):
            stack.enter_context(patch.object(owner, name, varied))
        yield trainings
