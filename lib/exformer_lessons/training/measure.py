"""Train what the lesson on training shows, with five seeds each.

    python -m exformer_lessons.training.measure [PART ...]

writes ``runs.json`` beside this file: all parts, or those that are named. All take half an hour on
one thread.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from exformer.corpora import english
from exformer_lessons.measured import measure_parts, read_runs
from exformer_lessons.training.checks import check
from exformer_lessons.training.programs import CAUSES, DOZEN, Program, fresh_rows, train, write

FILE = Path(__file__).with_name("runs.json")
SEEDS = range(5)


def runs(part: str) -> dict[str, Any]:
    """Return what was measured: of "dozen", "rates", "helpers", "small", "checks" and the other parts.

    >>> runs("dozen")["healthy"][0]["right"] > 2.09
    True
    """
    return read_runs(FILE)[part]


def floor() -> dict[str, Any]:
    """Return what no model can fall below: the grammar's entropy, and its loss on the sentences of a test."""
    sentences = english.sample(len(fresh_rows()), seed=10_000)
    return {"entropy": english.entropy_per_token(), "grammar": english.nats_per_token(sentences)}


def dozen() -> dict[str, Any]:
    """Train each program of the lesson."""
    return {name: [_with_texts(program, seed) for seed in SEEDS] for name, program in DOZEN.items()}


def rates() -> dict[str, Any]:
    """Train the healthy program at six learning rates, with warm-up and clipping, and without both."""
    both = {0.01: "healthy", 0.3: "learning rate too high", 3e-4: "learning rate too low"}
    return {
        "both": _sweep(Program(), "peak", (3e-4, 3e-3, 1e-2, 3e-2, 0.1, 0.3), both),
        "neither": _sweep(
            Program(warmup=1, clip=None),
            "peak",
            (3e-3, 1e-2, 3e-2, 0.1, 0.3),
            {0.01: "no warm-up, no clipping"},
        ),
    }


def helpers() -> dict[str, Any]:
    """Train at three times the healthy program's learning rate without warm-up, and without clipping."""
    return {
        "no warm-up": _sweep(Program(warmup=1), "peak", (3e-2,)),
        "no clipping": _sweep(Program(clip=None), "peak", (3e-2,)),
    }


def checks() -> dict[str, Any]:
    """Run the tests that need no entropy on each program of the lesson, with two seeds."""
    return {name: [_checked(name, seed) for seed in (0, 1)] for name in DOZEN}


def optimizers() -> dict[str, Any]:
    """Train the healthy program with Muon, at several learning rates."""
    return {"muon": _sweep(Program(optimizer="muon"), "muon_peak", (1e-2, 3e-2, 0.1))}


def small() -> dict[str, Any]:
    """Train on 300 sentences, with weight decay or dropout of several strengths, and on more sentences."""
    few = Program(n_texts=300)
    return {
        "decay": _sweep(few, "decay", (0.0, 3.0, 10.0), {0.0: "overfitting"}, curves=True),
        "dropout": _sweep(few, "dropout", (0.2, 0.4, 0.6), curves=True),
        "sentences": _sweep(few, "n_texts", (3_000,), curves=True),
    }


def patients() -> dict[str, Any]:
    """Train the programs of the exercise: other models, other seeds."""
    sizes = {"d_model": 32, "n_layers": 3, "steps": 250}
    return {letter: _with_texts(replace(DOZEN[cause], **sizes), 7) for letter, cause in CAUSES.items()}


def _with_texts(program: Program, seed: int) -> dict[str, Any]:
    model, found = train(program, seed=seed)
    print(program, seed, found["reported"], found["right"], flush=True)
    return found | {"texts": write(model, n=4)}


def _checked(name: str, seed: int) -> dict[str, Any]:
    found = check(DOZEN[name], seed=seed) | {"reported": runs("dozen")[name][seed]["reported"]}
    print(name, seed, found, flush=True)
    return found


def _sweep(
    program: Program,
    name: str,
    values: tuple[float, ...],
    known: Mapping[float, str] = MappingProxyType({}),
    *,
    curves: bool = False,
) -> dict[str, Any]:
    """Train a program with several values of one setting; those of the dozen are known."""
    found: dict[str, Any] = {}
    for value in values:
        if value in known:
            found[f"{value:g}"] = [_kept(run, curves) for run in runs("dozen")[known[value]]]
            continue
        found[f"{value:g}"] = []
        for seed in SEEDS:
            setting: dict[str, Any] = {name: value}
            run = train(replace(program, **setting), seed=seed, curves=curves)[1]
            print(name, value, seed, run["right"], flush=True)
            found[f"{value:g}"].append(_kept(run, curves))
    return found


def _kept(run: Mapping[str, Any], curves: bool) -> dict[str, Any]:
    return {name: run[name] for name in (("training", "validation", "right") if curves else ("right",))}


if __name__ == "__main__":
    measure_parts(FILE, floor, dozen, rates, helpers, optimizers, small, patients, checks, exact=("floor",))
