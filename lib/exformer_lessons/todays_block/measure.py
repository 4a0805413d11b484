"""Train what the lesson on today's block shows: each model at its best learning rate, with five seeds.

    python -m exformer_lessons.todays_block.measure [PART ...]

writes ``runs.json`` beside this file: all parts, or those that are named. All take three quarters of an
hour on one core.
"""

import math
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from statistics import mean, median
from typing import Any

from exformer import DecoderLM, DecoderLMConfig
from exformer_lessons.facts import Facts
from exformer_lessons.formatting import rounded
from exformer_lessons.measured import read_runs, sweep_on, write_runs
from exformer_lessons.setup import start
from exformer_lessons.todays_block import blocks, facts, long_context

FILE = Path(__file__).with_name("runs.json")
SEEDS, SWEEP_SEED = range(5), 5
RATES = (0.005, 0.01, 0.02)

Case = Callable[[], dict[str, Any]]


def runs(part: str) -> dict[str, Any]:
    """Return what a part measured: one of the names of :data:`PARTS`."""
    return read_runs(FILE)[part]


def alone() -> dict[str, Case]:
    """Return the trainings of 2017's block, of each switch alone, and of Llama's block."""
    return {name: partial(_block, blocks.block(switches)) for name, switches in _singles().items()}


def _singles() -> dict[str, tuple[str, ...]]:
    return {"2017": (), **{switch: (switch,) for switch in blocks.SWITCHES}, "Llama": blocks.LLAMA}


def together() -> dict[str, Case]:
    """Return those of Llama's block without each of its switches, and with one more."""
    cases = {f"without {off}": [on for on in blocks.LLAMA if on != off] for off in blocks.LLAMA}
    cases |= {"with QK-norm": (*blocks.LLAMA, "QK-norm")}
    return {name: partial(_block, blocks.block(switches)) for name, switches in cases.items()}


def memories() -> dict[str, Case]:
    """Return those of a memory of facts: dense, with experts, and dense with as many parameters."""
    return {name: partial(_memory, facts.memory(**sizes)) for name, sizes in _experts(facts.WIDTH).items()}


def grammar() -> dict[str, Case]:
    """Return the same for Llama's block and the grammar."""
    width = blocks.block(blocks.LLAMA).d_ff or 0
    sizes = {name: blocks.block(blocks.LLAMA, **each) for name, each in _experts(width).items()}
    return {name: partial(_block, config, closer=()) for name, config in sizes.items()}


