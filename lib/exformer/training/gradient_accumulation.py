"""Gradient accumulation: a step's gradient, added up over micro-batches that each fit into memory."""

from collections.abc import Sequence
from contextlib import nullcontext

import torch
from jaxtyping import Float
from torch import Tensor, nn

from exformer.data.sampler import MicroBatch
from exformer.training.distributed import Processes
from exformer.training.loop import LossFn
from exformer.training.precision import autocast
from exformer.training.to_device import device_of, to_device


def accumulate_gradients(
    model: nn.Module,
    micro_batches: Sequence[MicroBatch],
    loss_fn: LossFn,
    *,
    processes: Processes,
    precision: str = "no",
) -> Float[Tensor, ""]:
    r"""Add up the gradients and losses of the micro-batches of all processes, each with its weight.

    .. math:: L = \sum_i w_i \, L_i

    Args:
        model: As ``processes`` wrapped it.
        micro_batches: Those of this process.
        loss_fn: Computes the loss of the model on a batch.
        processes: Those that train the model.
        precision: As in :class:`~exformer.training.config.TrainingConfig`.

    Returns:
        :math:`L`, of all processes.
    """
    device, losses = device_of(model), []
    for micro_batch in micro_batches:
        last = micro_batch is micro_batches[-1]  # processes talk once per step
        with nullcontext() if last else processes.no_sync(model), autocast(device, precision):
            loss = loss_fn(model, to_device(micro_batch.batch, device)) * micro_batch.weight
            # Processes take the mean of their gradients; the weights want a sum.
            (loss * processes.count).backward()
        losses.append(loss.detach())
    return processes.sum(torch.stack(losses).sum())
