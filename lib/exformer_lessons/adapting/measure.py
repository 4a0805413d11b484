"""Adapt models in each way that the lesson shows, with five seeds each.

    python -m exformer_lessons.adapting.measure [PART ...]

writes ``runs.json`` beside this file: all parts, or those that are named. All take a quarter of an hour on
one thread.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn

from exformer import DecoderLM, merge_lora
from exformer_lessons.adapting.ways import (
    Way,
    adapt,
    continue_text,
    excesses,
    pretrained,
    relearn,
    trained_weights,
)
from exformer_lessons.measured import measure_parts, read_runs

FILE = Path(__file__).with_name("runs.json")
SEEDS = range(5)

#: Each way with the learning rates that were tried.
WAYS: dict[str, tuple[Way, tuple[float, ...]]] = {
    "all weights": (Way(), (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)),
    "LoRA, rank 1": (Way("lora", 1), (3e-3, 1e-2, 3e-2, 0.1)),
    "LoRA, rank 4": (Way("lora", 4), (3e-3, 1e-2, 3e-2)),
    "LoRA, rank 16": (Way("lora", 16), (1e-3, 3e-3, 1e-2, 3e-2)),
    "LoRA, rank 64": (Way("lora", 64), (1e-3, 3e-3, 1e-2, 3e-2)),
    "head": (Way("head"), (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)),
    "layers": (Way("layers"), (1e-3, 3e-3, 1e-2, 3e-2)),
    "prompt": (Way("prompt"), (0.1, 0.3, 1.0, 3.0, 10.0)),
    "replay": (Way(old=0.1), (3e-3, 1e-2, 3e-2)),
    "tag": (Way(tag=True), (3e-3, 1e-2, 3e-2)),
    "tag and replay": (Way(old=0.1, tag=True), (3e-3, 1e-2, 3e-2)),
    "LoRA, tag and replay": (Way("lora", 16, old=0.1, tag=True), (1e-3, 3e-3, 1e-2, 3e-2)),
}


def runs(part: str) -> dict[str, Any]:
    """Return what was measured, by the name of its function.

    >>> runs("ways")["LoRA, rank 4"]["weights"]
    9216
    """
    return read_runs(FILE)[part]


def at_equal_learning(curve: list[list[float]], excess: float, *, side: int = 1) -> float | None:
    """Return how much is forgotten when the excess in the second language has fallen to a value.

    Args:
        curve: As :func:`~exformer_lessons.adapting.ways.adapt` returns it.
        excess: In nats per token.
        side: 1 for the excess in the first language, 2 for the probability of words that it allows.

    Returns:
        The excess in the first language, interpolated between two points; None if it never falls so far.

    >>> at_equal_learning([[9.0, 0.0], [1.0, 4.0], [0.5, 6.0]], 0.75)
    5.0
    """
    for (new, *old), (later_new, *later_old) in pairwise(curve):
        if later_new <= excess:
            part = (new - excess) / (new - later_new)
            return round(old[side - 1] + part * (later_old[side - 1] - old[side - 1]), 4)
    return None


def rates() -> dict[str, Any]:
    """Adapt one model in each way at several learning rates."""
    return {
        name: {f"{rate:g}": _excesses(way, rate, 0) for rate in tried} for name, (way, tried) in WAYS.items()
    }


def best_rate(name: str) -> float:
    """Return the learning rate at which a way learns most of the second language."""
    found = runs("rates")[name]
    return float(min(found, key=lambda rate: found[rate][-1][0]))


def ways() -> dict[str, Any]:
    """Adapt five models in each way, each at its best rate."""
    found: dict[str, Any] = {}
    for name, (way, _) in WAYS.items():
        done = [_run(way, best_rate(name), seed) for seed in SEEDS]
        found[name] = {
            "rate": best_rate(name),
            "weights": trained_weights(done[0][0]),
            "curves": [[point[:2] for point in curve] for _, curve in done],
        }
        if isinstance(done[0][0], DecoderLM):
            found[name]["texts"] = [continue_text(model, "the small dog", n=3) for model, _ in done]
    return found


def before() -> dict[str, Any]:
    """Show the models before they are adapted."""
    return {
        "excess": [excesses(pretrained(seed), Way()) for seed in SEEDS],
        "texts": [continue_text(pretrained(seed), "the small dog", n=3) for seed in SEEDS],
    }


def fractions() -> dict[str, Any]:
    """Adapt five models on texts of which some are old, with the tag and without."""
    return {
        name: {
            f"{old:g}": [_excesses(replace(WAYS[name][0], old=old), best_rate(name), s)[-1] for s in SEEDS]
            for old in (0.01, 0.03, 0.3)
        }
        for name in ("replay", "tag and replay")
    }


def short() -> dict[str, Any]:
    """Adapt five models in fewer steps: each training ends where its learning rate does."""
    return {
        name: {
            str(n): [_run(replace(WAYS[name][0], steps=n), best_rate(name), seed)[1][-1] for seed in SEEDS]
            for n in (40, 60, 100)
        }
        for name in ("all weights", "LoRA, rank 4")
    }


def allowed() -> dict[str, Any]:
    """Measure how probable the words that English allows are to models that are adapted in some ways."""
    return {
        name: [_run(WAYS[name][0], best_rate(name), seed)[1] for seed in SEEDS]
        for name in ("all weights", "layers", "LoRA, rank 4", "LoRA, rank 64")
    }


def fresh() -> dict[str, Any]:
    """Train models that have read no English before on the texts of a replay.

    They have read nothing, or the dialect of swapped words as long as the others have read English.
    """
    found: dict[str, Any] = {}
    for name, make in (("", _untrained), (", swapped words before", _of_third_language)):
        for texts in ("replay", "tag and replay"):
            way = WAYS[texts][0]
            tried = {rate: _run_from(make, way, rate, 0) for rate in (3e-3, 1e-2, 3e-2)}
            rate = min(tried, key=lambda each: tried[each][0])
            found[texts + name] = {
                "rate": rate,
                "ends": [tried[rate], *(_run_from(make, way, rate, seed) for seed in SEEDS[1:])],
            }
    return found


def again() -> dict[str, Any]:
    """Show adapted models a few old texts; the control is a model that has read nothing before."""
    found: dict[str, Any] = {}
    for name in ("all weights", "LoRA, rank 4"):
        found[name] = []
        for seed in SEEDS:
            model = _run(WAYS[name][0], best_rate(name), seed)[0]
            model = merge_lora(model) if "LoRA" in name else model
            found[name].append(_relearned(model, seed))
    found["untrained"] = [_relearned(DecoderLM(pretrained(0).config), seed) for seed in SEEDS]
    return found


def swapped() -> dict[str, Any]:
    """Adapt five models to another dialect, in which words are swapped."""
    found: dict[str, Any] = {}
    for name in ("all weights", "LoRA, rank 4", "LoRA, rank 16"):
        way = replace(WAYS[name][0], dialect="swapped")
        tried = {rate: _excesses(way, rate, 0) for rate in (1e-3, 3e-3, 1e-2, 3e-2)}
        rate = min(tried, key=lambda each: tried[each][-1][0])
        rest = [_excesses(way, rate, seed) for seed in SEEDS[1:]]
        found[name] = {"rate": rate, "curves": [tried[rate], *rest]}
    return found


def _run(way: Way, rate: float, seed: int) -> tuple[Any, list[list[float]]]:
    model, curve = adapt(pretrained(seed), way, peak=rate, seed=seed)
    print(way, rate, seed, curve[-1], flush=True)
    return model, curve


def _excesses(way: Way, rate: float, seed: int) -> list[list[float]]:
    return [point[:2] for point in _run(way, rate, seed)[1]]


def _untrained(seed: int) -> DecoderLM:
    config = pretrained(0).config
    torch.manual_seed(seed)  # after a training, which may have taken place before
    return DecoderLM(config)


def _of_third_language(seed: int) -> DecoderLM:
    return pretrained(seed, language=Way(dialect="swapped"))


def _run_from(make: Callable[[int], DecoderLM], way: Way, rate: float, seed: int) -> list[float]:
    end = adapt(make(seed), way, peak=rate, seed=seed)[1][-1]
    print(make.__name__, way, rate, seed, end, flush=True)
    return end


def _relearned(model: nn.Module, seed: int) -> float:
    return min(relearn(copy.deepcopy(model), peak=rate, seed=seed) for rate in (1e-3, 3e-3, 1e-2))


if __name__ == "__main__":
    measure_parts(FILE, rates, before, ways, allowed, short, fractions, fresh, again, swapped)