def quarter() -> dict[str, Case]:
    """Return those of experts that do the work of a dense network of a quarter of the width."""
    width = blocks.block(blocks.LLAMA).d_ff or 0
    small = {"d_ff": facts.WIDTH // 8, "n_experts": 8}
    return {
        "memories": partial(_memory, facts.memory(**small)),
        "grammar": partial(_block, blocks.block(blocks.LLAMA, **small | {"d_ff": width // 8}), closer=()),
    }


def common() -> dict[str, Case]:
    """Return five trainings of each single change at a common rate, and of two blocks at four."""
    cases = {name: switches for name, switches in _singles().items() if name != "Llama"}
    rates = dict.fromkeys(("2017", "pre-norm"), (0.005, 0.007, 0.01, 0.02))
    return {
        name: partial(_at_common_rates, blocks.block(switches), rates.get(name, (0.01,)))
        for name, switches in cases.items()
    }


def recall() -> dict[str, Case]:
    """Return the accuracies of recall: of a model, of the same slowed down or stopped, and of windows."""
    return {
        "all positions": partial(_recall, long_context.reader()),
        "rotations 8 times slower": partial(_recall, long_context.reader(), slower=8),
        "rotations off": partial(_recall, long_context.reader(), slower=math.inf),
        "windows of 16": partial(_recall, long_context.reader(window=16)),
    }


def steps() -> dict[str, Case]:
    """Return the measurement of the time of a step, relative to the block of 2017."""
    width = blocks.block(blocks.LLAMA).d_ff or 0
    configs = {name: blocks.block(switches) for name, switches in _singles().items()}
    configs |= {name: blocks.block(blocks.LLAMA, **sizes) for name, sizes in _experts(width).items()}
    return {"relative": partial(_relative_times, configs)}


PARTS: dict[str, Callable[[], dict[str, Case]]] = {
    part.__name__: part for part in (alone, together, common, memories, grammar, quarter, recall, steps)
}


def _experts(width: int) -> dict[str, dict[str, Any]]:
    """Return sizes at which two of eight experts do the work of one dense network."""
    experts = {"d_ff": width // 2, "n_experts": 8}
    return {
        "dense, 1/4 as wide": {"d_ff": width // 4},
        "dense": {"d_ff": width},
        "experts": experts,
        "experts, no balance loss": experts | {"balance_weight": 0.0},
        "dense, 4 × as wide": {"d_ff": 4 * width},
    }


def _block(config: DecoderLMConfig, *, closer: tuple[float, ...] = (0.7, 1.4)) -> dict[str, Any]:
    def run(rate: float, seed: int) -> dict[str, Any]:
        return {"excess": blocks.excess(blocks.learn(config, rate=rate, seed=seed)[0])}

    return _measured(config, run, closer=closer)


def _memory(config: DecoderLMConfig) -> dict[str, Any]:
    def run(rate: float, seed: int) -> dict[str, Any]:
        excess, loads = facts.excess(facts.learn(config, rate=rate, seed=seed), Facts())
        return {"excess": excess, "loads": loads}

    return _measured(config, run)


def _measured(
    config: DecoderLMConfig, run: Callable[[float, int], dict[str, Any]], *, closer: tuple[float, ...] = ()
) -> dict[str, Any]:
    """Choose the learning rate, and run five seeds with it.

    One seed sweeps by factors of two, and goes on while the best rate is the lowest or the highest. Where
    there are closer rates, relative to the best, the five seeds try them as well, and their best mean counts.
    """

    def lowest(values: dict[float, float]) -> float:
        return min(values, key=lambda rate: values[rate])

    def measure(rate: float) -> float:
        return run(rate, SWEEP_SEED)["excess"]

    sweep = {rate: measure(rate) for rate in RATES}
    sweep_on(sweep, measure, lowest)
    best = lowest(sweep)
    fives = {
        rate: [run(rate, seed) for seed in SEEDS]
        for rate in sorted(round(best * factor, 6) for factor in (1, *closer))
    }
    means = {rate: mean(each["excess"] for each in five) for rate, five in fives.items()}
    best = lowest(means)
    return {
        "parameters": blocks.n_parameters(DecoderLM(config)),
        "sweep": {f"{rate:g}": sweep[rate] for rate in sorted(sweep)},
        "means": {f"{rate:g}": value for rate, value in means.items()},
        "rate": best,
        **{name: [each[name] for each in fives[best]] for name in fives[best][0]},
    }


def _at_common_rates(config: DecoderLMConfig, rates: tuple[float, ...]) -> dict[str, Any]:
    return {
        f"{rate:g}": [blocks.excess(blocks.learn(config, rate=rate, seed=seed)[0]) for seed in SEEDS]
        for rate in rates
    }


@cache
def _reader(config: DecoderLMConfig, seed: int) -> DecoderLM:
    return long_context.learn(config, seed=seed)


def _recall(config: DecoderLMConfig, *, slower: float = 1) -> dict[str, Any]:
    """Return the accuracy at each distance: five trainings, which a factor slows down when they are over.

    First in texts as long as the longest of the training, then in those of the test.
    """
    models = [_reader(config, seed) for seed in SEEDS]
    models = [model if slower == 1 else long_context.slowed(model, slower) for model in models]

    def at_distances(length: int) -> dict[str, list[float]]:
        return {
            str(distance): [long_context.accuracy(model, distance, length=length) for model in models]
            for distance in long_context.DISTANCES
            if distance <= length - long_context.SHOWN
        }

    return {
        "parameters": blocks.n_parameters(models[0]),
        "in training lengths": at_distances(long_context.LONGEST),
        "accuracy": at_distances(long_context.TEST),
    }


def _relative_times(configs: dict[str, DecoderLMConfig], *, rounds: int = 7) -> dict[str, float]:
    """Return the median time of a step over several rounds, in each of which all blocks take turns."""
    found: dict[str, list[float]] = {name: [] for name in configs}
    for _ in range(rounds):
        seconds = {
            name: blocks.learn(config, rate=0.01, seed=0, steps=40)[1] for name, config in configs.items()
        }
        for name, own in seconds.items():
            found[name].append(own / seconds["2017"])
    return {name: median(ratios) for name, ratios in found.items()}


def main(parts: list[str]) -> None:
    """Measure the parts, and write the file."""
    start(seed=0)
    found = read_runs(FILE)
    for part in parts or PARTS:
        found[part] = {}
        for name, case in PARTS[part]().items():
            found[part][name] = rounded(case(), digits=5)
            print(part, name, found[part][name], flush=True)
            write_runs(FILE, found)


if __name__ == "__main__":
    main(sys.argv[1:])
