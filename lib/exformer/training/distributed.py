"""Several processes that train one model, on the GPUs of one machine or of many; or one, on its own."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


class Processes:
    """The processes that train one model: which of them this one is, and what they exchange.

    One process needs nothing. Several are started by ``accelerate launch``, one per GPU; each works on its
    own rows of every batch, and gradients are summed. So a run may be resumed with another number of
    processes.

    Attributes:
        index: Number of this process, from 0.
        count: Number of processes.
        device: The device of this process; None: that of the model.

    Raises:
        ValueError: If there are several, and Accelerate is not installed.
    """

    def __init__(self) -> None:
        self._accelerator = _accelerator() if int(os.environ.get("WORLD_SIZE", "1")) > 1 else None
        self.index: int = self._accelerator.process_index if self._accelerator else 0
        self.count: int = self._accelerator.num_processes if self._accelerator else 1
        self.device: torch.device | None = self._accelerator.device if self._accelerator else None

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that writes files and messages."""
        return self.index == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """Wrap a model so that its gradients are averaged over the processes whenever they are computed."""
        return self._accelerator.prepare_model(model) if self._accelerator else model

    def no_sync(self, model: nn.Module) -> AbstractContextManager[Any]:
        """Suspend the averaging of a wrapped model's gradients."""
        return self._accelerator.no_sync(model) if self._accelerator else nullcontext()

    def sum(self, value: Tensor) -> Tensor:
        """Sum a number over the processes."""
        return self._accelerator.reduce(value, "sum") if self._accelerator else value

    def main_first(self) -> AbstractContextManager[Any]:
        """Run a block in the main process first, so that the others find what it has written."""
        return self._accelerator.main_process_first() if self._accelerator else nullcontext()

    def wait(self) -> None:
        """Wait for all processes."""
        if self._accelerator:
            self._accelerator.wait_for_everyone()


class ModelWithLoss(nn.Module):
    """A model and its loss as one module, whose forward pass gives the loss of a batch.

    Data parallelism averages the gradients of what runs in the forward pass of the module that it wraps, so
    that the loss must be in there: a wrapped model has no ``loss``, ``states`` or ``config``.
    """

    def __init__(self, model: nn.Module, *, loss_fn: Callable[[nn.Module, Any], Tensor]) -> None:
        super().__init__()
        self.model, self.loss_fn = model, loss_fn

    def forward(self, batch: Any) -> Tensor:
        """Compute the loss of a batch."""
        return self.loss_fn(self.model, batch)


def destroy_process_group() -> None:
    """Close this process's connections to the others, as the last act of a program.

    A process that still listens while another one ends is told so by an error from a thread of PyTorch, and
    aborts, its work done. So all of them wait for the last one first.
    """
    if dist.is_available() and dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def _accelerator() -> Any:
    try:
        from accelerate import Accelerator  # here: it takes seconds to import, and one process needs none
    except ImportError as error:
        raise ValueError(
            "several processes were started, and they need Accelerate: pip install 'exformer[processes]'"
        ) from error
    return Accelerator(mixed_precision="no")  # the Trainer has its own autocast
