"""The optimizers that a recipe asks for, each with its learning rates."""

from collections.abc import Iterator

import torch
from torch import nn

from exformer.recipes.recipe import Recipe
from exformer.training.muon import Muon
from exformer.training.optimizers import adamw, split_parameters
from exformer.training.schedules import Schedule

#: Each with the learning rate of step 1, 2, ...
Optimizers = list[tuple[torch.optim.Optimizer, Schedule]]


def make_optimizers(recipe: Recipe, model: nn.Module) -> Optimizers:
    """Return a recipe's optimizers, each with its learning rates.

    Args:
        recipe: Of the run.
        model: Whose parameters they move.

    Raises:
        ValueError: If the model lacks a part that is to have its own rate.
    """
    optimizers: Optimizers = []
    rest = list(model.parameters())
    if recipe.optimizer == "muon":
        matrices, rest = split_parameters(model)
        how = {"momentum": recipe.momentum, "weight_decay": recipe.weight_decay}
        optimizers.append((Muon(matrices, **how), recipe.rate(recipe.muon_lr)))
    for peak, parameters in _by_rate(recipe, model, rest):
        adam = adamw(parameters, betas=recipe.betas, weight_decay=recipe.weight_decay)
        optimizers.append((adam, recipe.rate(peak)))
    return optimizers


def _by_rate(
    recipe: Recipe, model: nn.Module, parameters: list[nn.Parameter]
) -> Iterator[tuple[float, list[nn.Parameter]]]:
    """Give the parameters that AdamW moves, those of one learning rate together."""
    parts = dict(model.named_children())
    if unknown := sorted(recipe.rates.keys() - parts.keys()):
        raise ValueError(f"rates are for parts of the model ({', '.join(parts)}), came {', '.join(unknown)}")
    own = {id(p): name for name in recipe.rates for p in parts[name].parameters()}
    for name, peak in {"": recipe.lr, **recipe.rates}.items():
        if chosen := [p for p in parameters if own.get(id(p), "") == name]:
            yield peak, chosen
