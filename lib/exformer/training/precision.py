"""Mixed precision: bfloat16 where it is precise enough, float32 elsewhere."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch


def autocast(device: torch.device, precision: str) -> AbstractContextManager[Any]:
    """Return the context in which a model computes its loss.

    Args:
        device: That of the model.
        precision: As in :class:`~exformer.training.config.TrainingConfig`; "no" changes nothing, so that an
            autocast of the caller's stays in force.

    >>> with autocast(torch.device("cpu"), "bf16"):
    ...     (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    torch.bfloat16
    """
    return torch.autocast(device.type, torch.bfloat16) if precision == "bf16" else nullcontext()
