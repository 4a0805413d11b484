"""Evaluation mode for a while: no dropout, no gradients, then everything as it was."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

import torch
from torch import nn


@dataclass
class _Evaluation:
    """The threads that evaluate one model, and the modules to switch back when the last one leaves."""

    n_users: int
    were_training: list[nn.Module]


_lock = Lock()
_running: dict[nn.Module, _Evaluation] = {}


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch dropout and gradients off for a while, then put the model back as it was.

    Several threads may evaluate one model at once, and uses may be nested: the model is put back when the
    last one leaves. The mode belongs to the model, so a thread that trains it must wait until then.

    >>> model = nn.Dropout(0.5)
    >>> with evaluating(model):
    ...     model.training, torch.is_grad_enabled()
    (False, False)
    >>> model.training, torch.is_grad_enabled()
    (True, True)
    """
    with _lock:
        if model not in _running:
            _running[model] = _Evaluation(0, [module for module in model.modules() if module.training])
            model.eval()
        _running[model].n_users += 1
    try:
        with torch.no_grad():
            yield
    finally:
        with _lock:
            _running[model].n_users -= 1
            if _running[model].n_users == 0:
                for module in _running.pop(model).were_training:
                    module.training = True
