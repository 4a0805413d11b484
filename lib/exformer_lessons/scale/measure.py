"""Train what the lesson on scale shows: each model at its best learning rate, with five seeds.

    python -m exformer_lessons.scale.measure [PART ...]

writes ``runs.json`` beside this file: all parts, or those that are named. All take about a quarter of an hour
on one core. Shakespeare is downloaded, or found in the folder that EXFORMER_DATA names.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch.nn.functional as F

from exformer_lessons.facts import Facts
from exformer_lessons.formatting import rounded
from exformer_lessons.measured import read_runs, sweep_on, write_runs
from exformer_lessons.scale import models, shakespeare
from exformer_lessons.setup import start

FILE = Path(__file__).with_name("runs.json")
SEEDS = range(5)
WIDTHS = (4, 6, 8, 12, 16, 24)
AMOUNTS = tuple(models.SMALLEST * 2**n for n in range(5))
TAILS = (0.25, 0.5, 1.0)
BUDGET = 5e10  # operations of the runs that are predicted

Cell = dict[str, Any]


def runs(part: str) -> list[Cell]:
    """Return what was measured: of "grid", "budget", "recommended", "tails" or "shakespeare"."""
    return read_runs(FILE)[part]


def grid() -> Iterator[Cell]:
    """Yield small runs of many sizes and amounts of data."""
    for width in WIDTHS:
        for n_facts in AMOUNTS:
            yield facts_cell(width, n_facts, n_rates=5, by_rank=True)


def budget() -> Iterator[Cell]:
    """Yield runs of ten times as many operations, the same for each size."""
    for width in (12, 16, 24, 32, 48):
        n_facts = round(BUDGET / models.operations(width, 1))
        yield facts_cell(width, n_facts, n_rates=3, by_rank=True)


def recommended() -> Iterator[Cell]:
    """Yield the size that one learning rate for all recommends, with the budget, and at that rate too."""
    yield facts_cell(18, round(BUDGET / models.operations(18, 1)), n_rates=3, also=[0.04])


def tails() -> Iterator[Cell]:
    """Yield a large model on corpora with other tails."""
    for tail in TAILS:
        for n_facts in AMOUNTS:
            yield {"tail": tail} | facts_cell(48, n_facts, n_rates=3, tail=tail)


def of_shakespeare() -> Iterator[Cell]:
    """Yield runs on ever longer pieces of Tiny Shakespeare."""
    for n_tokens in shakespeare.AMOUNTS:
        sweep = around(
            shakespeare.guess(n_tokens), 3, lambda rate, n=n_tokens: [shakespeare.learn(n, rate=rate, seed=5)]
        )
        rate = best(sweep)
        five = [shakespeare.learn(n_tokens, rate=rate, seed=seed) for seed in SEEDS]
        yield {"tokens": n_tokens, "rate": rate, "sweep": means(sweep), "loss": five}


PARTS: dict[str, Callable[[], Iterator[Cell]]] = {
    "grid": grid,
    "budget": budget,
    "recommended": recommended,
    "tails": tails,
    "shakespeare": of_shakespeare,
}


def facts_cell(
    width: int,
    n_facts: int,
    *,
    n_rates: int,
    also: Sequence[float] = (),
    tail: float = 0.5,
    by_rank: bool = False,
) -> Cell:
    """Train five seeds at several learning rates, and go on while the best is the lowest or the highest."""
    kept: dict[float, Cell] = {}
    corpora = [Facts(seed=seed, tail=tail) for seed in SEEDS]

    def five(rate: float) -> list[float]:
        return kept[rate]["loss"]

    def run(rates: Sequence[float]) -> None:
        kept.update(_many(width, n_facts, rates, corpora))

    sweep = around(guess(width, n_facts), n_rates, five, run)
    for rate in also:
        run([rate])
        sweep[rate] = five(rate)
    rate = best(sweep)
    found = {
        "width": width,
        "facts": models.n_steps(n_facts) * models.batch_size(n_facts),
        "rate": rate,
        "sweep": means(sweep),
    }
    return found | {name: value for name, value in kept[rate].items() if by_rank or name == "loss"}


def guess(width: int, n_facts: int) -> float:
    """Guess a learning rate, a power of two in hundredths: it falls with the width and with the data."""
    return 0.01 * 2.0 ** round(math.log2(20 / width * (models.SMALLEST * 4 / n_facts) ** 0.25))


def around(
    middle: float,
    n: int,
    losses: Callable[[float], list[float]],
    run: Callable[[Sequence[float]], None] = lambda rates: None,
) -> dict[float, list[float]]:
    """Try n learning rates, factors of two apart, and more while the best is at an end."""
    rates = [middle * 2.0**k for k in range(-(n // 2), n // 2 + 1)]
    run(rates)
    sweep = {rate: losses(rate) for rate in rates}

    def measure(rate: float) -> list[float]:
        run([rate])
        return losses(rate)

    sweep_on(sweep, measure, best)
    return sweep


def best(sweep: dict[float, list[float]]) -> float:
    """Return the learning rate with the lowest mean."""
    return min(sweep, key=lambda rate: sum(sweep[rate]))


def means(sweep: dict[float, list[float]]) -> dict[str, float]:
    """Return the mean loss of each learning rate, from low to high."""
    return {f"{rate:g}": sum(sweep[rate]) / len(sweep[rate]) for rate in sorted(sweep)}


def _many(width: int, n_facts: int, rates: Sequence[float], corpora: Sequence[Facts]) -> dict[float, Cell]:
    """Train all seeds at all rates together; the losses, and the accuracy and loss by octaves of rank."""
    seeds, facts = [*SEEDS] * len(rates), [*corpora] * len(rates)
    many = models.ManyModels(width, seeds)
    many.learn(facts, n_facts=n_facts, rates=[rate for rate in rates for _ in SEEDS], seeds=seeds)
    octaves = [2**n - 1 for n in range(16)]
    found: dict[float, Cell] = {rate: {"loss": [], "accuracy": [], "nats": []} for rate in rates}
    for n, (corpus, logits) in enumerate(zip(facts, many.all_logits(facts), strict=True)):
        nats = F.cross_entropy(logits, corpus.values, reduction="none").double()
        right = (logits.argmax(dim=1) == corpus.values).double()
        cell = found[rates[n // len(SEEDS)]]
        cell["loss"].append((corpus.p * nats).sum().item())
        for name, values in (("accuracy", right), ("nats", nats)):
            cell[name].append([values[a:b].mean().item() for a, b in pairwise(octaves)])
    return found


def main(parts: list[str]) -> None:
    """Measure the parts, and write the file."""
    start(seed=0)
    found = read_runs(FILE)
    for part in parts or PARTS:
        found[part] = []
        for cell in PARTS[part]():
            found[part].append(rounded(cell))
            print(part, {name: cell[name] for name in cell if name not in ("accuracy", "nats")}, flush=True)
            write_runs(FILE, found)


if __name__ == "__main__":
    main(sys.argv[1:])
