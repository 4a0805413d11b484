"""Training: show a batch, measure the loss, move every parameter a little down its slope, repeat."""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from tqdm import tqdm

from exformer.data.sampler import MicroBatch
from exformer.training.schedules import Schedule


def set_seed(seed: int) -> None:
    """Start all random number generators (Python's, NumPy's, PyTorch's) from one number.

    Args:
        seed: From 0 to 2³² - 1.
    """
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def train(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    loss_fn: Callable[[nn.Module, Any], Float[Tensor, ""]],
    optimizer: torch.optim.Optimizer,
    schedule: Callable[[int], float] | None = None,
    clip_norm: float | None = None,
    progress: str = "",
) -> list[float]:
    """Take one optimizer step a batch.

    Args:
        model: What is trained; it is put into training mode.
        batches: What ``loss_fn`` understands, one a step; their number is the number of steps.
        loss_fn: Gives the loss of the model on a batch.
        optimizer: Moves the parameters.
        schedule: Learning rate of step 1, 2, ...; None leaves the optimizer's own.
        clip_norm: Longest gradient, all parameters as one vector; None for no limit.
        progress: Title of a progress bar; none if empty.

    Returns:
        The loss before each step.

    Raises:
        ValueError: If there are no batches, ``clip_norm`` is not above 0, or the loss or a parameter stops
            being a number.
    """
    steps = ([MicroBatch(batch)] for batch in tqdm(batches, desc=progress, disable=not progress, leave=False))
    options = {"loss_fn": loss_fn, "optimizers": [(optimizer, schedule)], "clip_norm": clip_norm}
    losses = list(take_steps(model, steps, **options))
    if not losses:
        raise ValueError("there were no batches to train on")
    return losses


def take_steps(
    model: nn.Module,
    steps: Iterable[Iterable[MicroBatch]],
    *,
    loss_fn: Callable[[nn.Module, Any], Float[Tensor, ""]],
    optimizers: Sequence[tuple[torch.optim.Optimizer, Schedule | None]],
    clip_norm: float | None = None,
    first: int = 1,
    accelerator: Any = None,
) -> Iterator[float]:
    r"""Take one step of the optimizers after another, and give the loss after each.

    .. math:: L = \sum_i share_i \, L_i

    Between two losses nothing is under way: the model may be measured (then put back into training mode), and
    all may be saved. A walk that is not finished leaves the model as it was after the last loss.

    Args:
        model: What is trained; it is put into training mode.
        steps: What each step is about. Parts are shown one after another, so that a batch may be larger than
            the memory; with several processes, each process gets its own parts.
        loss_fn: Gives the loss of the model on a part.
        optimizers: Each with the learning rate of step 1, 2, ...; None leaves its own.
        clip_norm: Longest gradient, all parameters as one vector; None for no limit.
        first: Number of the first step, for the schedules.
        accelerator: An ``accelerate.Accelerator`` that has prepared the model, or None: one process.

    Yields:
        The loss before each step, over the parts of all processes.

    Raises:
        ValueError: If ``clip_norm`` is not above 0, or the loss or a parameter stops being a number.
    """
    if clip_norm is not None and not clip_norm > 0:
        raise ValueError(f"clip_norm must be above 0, got {clip_norm}: None sets no limit")
    model.train()
    step = first - 1
    for step, parts in enumerate(steps, start=first):
        for optimizer, schedule in optimizers:
            for group in optimizer.param_groups if schedule else ():
                group["lr"] = schedule(step)
            optimizer.zero_grad(set_to_none=True)
        loss = _add_gradients(model, list(parts), loss_fn, accelerator)
        if not math.isfinite(loss):
            raise ValueError(f"the loss is {loss} at step {step}: lower the learning rate or clip gradients")
        if clip_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        for optimizer, _ in optimizers:
            optimizer.step()
        yield loss
    if not all(p.isfinite().all() for p in model.parameters()):  # no later loss would show it
        raise ValueError(
            f"a parameter is no number after step {step}: lower the learning rate or clip gradients"
        )


def _add_gradients(model: nn.Module, parts: list[MicroBatch], loss_fn: Callable, accelerator: Any) -> float:
    """Add up the parts' gradients and losses, each with its share; processes talk at the last part only."""
    losses = []
    for part in parts:
        waits = accelerator is not None and part is not parts[-1]
        with accelerator.no_sync(model) if waits else nullcontext():
            loss = loss_fn(model, part.batch) * part.share
            losses.append(loss.detach())
            if accelerator is None:
                loss.backward()
            else:  # it takes the mean over the processes, but the shares make it a sum
                accelerator.backward(loss * accelerator.num_processes)
    total = torch.stack(losses).sum()
    return (total if accelerator is None else accelerator.reduce(total, "sum")).item()
