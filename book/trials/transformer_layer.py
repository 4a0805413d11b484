"""Wider sweeps of lesson 06: stacks with and without sum and norm, for more steps; both orders, by rate."""

from exformer.lessons.trials import sweep

SEEDS = range(2)
ORDERS = {
    "pre-norm": ("before", 100),
    "pre-norm, no warm-up": ("before", 1),
    "post-norm": ("after", 100),
    "post-norm, no warm-up": ("after", 1),
}


@sweep("A19")
def budgets(build, learn, switches):
    """Give the accuracy of six layers for each seed, by switches, number of steps and rate."""
    names = ("neither", "only add", "only norm")
    return {name: accuracies(build, learn, {400: (1e-3, 3e-3)}, **switches[name]) for name in names}


@sweep("A19")
def longer(build, learn, switches):
    """Give the same for the stacks without the sum."""
    names = ("neither", "only norm")
    return {name: accuracies(build, learn, {1200: (1e-3, 3e-3)}, **switches[name]) for name in names}


@sweep("C12")
def orders(build, learn):
    """Give the accuracy of six layers after 200 steps for each seed, by order, warm-up and rate."""
    tried, found = {200: (1e-3, 3e-3, 9e-3)}, {}
    for name, (norm, warmup) in ORDERS.items():
        found |= {name: accuracies(build, learn, tried, warmup=warmup, add=True, norm=norm)["200"]}
    return found


def accuracies(build, learn, tried, *, warmup=None, **on):
    """Give the accuracy for each seed, by number of steps and rate."""

    def right(draw, steps, peak):
        return learn(build(6, draw=draw, **on), steps=steps, warmup=warmup, peak=peak)[1]

    return {
        str(steps): {str(peak): [right(i, steps, peak) for i in SEEDS] for peak in peaks}
        for steps, peaks in tried.items()
    }
