"""The training loop: the loss of a batch, a step of every parameter against its gradient, and again."""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from tqdm import tqdm

from exformer.training.schedules import Schedule
from exformer.training.variation import begin_note, vary_batches

#: Gives the loss of a model on a batch; some take ``label_smoothing`` too.
LossFn = Callable[..., Float[Tensor, ""]]


class DivergenceError(ValueError):
    """A training whose loss or parameters stopped being numbers."""


def set_seed(seed: int) -> None:
    """Start all random number generators (Python's, NumPy's, PyTorch's) from one number, 0 to 2³² - 1."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def train(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    loss_fn: LossFn,
    optimizer: torch.optim.Optimizer,
    schedule: Schedule | None = None,
    clip_norm: float | None = None,
    progress: str = "",
) -> list[float]:
    """Take one optimizer step per batch.

    Args:
        model: Set to training mode.
        batches: One per step, in the form that ``loss_fn`` takes.
        loss_fn: Computes the loss of the model on a batch.
        optimizer: An optimizer of the model's parameters.
        schedule: Learning rate of step 1, 2, ...; None leaves the optimizer's own.
        clip_norm: Largest norm of the gradient, all parameters as one vector; None for no limit.
        progress: Title of a progress bar; if empty, there is none.

    Returns:
        The loss before each step.

    Raises:
        ValueError: If there are no batches, the optimizer has no parameter of the model, ``clip_norm`` is not
            positive, or the loss or a parameter becomes NaN or infinite (a ``DivergenceError``).

    >>> import torch
    >>> model = torch.nn.Linear(1, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> batches = [torch.tensor([[1.0], [2.0]])] * 100
    >>> def squared_error(model, x):
    ...     return (model(x) - 3 * x).square().mean()
    >>> losses = train(model, batches, loss_fn=squared_error, optimizer=optimizer)
    >>> len(losses), losses[-1] < 0.1
    (100, True)
    """
    with vary_batches(batches, schedule, optimizer) as (taken, rate):  # as they are, but in a trial
        bar = tqdm(taken, desc=progress, disable=not progress, leave=False)
        optimizers = [(optimizer, rate)]
        losses = list(training_steps(model, bar, loss_fn=loss_fn, optimizers=optimizers, clip_norm=clip_norm))
    if not losses:
        raise ValueError("there were no batches to train on")
    return losses


def backpropagate(model: nn.Module, batch: Any, loss_fn: LossFn) -> float:
    """Add the gradient of the loss of a batch to that of each parameter; return the loss."""
    loss = loss_fn(model, batch)
    loss.backward()
    return loss.item()


def training_steps(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    loss_fn: LossFn,
    optimizers: Sequence[tuple[torch.optim.Optimizer, Schedule | None]],
    clip_norm: float | None = None,
    first_step: int = 1,
    backward: Callable[[nn.Module, Any, LossFn], float] = backpropagate,
) -> Iterator[float]:
    """Take a step of the optimizers per batch, and yield the loss after each: :func:`train` as a generator.

    Between two losses nothing is under way: the model may be measured (then put back into training mode) or
    saved. A caller that stops early leaves the model as it was after the last loss.

    Args:
        model, batches, loss_fn, clip_norm: As for :func:`train`.
        optimizers: Each with the learning rate of step 1, 2, ...; None leaves its own.
        first_step: Number of the first step, for the schedules.
        backward: Adds the gradients of a batch and returns its loss; the
            :class:`~exformer.training.trainer.Trainer` splits a batch here.

    Yields:
        The loss before each step.

    Raises:
        ValueError: As :func:`train`, but for no batches.
    """
    if clip_norm is not None and not clip_norm > 0:
        raise ValueError(f"clip_norm must be above 0, got {clip_norm}: None sets no limit")
    check_optimizers(model, [optimizer for optimizer, _ in optimizers])
    model.train()
    step, note = first_step - 1, begin_note()
    for step, batch in enumerate(batches, start=first_step):
        for optimizer, schedule in optimizers:
            if schedule is not None:
                for group in optimizer.param_groups:
                    group["lr"] = schedule(step)
            optimizer.zero_grad(set_to_none=True)
        loss = backward(model, batch, loss_fn)
        if not math.isfinite(loss):
            raise DivergenceError(
                f"the loss is {loss} at step {step}: lower the learning rate or clip gradients"
            )
        note.losses.append(loss)
        if clip_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        for optimizer, _ in optimizers:
            optimizer.step()
        note.optimizer_steps += len(optimizers)
        yield loss
    check_parameters(model, step)  # no later loss would show it


def check_optimizers(model: nn.Module, optimizers: Iterable[torch.optim.Optimizer]) -> None:
    """Refuse an optimizer that moves none of a model's parameters: that of an earlier model, as a rule."""
    own = {id(parameter) for parameter in model.parameters()}
    for optimizer in optimizers:
        moved = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        if not moved & own:
            raise ValueError(
                "expected an optimizer of the model's parameters, got one that moves none of them: make it "
                "from model.parameters(), after the model"
            )


def check_parameters(model: nn.Module, step: int) -> None:
    """Refuse a model whose parameters are no numbers any more."""
    if not all(p.isfinite().all() for p in model.parameters()):
        raise DivergenceError(
            f"a parameter is no number after step {step}: lower the learning rate or clip gradients"
        )
