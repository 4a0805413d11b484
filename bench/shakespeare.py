"""Train on Shakespeare's characters as nanoGPT does, and by our recipe: how long until the loss is as low?

    python bench/shakespeare.py [--json FILE] [--clock wall|cpu] [--quick]

nanoGPT is reimplemented in bench/nano_gpt.py. Its script trains in float32 on a CPU; here it races in
bfloat16 too, as it trains on a GPU. All train in this process, in turns of a few steps, one seed after the
other, and every training is timed. The time is that of the training steps alone; the loss is that of the last
weights on all of the validation text, in windows of 64 characters side by side. Times are compared by their
means over the seeds, with the faster of the two nanoGPTs; the mean of its losses is the bound for ours.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
if __name__ == "__main__":  # and not where a test imports this: lessons that run after it need the setting
    os.environ.pop("ATEN_CPU_CAPABILITY", None)  # that makes numbers the same on all machines

import torch  # noqa: E402

from bench import nano_gpt  # noqa: E402
from bench.report import new_parser, new_result, read_arguments, write  # noqa: E402
from bench.timing import CLOCKS  # noqa: E402
from exformer.nn.loss import cross_entropy  # noqa: E402
from exformer.recipes import find_recipe  # noqa: E402
from exformer.recipes.datasets import CORPORA  # noqa: E402
from exformer.recipes.malloc import disable_malloc_trim  # noqa: E402
from exformer.recipes.task import Task, make_task  # noqa: E402
from exformer.tokenizers.characters_and_words import CharTokenizer  # noqa: E402
from exformer.training.loop import set_seed, training_steps  # noqa: E402
from exformer.training.optimizers import make_optimizers  # noqa: E402
from exformer.training.validation import mean_loss  # noqa: E402

TURN = 10  # steps
PEERS = ("nanoGPT", "nanoGPT, bfloat16")


@dataclass(frozen=True)
class Training:
    """How a contender trains.

    Args:
        steps: How many.
        threads: Of torch; each has what is fastest for it.
        precision: "float32" or "bfloat16".
        seeds: How many trainings there are, from seeds 0, 1, ...
        changes: Of the recipe's training; short runs want higher learning rates.
    """

    steps: int
    threads: int
    precision: str = "float32"
    seeds: int = 1
    changes: Mapping[str, Any] = field(default_factory=dict)


# Neither optimizer steps further where the gradient is longer: clipping would cost time for little.
_SHORT = {
    "muon_lr": 0.06,
    "momentum": 0.85,
    "lr": 0.02,
    "betas": (0.85, 0.98),
    "warmup": 8,
    "clip_norm": None,
}
#: nanoGPT with the steps of its CPU recipe. Ours with so many that the loss is nanoGPT's, 1.898 as first
#: measured, or 1.60. What trains for a minute has three seeds, so that the race takes less than a quarter of
#: an hour; the short trainings, whose losses vary most, have five.
CONTENDERS = {
    "nanoGPT": Training(nano_gpt.STEPS, threads=2, seeds=3),
    "nanoGPT, bfloat16": Training(nano_gpt.STEPS, threads=2, precision="bfloat16", seeds=3),
    "exformer, to nanoGPT's loss": Training(175, threads=2, seeds=5, changes=_SHORT),
    "exformer, to nanoGPT's loss, bfloat16": Training(
        165, threads=2, precision="bfloat16", seeds=5, changes=_SHORT
    ),
    "exformer, to 1.60, bfloat16": Training(
        1450, threads=2, precision="bfloat16", seeds=3, changes={"clip_norm": None}
    ),
}


@dataclass(frozen=True)
class Run:
    """What one training took and reached.

    Args:
        seconds: Of all its steps.
        loss: On the validation text, after the last of them.
        parameters: Of its model.
    """

    seconds: float
    loss: float
    parameters: int


def begin(name: str, how: Training, *, seed: int = 0) -> tuple[Task, Iterator[float]]:
    """Make a model and its optimizers.

    Args:
        name: Whose.
        how: It trains.
        seed: Of the first weights and of the order of the texts.
    """
    changes = {"warmup": 10, **how.changes, "steps": how.steps, "seed": seed}
    changes["warmup"] = min(changes["warmup"], how.steps - 1)
    recipe = find_recipe("shakespeare-char").with_training(**changes)
    data = CORPORA[recipe.corpus]()
    set_seed(recipe.training.seed)
    tokenizer = CharTokenizer.from_texts([data.train, data.val])
    task = make_task(recipe, data, tokenizer)
    batches = map(task.batches.batch, task.batches.steps())
    if name in PEERS:
        sizes = {key: recipe.model[key] for key in ("d_model", "n_heads", "n_layers")}
        model = nano_gpt.NanoGPT(tokenizer.vocab_size, context=recipe.model["max_len"], **sizes)
        return replace(task, model=model), nano_gpt.training(
            model, batches, steps=how.steps, precision=how.precision
        )
    walk = training_steps(
        task.model,
        islice(batches, how.steps),
        loss_fn=partial(_loss, how.precision),
        optimizers=make_optimizers(task.model, recipe.training),
        clip_norm=recipe.training.clip_norm,
    )
    return task, walk


def language_model_loss(model: torch.nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """Compute the loss of each token given those before it, of our model or of nanoGPT's."""
    return cross_entropy(model(ids[:, :-1]), ids[:, 1:])


