"""How good and how fast a trained model is, found from its weights alone: the texts that it never saw."""

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from exformer.hub.pretrained import Pretrained, load_model
from exformer.models.decoder_lm import DecoderLM
from exformer.models.encoder_decoder import EncoderDecoder
from exformer.recipes.datasets import CORPORA, Pairs, Text
from exformer.recipes.environment import machine
from exformer.recipes.recipe import Recipe
from exformer.recipes.scores import score
from exformer.recipes.task import Task, make_task

_OF_TOKENIZERS = ("vocab_size", "src_vocab_size", "tgt_vocab_size", "pad_id")  # no recipe has them


@dataclass(frozen=True)
class Candidate:
    """Hold a model that can be scored.

    Args:
        name: As it was asked for.
        recipe: On its card, with the sizes that the model has.
        notes: What else the card knows.
        data: The corpus that the recipe names.
        task: With the model.
    """

    name: str
    recipe: Recipe
    notes: dict[str, Any]
    data: Pairs | Text
    task: Task


def prepare(name_or_folder: str | Path) -> Candidate:
    """Load a model, and look whether it can be scored, before minutes go into the scores of any.

    What is to be scored is the model in the folder, also where the recipe's settings make another one.

    Args:
        name_or_folder: As for :func:`~exformer.hub.pretrained.load_model`.

    Returns:
        The model, for :func:`judge`.

    Raises:
        ValueError: If there is no such model, its card lacks something or has no recipe that can be followed,
            or the recipe's corpus is for models of another kind.
    """
    found = load_model(name_or_folder)
    recipe = _recipe(found, name_or_folder)
    notes = {name: found.card.get(name) for name in ("parameters", "training")}
    if missing := [name for name, value in notes.items() if value is None]:
        raise ValueError(f"{name_or_folder}: the card lacks {', '.join(missing)}: expected that of a run")
    data = CORPORA[recipe.corpus]()
    return Candidate(str(name_or_folder), recipe, notes, data, _task(found, recipe, data, name_or_folder))


def judge(candidate: Candidate, *, progress: bool = False) -> dict[str, Any]:
    """Score a model on the validation and the test texts of the corpus that its recipe names.

    Args:
        candidate: The model, as :func:`prepare` gives it.
        progress: Show bars.

    Returns:
        The name, the recipe's, the seeds of the model and of its teachers, the scores, the seconds that
        scoring took, and the machine.
    """
    recipe, data, start = candidate.recipe, candidate.data, time.perf_counter()
    parts = ("val", "test") if isinstance(data, Pairs) else ()
    scores = score(candidate.task, data, recipe, parts=parts, progress=progress)
    return {
        "model": candidate.name,
        "recipe": recipe.name,
        "seed": recipe.seed,
        **({"teachers_seed": recipe.seed_of_teachers} if recipe.teachers else {}),
        **candidate.notes,
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
    own = {key: value for key, value in asdict(found.model.config).items() if key not in _OF_TOKENIZERS}
    if unknown := sorted(recipe.model.keys() - own.keys()):
        raise ValueError(f"{name}: the card's recipe can't be followed: no model has {', '.join(unknown)}")
    return replace(recipe, model=own)


def _task(found: Pretrained, recipe: Recipe, data: Pairs | Text, name: str | Path) -> Task:
    """Let the loaded model have the texts that the recipe's would be judged by."""
    kind, wanted = type(found.model), EncoderDecoder if isinstance(data, Pairs) else DecoderLM
    if kind is not wanted:
        raise ValueError(
            f"{name}: the corpus {recipe.corpus} of the card's recipe is for a model of kind "
            f"{wanted.__name__}, the model is of kind {kind.__name__}"
        )
    tokenizer, *others = found.tokenizers.values()
    texts = [pair.target for pair in data.val] if isinstance(data, Pairs) else []
    if any(tokenizer.encode(text) != other.encode(text) for other in others for text in texts):
        raise ValueError(f"{name}: recipes have one tokenizer for both languages, the model has two")
    task = make_task(recipe, data, tokenizer, device=torch.device("cpu"))
    return replace(task, model=found.model, tokenizers=found.tokenizers)
