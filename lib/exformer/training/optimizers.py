"""Optimizers of long runs: AdamW for everything, or for all but the matrices, which are for Muon."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def adamw(
    parameters: Iterable[Tensor], *, betas: tuple[float, float] = (0.9, 0.98), weight_decay: float = 0.0
) -> torch.optim.Optimizer:
    """Make AdamW, all of whose steps are one pass over the memory, on a CPU too.

    Args:
        parameters: What it moves; tables and matrices decay, single vectors (biases, gains) do not.
        betas: How long the means of slope and squared slope remember.
        weight_decay: How much smaller a weight gets in a step, times the learning rate.

    Returns:
        The optimizer; its learning rate is for a schedule to set.

    Raises:
        ValueError: If the weights would grow.

    Source:
        Loshchilov and Hutter 2019, algorithm 2.
    """
    if not weight_decay >= 0:  # so that NaN is refused too
        raise ValueError(f"weight_decay must be at least 0, got {weight_decay}")
    given = list(parameters)
    groups = [
        {"params": [p for p in given if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in given if p.ndim < 2], "weight_decay": 0.0},
    ]
    filled = [group for group in groups if group["params"]]
    return torch.optim.AdamW(filled, betas=betas, eps=1e-9, fused=True)


def split_parameters(model: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """Tell the matrices inside a model's layers from all else: embeddings, norms, biases, output layer.

    Args:
        model: Its layers stand in lists.

    Returns:
        The matrices of the layers; the rest.
    """
    stacks = [part for part in model.children() if isinstance(part, nn.ModuleList)]
    inside = {id(p) for stack in stacks for p in stack.parameters() if p.ndim == 2}
    parameters = list(model.parameters())
    return [p for p in parameters if id(p) in inside], [p for p in parameters if id(p) not in inside]
