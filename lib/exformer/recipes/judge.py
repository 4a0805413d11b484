"""How good and how fast a trained model is, found from its weights alone: the texts that it never saw."""

import time
from pathlib import Path
from typing import Any

import torch

from exformer.pretrained import Pretrained, load_model
from exformer.recipes.clock import machine
from exformer.recipes.corpora import CORPORA, Pairs
from exformer.recipes.recipe import Recipe
from exformer.recipes.scores import score
from exformer.recipes.task import make_task


def judge(name_or_folder: str | Path, *, progress: bool = False) -> dict[str, Any]:
    """Score a model on the validation and the test texts of the corpus that its recipe names.

    Args:
        name_or_folder: As for :func:`~exformer.pretrained.load_model`.
        progress: Show bars.

    Returns:
        The name, the recipe's, the seeds of the model and of its teachers, the scores, the seconds that
        scoring took, and the machine.

    Raises:
        ValueError: If there is no such model, or its card has no recipe that can be followed.
    """
    found = load_model(name_or_folder)
    recipe = _recipe(found, name_or_folder)
    data = CORPORA[recipe.corpus]()
    tokenizer = next(iter(found.tokenizers.values()))
    task = make_task(recipe, data, tokenizer, device=torch.device("cpu"))
    task.model.load_state_dict(found.model.state_dict())
    start = time.perf_counter()
    parts = ("val", "test") if isinstance(data, Pairs) else ()
    scores = score(task, data, recipe, parts=parts, progress=progress)
    return {
        "model": str(name_or_folder),
        "recipe": recipe.name,
        "seed": recipe.seed,
        **({"teachers_seed": recipe.seed_of_teachers} if recipe.teachers else {}),
        "parameters": found.card["parameters"],
        "training": found.card["training"],
        "signatures": scores.pop("signatures", {}),
        "scores": scores,
        "seconds": round(time.perf_counter() - start, 1),
        "machine": machine(torch.device("cpu")),
    }


def _recipe(found: Pretrained, name: str | Path) -> Recipe:
    """Read the recipe on a model's card."""
    settings = found.card.get("recipe")
    try:
        recipe = Recipe.from_settings(settings if isinstance(settings, dict) else {})
    except ValueError as error:
        raise ValueError(f"{name}: the card's recipe can't be followed: {error}") from error
    if recipe.corpus not in CORPORA:
        raise ValueError(f"{name}: the card's recipe can't be followed: there is no corpus {recipe.corpus!r}")
    return recipe
