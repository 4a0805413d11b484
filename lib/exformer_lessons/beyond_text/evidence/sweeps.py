"""Wider sweeps beyond text: more steps, encoders without positions, and the other opponents."""

from exformer_lessons.trials import sweep

SEEDS = range(5)
TIMES = (1 / 3, 1, 3)


@sweep("E01")
def longer(learn, tasks_of, rate_of):
    """Return the accuracies of five seeds after 1,200 steps, by kind of model, task and learning rate."""
    runs = {
        ("encoder", "digits"): TIMES,
        ("encoder", "tones"): (1,),
        ("encoder", "strings"): (1,),
        ("own position only", "digits"): TIMES,
        ("own position only", "tones"): TIMES,
        ("own position only", "strings"): TIMES,
        ("convolutions", "digits"): (1,),
    }
    data, found = [tasks_of(seed) for seed in SEEDS], {}
    for (kind, task), times in runs.items():
        rates = [rate_of(kind) * factor for factor in times]
        found.setdefault(kind, {})[task] = _accuracies(learn, data, task, kind, rates, steps=1_200)
    return found


@sweep("E01")
def much_longer(learn, tasks_of, rate_of):
    """Return the accuracies on tones of three seeds without attention after 4,800 steps, by learning rate."""
    data, kind = [tasks_of(seed)["tones"] for seed in range(3)], "own position only"
    return {
        f"{rate:.4f}": [
            learn("tones", kind, rate, each, steps=4_800, seed=seed)[1] for seed, each in enumerate(data)
        ]
        for rate in (rate_of(kind) / 8, rate_of(kind) / 3)
    }


@sweep("E01")
def no_positions(learn, tasks_of, rate_of):
    """Return the accuracies of five seeds of an encoder without positions, by task and learning rate."""
    data, kind = [tasks_of(seed) for seed in SEEDS], "no positions"
    rates = [rate_of(kind) * factor for factor in TIMES]
    return {task: _accuracies(learn, data, task, kind, rates) for task in data[0]}


@sweep("E01")
def others(learn, tasks_of, rate_of):
    """Return the accuracies of five seeds of the networks that need no attention, by task."""
    data, kinds = [tasks_of(seed) for seed in SEEDS], ("convolutions", "features")
    return {
        kind: {task: _accuracies(learn, data, task, kind, [rate_of(kind)]) for task in data[0]}
        for kind in kinds
    }


def _accuracies(learn, data, task, kind, rates, steps=300):
    return {
        f"{rate:.4f}": [
            learn(task, kind, rate, data[seed][task], steps=steps, seed=seed)[1] for seed in SEEDS
        ]
        for rate in rates
    }
