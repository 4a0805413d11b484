"""Optimizers: AdamW for all parameters, or Muon for the matrices of the layers and AdamW for the rest."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from exformer.training.config import TrainingConfig
from exformer.training.muon import Muon
from exformer.training.schedules import Schedule


def make_optimizers(model: nn.Module, config: TrainingConfig) -> list[tuple[torch.optim.Optimizer, Schedule]]:
    """Make the optimizers that a configuration asks for, each with its schedule.

    Frozen parameters, those with ``requires_grad`` false, are left out.

    Raises:
        ValueError: If the model lacks a module that is to have its own learning rate, all parameters are
            frozen, or Muon has no matrix to update.
    """
    optimizers: list[tuple[torch.optim.Optimizer, Schedule]] = []
    matrices, rest = split_parameters(model)
    if not matrices and not rest:
        raise ValueError("all parameters of the model are frozen: set requires_grad of those to train")
    if config.optimizer == "adamw":
        matrices, rest = [], trainable_parameters(model)
    elif not matrices:
        raise ValueError(
            "muon updates matrices of layers in an nn.ModuleList directly below the model, got none that is "
            "trainable: keep the layers in such a list, or take adamw"
        )
    if matrices:
        muon = Muon(matrices, momentum=config.momentum, weight_decay=config.weight_decay)
        optimizers.append((muon, config.make_schedule(config.muon_lr)))
    for peak, parameters in _by_learning_rate(config, model, rest):
        adam = adamw(parameters, betas=config.betas, weight_decay=config.weight_decay)
        optimizers.append((adam, config.make_schedule(peak)))
    return optimizers


def _by_learning_rate(
    config: TrainingConfig, model: nn.Module, parameters: list[nn.Parameter]
) -> Iterator[tuple[float, list[nn.Parameter]]]:
    """Yield the parameters of AdamW in groups, each with its peak learning rate."""
    modules = dict(model.named_children())
    if unknown := sorted(config.lr_by_module.keys() - modules.keys()):
        raise ValueError(
            f"lr_by_module is for modules of the model ({', '.join(modules)}), got {', '.join(unknown)}"
        )
    own = {id(p): name for name in config.lr_by_module for p in modules[name].parameters()}
    for name, peak in {"": config.lr, **config.lr_by_module}.items():
        if chosen := [p for p in parameters if own.get(id(p), "") == name]:
            yield peak, chosen


def adamw(
    parameters: Iterable[Tensor], *, betas: tuple[float, float] = (0.9, 0.98), weight_decay: float = 0.0
) -> torch.optim.Optimizer:
    """Make AdamW with ε = 10⁻⁹, fused into one pass over the memory, also on a CPU.

    Args:
        parameters: What it updates; embeddings and matrices decay, vectors (biases, norms) do not. Frozen
            ones are left out.
        betas: Decay rates of the running means of the gradient and of its square.
        weight_decay: Fraction by which a weight shrinks in a step, times the learning rate.

    Returns:
        The optimizer; a schedule sets its learning rate.

    Raises:
        ValueError: If the weight decay is negative.

    Source:
        Loshchilov and Hutter 2019, algorithm 2; Vaswani et al. 2017, section 5.3, for ε.
    """
    if not weight_decay >= 0:  # so that NaN is refused too
        raise ValueError(f"weight_decay must be at least 0, got {weight_decay}")
    given = [p for p in parameters if p.requires_grad]
    groups = [
        {"params": [p for p in given if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in given if p.ndim < 2], "weight_decay": 0.0},
    ]
    filled = [group for group in groups if group["params"]]
    return torch.optim.AdamW(filled, betas=betas, eps=1e-9, fused=True)


def split_parameters(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Split a model's trainable parameters into the matrices of its layers, and all else.

    Args:
        model: Its layers are in ``nn.ModuleList``.

    Returns:
        The matrices of the layers; the rest: embeddings, norms, biases, the output layer.
    """
    stacks = [part for part in model.children() if isinstance(part, nn.ModuleList)]
    inside = {id(p) for stack in stacks for p in stack.parameters() if p.ndim == 2}
    parameters = trainable_parameters(model)
    return [p for p in parameters if id(p) in inside], [p for p in parameters if id(p) not in inside]


def trainable_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Return the parameters that are not frozen."""
    return [p for p in model.parameters() if p.requires_grad]
