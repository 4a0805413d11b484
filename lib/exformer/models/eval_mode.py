"""Evaluation mode for a while: no dropout, no gradients, then everything as it was."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch dropout and gradients off for a while, then put the model back as it was.

    >>> model = nn.Dropout(0.5)
    >>> with evaluating(model):
    ...     model.training, torch.is_grad_enabled()
    (False, False)
    >>> model.training, torch.is_grad_enabled()
    (True, True)
    """
    were_training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module in were_training:
            module.training = True