def _loss(precision: str, model: torch.nn.Module, batch: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        return language_model_loss(model, batch)


def race(contenders: Mapping[str, Training], *, seed: int, clock: str) -> dict[str, Run]:
    """Train all contenders in turns of a few steps: the one with the fewest done goes next.

    Args:
        contenders: By name.
        seed: As in `begin`.
        clock: One of `CLOCKS`.
    """
    now, chance = CLOCKS[clock], {}
    begun = {}
    for name, how in contenders.items():
        begun[name] = begin(name, how, seed=seed)
        chance[name] = torch.get_rng_state()
    done, seconds = dict.fromkeys(contenders, 0), dict.fromkeys(contenders, 0.0)
    while any(done[name] < how.steps for name, how in contenders.items()):
        name = min(contenders, key=lambda name: done[name] / contenders[name].steps)
        how, walk = contenders[name], begun[name][1]
        torch.set_num_threads(how.threads)
        torch.set_rng_state(chance[name])
        start = now()
        for _ in range(min(TURN, how.steps - done[name])):
            next(walk)
            done[name] += 1
        seconds[name] += now() - start
        chance[name] = torch.get_rng_state()
    found = {}
    for name, how in contenders.items():
        task = begun[name][0]
        torch.set_num_threads(how.threads)
        loss = mean_loss(task.model, task.validation, language_model_loss)
        found[name] = Run(seconds[name], loss, sum(p.numel() for p in task.model.parameters()))
    return found


def race_all(contenders: Mapping[str, Training], *, clock: str) -> dict[str, list[Run]]:
    """Race with one seed after the other, each time with the contenders that have so many seeds."""
    runs: dict[str, list[Run]] = {name: [] for name in contenders}
    for seed in range(max(how.seeds for how in contenders.values())):
        racing = {name: how for name, how in contenders.items() if seed < how.seeds}
        for name, run in race(racing, seed=seed, clock=clock).items():
            runs[name].append(run)
        print(f"seed {seed}: {', '.join(f'{name} {runs[name][-1].seconds:.1f} s' for name in racing)}")
    return runs


def summarize(contenders: Mapping[str, Training], runs: Mapping[str, Sequence[Run]]) -> dict[str, Any]:
    """Compare the means over the seeds with those of the faster nanoGPT.

    Args:
        contenders: By name.
        runs: Of each, one a seed.

    Returns:
        What the JSON says: the `reference`, which is the faster nanoGPT, and the contenders by name.
    """
    seconds = {name: [run.seconds for run in own] for name, own in runs.items()}
    reference = min((name for name in PEERS if name in runs), key=lambda name: mean(seconds[name]))
    found = {
        name: {
            **asdict(how),
            "parameters": runs[name][0].parameters,
            "seconds": seconds[name],
            "ms_per_step": 1000 * mean(seconds[name]) / how.steps,
            "ratio": mean(seconds[name]) / mean(seconds[reference]),
            "validation_losses": [run.loss for run in runs[name]],
        }
        for name, how in contenders.items()
    }
    return {"reference": reference, "contenders": found}


def main() -> None:
    """Run the benchmark, print the result and write it."""
    parser = new_parser(__doc__, quick="a few steps: does it all work?", threads="")
    args = read_arguments(parser, name="shakespeare")
    disable_malloc_trim()  # as our training does; nanoGPT gains by it too
    chosen = {
        name: replace(how, steps=4, threads=1, seeds=min(how.seeds, 2)) if args.quick else how
        for name, how in CONTENDERS.items()
    }
    found = summarize(chosen, race_all(chosen, clock=args.clock))
    result = new_result(args) | found
    print(f"\nratio: mean seconds / those of {found['reference']}; loss: on all of the validation text")
    print(f"{'':30} steps threads seconds ms/step  ratio    loss  (least to greatest)")
    for name, one in found["contenders"].items():
        losses = one["validation_losses"]
        print(
            f"{name:30} {one['steps']:5} {one['threads']:7} {mean(one['seconds']):7.1f} "
            f"{one['ms_per_step']:7.1f} {one['ratio']:6.3f}  {mean(losses):.4f}  "
            f"({min(losses):.4f} to {max(losses):.4f})"
        )
    write(result, args.json)


if __name__ == "__main__":
    main()
