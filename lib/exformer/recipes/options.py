"""A recipe with other settings: what the options of ``exformer train`` mean."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from exformer.check_settings import check_integer
from exformer.recipes.recipe import Recipe

_MODEL = ("d_model", "n_heads", "n_layers", "max_len", "dropout")
#: The settings that :func:`change_recipe` takes.
OPTIONS = ("steps", "seed", "teachers_seed", "lr", "batch", *_MODEL)


def change_recipe(recipe: Recipe, options: Mapping[str, Any], *, resumed: bool = False) -> Recipe:
    """Return a recipe with other settings.

    Args:
        recipe: To begin with.
        options: By name, see :data:`OPTIONS`. A learning rate is that of AdamW; those of Muon and of single
            modules change by the same factor. With the width, that of the feed-forward layers changes by the
            same factor. ``batch`` is the number of target tokens.
        resumed: Whether the recipe is that of a run which goes on. In a new run, the warm-up takes at most a
            tenth of the steps that are given.

    Raises:
        ValueError: If a setting is unknown or out of its range.

    >>> from exformer.recipes import find_recipe
    >>> recipe = change_recipe(find_recipe("shakespeare-char"), {"lr": 0.005, "d_model": 64})
    >>> recipe.training.lr, recipe.training.muon_lr, recipe.model["d_ff"]
    (0.005, 0.015, 256)
    """
    if unknown := sorted(options.keys() - set(OPTIONS)):
        raise ValueError(f"unknown settings: {', '.join(unknown)}; expected some of {', '.join(OPTIONS)}")
    training: dict[str, Any] = {name: options[name] for name in ("steps", "seed") if name in options}
    if "steps" in training:
        steps = check_integer("steps", training["steps"], least=1)
        if not resumed:
            training["warmup"] = min(recipe.training.warmup, max(1, steps // 10))
    if "lr" in options:
        training |= _scale_learning_rates(recipe, options["lr"])
    own = {name: options[name] for name in ("teachers_seed",) if name in options}
    own |= {"tokens": options["batch"]} if "batch" in options else {}
    model = {name: options[name] for name in _MODEL if name in options}
    if "d_model" in model and {"d_model", "d_ff"} <= recipe.model.keys():
        width = check_integer("d_model", model["d_model"], least=1)
        model["d_ff"] = width * recipe.model["d_ff"] // recipe.model["d_model"]
    return replace(recipe.with_training(**training), **own, model={**recipe.model, **model})


def _scale_learning_rates(recipe: Recipe, lr: float) -> dict[str, Any]:
    """Return all learning rates of a recipe, multiplied so that the one of AdamW is ``lr``."""
    training = recipe.training
    factor = lr / training.lr if training.lr else 1.0
    return {
        "lr": lr,
        "muon_lr": factor * training.muon_lr,
        "lr_by_module": {name: factor * each for name, each in training.lr_by_module.items()},
    }
