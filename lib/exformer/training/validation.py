"""Validation: the loss on batches from which nothing is learned, the best so far, and early stopping."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from exformer.data.sampler import MicroBatch
from exformer.nn.eval_mode import evaluating
from exformer.training.loop import LossFn
from exformer.training.to_device import device_of, to_device


def mean_loss(model: nn.Module, batches: Sequence[Any], loss_fn: LossFn) -> float:
    """Average the loss over batches, in evaluation mode.

    Args:
        model: It is put back into the mode in which it was.
        batches: Micro-batches, whose weights sum to 1, or plain batches of equal weight.
        loss_fn: Gives the loss of the model on a batch.
    """
    device = device_of(model)
    parts = [each if isinstance(each, MicroBatch) else MicroBatch(each, 1 / len(batches)) for each in batches]
    with evaluating(model):
        return sum(part.weight * loss_fn(model, to_device(part.batch, device)).item() for part in parts)


def compare_with_best(loss: float, notes: Mapping[str, Any], *, step: int) -> dict[str, Any]:
    """Return the notes of a validation: its loss, the best one so far, and how many came since that.

    Args:
        loss: What the validation found.
        notes: Of the validation before; empty if there was none.
        step: How many steps were taken, for the message.

    Raises:
        ValueError: If the loss is NaN or infinite.

    >>> compare_with_best(2.5, {"validation_loss": 2.0, "best": 2.0, "since": 0}, step=200)
    {'validation_loss': 2.5, 'best': 2.0, 'since': 1}
    """
    if not math.isfinite(loss):
        raise ValueError(f"the validation loss is {loss} after step {step}: lower the learning rate")
    best = notes.get("best", math.inf)
    since = 0 if loss < best else notes["since"] + 1
    return {"validation_loss": loss, "best": min(loss, best), "since": since}


def is_patience_over(notes: Mapping[str, Any], patience: int) -> bool:
    """Return whether so many validations have brought no improvement; a patience of 0 never ends."""
    return 0 < patience <= notes.get("since", 0)
