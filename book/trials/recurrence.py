"""Wider sweeps of lesson 01: reciting after more steps; recall at distance 32 at other rates."""

from exformer.lessons.trials import sweep

STEPS = (300, 3_000, 10_000)
RATES = (0.001, 0.003, 0.01, 0.03)


@sweep("A01")
def recital(recited, reciter, tests):
    """Give the share recited, by letters, width and steps."""
    found = {str(n): {str(width): {} for width in (16, 64)} for n in (8, 24)}
    for width in (16, 64):
        for steps in STEPS:
            model = reciter(width, steps)
            for n in (8, 24):
                found[str(n)][str(width)][str(steps)] = recited(model, tests[:, :n])
    return found


@sweep("C01")
def rates(accuracy, fit, recall_lists, recall_loss, seed, set_seed, starts):
    """Give the accuracy at distance 32, by network and steps and by rate."""
    found = {}
    for name, steps in (("RNN", 800), ("LSTM", 800), ("LSTM", 3_200)):
        row = found.setdefault(f"{name}, {steps:,} steps", {})
        for rate in RATES:
            set_seed(seed)
            batches = [recall_lists(32, 32) for _ in range(steps)]
            model = fit(starts[name](), batches, loss_fn=recall_loss, peak=rate)
            row[str(rate)] = accuracy(model, 32)
    return found
