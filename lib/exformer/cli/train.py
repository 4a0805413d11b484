"""``exformer train`` and ``exformer bench``: a recipe or a text -> a model; models -> their scores."""

import argparse
import json
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from exformer.hub.shipped import shipped_models
from exformer.recipes import find_recipe
from exformer.recipes.datasets import Pairs, Text
from exformer.recipes.evaluate import judge, prepare
from exformer.recipes.own_text import describe, read_pairs, read_text, recipe_for
from exformer.recipes.run import run_recipe
from exformer.storage.files import check_writable, read_json, replace_file
from exformer.training.distributed import leave_processes
from exformer.training.trainer import Trainer


def train_model(args: argparse.Namespace) -> None:
    """Train a model by a recipe, or on the reader's own texts."""
    given = {name: getattr(args, name) for name in ("seed", "teachers_seed", "steps")}
    given = {name: number for name, number in given.items() if number is not None}
    data = _own_data(args)
    if data is None:
        recipe, show = replace(find_recipe(args.recipe), **given), None
    else:
        recipe = replace(recipe_for(data, steps=args.steps), **given)

        def show(trainer: Trainer) -> None:
            tqdm.write(describe(trainer, data), file=sys.stderr)

    has_gpu = torch.cuda.is_available()
    if args.device == "cuda" and not has_gpu:
        raise ValueError("PyTorch finds no CUDA device here: leave --device out, or give --device cpu")
    run_recipe(
        recipe,
        args.out,
        data=data,
        resume=args.resume,
        device=args.device or ("cuda" if has_gpu else "cpu"),
        progress=sys.stderr.isatty(),
        on_measure=show,
    )
    leave_processes()


def _own_data(args: argparse.Namespace) -> Pairs | Text | None:
    """Read the reader's own texts; None where there is a recipe."""
    ways = [args.recipe is not None, args.text is not None, args.source is not None]
    if ways.count(True) != 1 or (args.source is None) != (args.target is None):
        raise ValueError("give one of: a RECIPE, --text FILE, or --source FILE with --target FILE")
    if args.text is not None:
        return read_text(args.text)
    return None if args.source is None else read_pairs(args.source, args.target)


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
        replace_file(args.json, (json.dumps(others + found, indent=1, ensure_ascii=False) + "\n").encode())


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
