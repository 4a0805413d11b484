"""A training run of seconds, to be cut, killed and shared by a test; ``accelerate launch`` runs it too."""

import json
import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import torch

import exformer
from exformer.corpora.examples import Pair
from exformer.recipes import Recipe
from exformer.recipes.datasets import Pairs
from exformer.recipes.run import run_recipe
from exformer.recipes.zoo import ENGLISH_ITALIAN
from exformer.training.config import TrainingConfig

LIBRARY = str(Path(exformer.__file__).parents[1])  # for other processes
SIZES = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_layers": 1, "max_len": 32, "share_embeddings": True}


def changed(recipe: Recipe, **changes: object) -> Recipe:
    """Return a recipe with other settings, of its own or of its training."""
    names = {field.name for field in fields(TrainingConfig)} & changes.keys()
    training = {name: changes.pop(name) for name in names}
    return replace(recipe.with_training(**training), **changes)


TINY = changed(
    ENGLISH_ITALIAN,
    model={**SIZES, "dropout": 0.1},
    steps=12,
    warmup=3,
    eval_interval=3,
    average_last=2,
    tokens=300,
    num_beams=1,
)


def train(folder: Path | str, **changes: object) -> Path:
    """Begin or go on."""
    changes = {"warmup": min(TINY.training.warmup, changes.get("steps", TINY.training.steps))} | changes
    return run_recipe(changed(TINY, **changes), folder, resume=True)


def run_code(code: str, *words: str) -> str:
    """Run Python in a process of its own, with this library and beside these tests; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=Path(__file__).parent,
        env=os.environ | {"PYTHONPATH": LIBRARY},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def launch_two(*words: str) -> subprocess.CompletedProcess:
    """Run a script, or ``-m`` and a module, in two processes that train together by Accelerate."""
    command = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes=2"]
    command += ["--num_machines=1", "--mixed_precision=no", "--dynamo_backend=no", "--main_process_port=0"]
    environment = os.environ | {"ACCELERATE_USE_CPU": "true", "PYTHONPATH": LIBRARY}
    command += ["--num_cpu_threads_per_process=1", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done


def turned_round(data: Pairs) -> Pairs:
    """Return pairs of texts with source and target exchanged."""
    parts = ("train", "val", "test")
    return replace(data, **{part: [Pair(p.target, p.source) for p in getattr(data, part)] for part in parts})


if __name__ == "__main__":
    changes = json.loads(sys.argv[2])
    if changes.pop("float64", False):
        torch.set_default_dtype(torch.float64)
    train(sys.argv[1], **changes)
    # One write, line end and all: two processes share this pipe.
    print(f"{os.environ.get('RANK')}/{os.environ.get('WORLD_SIZE')}\n", end="")
