"""``exformer train`` and ``exformer bench``: a recipe or a text -> a model; models -> their scores."""

import argparse
import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tqdm import tqdm

from exformer.check_settings import check_integer
from exformer.cli.broken_pipe import lasting_stderr
from exformer.cli.device import choose_device
from exformer.cli.lines import show_controls
from exformer.hub.shipped import shipped_models
from exformer.recipes import Recipe, find_recipe
from exformer.recipes.datasets import Pairs, Text
from exformer.recipes.evaluate import judge, prepare
from exformer.recipes.options import OPTIONS, change_recipe
from exformer.recipes.own_text import OWN_TEXT, describe, read_pairs, read_text, recipe_for
from exformer.recipes.run import run_recipe
from exformer.recipes.run_folder import RunFolder
from exformer.storage.files import check_writable, read_json, write_json
from exformer.training.distributed import destroy_process_group
from exformer.training.trainer import Trainer


def train_model(args: argparse.Namespace) -> None:
    """Train a model by a recipe, or on the reader's own texts."""
    device = choose_device(args.device)
    with lasting_stderr():
        data, folder = _own_data(args), RunFolder(args.out)
        recipe = _recipe(args, data, folder)

        def show(trainer: Trainer) -> None:
            if data is not None:
                tqdm.write(show_controls(describe(trainer, data)), file=sys.stderr)

        is_main = os.environ.get("RANK", "0") == "0"  # accelerate numbers the processes
        if args.resume and is_main and folder.is_finished(recipe):
            print(f"{args.out} holds a finished run: its model is in {folder.model}", file=sys.stderr)
        run_recipe(
            recipe,
            args.out,
            data=data,
            resume=args.resume,
            device=device,
            progress=sys.stderr.isatty(),
            on_measure=show,
        )
        destroy_process_group()


def _own_data(args: argparse.Namespace) -> Pairs | Text | None:
    """Read the reader's own texts; None where there is a recipe."""
    ways = [args.recipe is not None, args.text is not None, args.source is not None]
    if ways.count(True) != 1 or (args.source is None) != (args.target is None):
        raise ValueError("give one of: a RECIPE, --text FILE, or --source FILE with --target FILE")
    if args.text is not None:
        return read_text(args.text)
    if args.source is None:
        return None
    files = (args.source, args.target)
    if all(map(os.path.exists, files)) and os.path.samefile(*files):
        raise ValueError("--source and --target name one file: expected sentences, and their translations")
    return read_pairs(*files)


def _recipe(args: argparse.Namespace, data: Pairs | Text | None, folder: RunFolder) -> Recipe:
    """Return the recipe of the run: a resumed run's own, with what the options change."""
    options = {name: getattr(args, name) for name in OPTIONS if getattr(args, name) is not None}
    if args.steps is not None:
        check_integer("--steps", args.steps, least=2)
    begun = folder.read_recipe() if args.resume and folder.recipe.exists() else None
    if begun is not None and begun.name == (args.recipe or OWN_TEXT):
        return change_recipe(begun, options, resumed=True)
    recipe = find_recipe(args.recipe) if data is None else recipe_for(data, steps=args.steps)
    return change_recipe(recipe, options)


def score_models(args: argparse.Namespace) -> None:
    """Score models, print what was found, and write it down."""
    names, found = dict.fromkeys(args.models or shipped_models()), []
    # Scoring takes minutes: what can't be scored or written is to be found before the first model is.
    others = [] if args.json is None else _scores_of_others(args.json, names)
    for candidate in [prepare(name) for name in names]:
        found.append(judge(candidate, progress=sys.stderr.isatty()))
        for what, number in found[-1]["scores"].items():
            print(f"{candidate.name}: {what}: {number}")
    if args.json is not None:
        write_json(args.json, others + found, indent=1, ensure_ascii=False)


def _scores_of_others(path: str, names: Collection[str]) -> list[dict[str, Any]]:
    """Read what a file of scores holds of models that are not scored now; it can be written anew."""
    check_writable(path, what="the scores")
    if not Path(path).is_file():
        return []
    try:
        found = read_json(path, what="a file of scores", kind=list)
        return [one for one in found if one["model"] not in names]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} holds no scores: choose another file") from error
