"""Wider sweeps of lesson 06: stacks with and without sum and norm, for more steps; both orders, by rate.

And a mixing matrix in place of attention, on the lesson's task and on one whose partner depends on the
content.
"""

import torch
import torch.nn.functional as F
from torch import nn

from exformer import train
from exformer.lessons.trials import sweep
from exformer.training.schedules import linear_schedule

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


@sweep("A19")
def mixing(Mixing, build, learn, network_part, switches):  # noqa: N803
    """Give the accuracy of six layers with a mixing matrix, by switches and rate, for each of five seeds."""

    def right(name, peak, draw):
        return learn(build(6, draw=draw, parts=(Mixing, network_part), **switches[name]), peak=peak)[1]

    return {
        name: {str(peak): [right(name, peak, draw) for draw in range(5)] for peak in (2e-3, 6e-3, 18e-3)}
        for name in ("both", "only add")
    }


@sweep("A19")
def pairs(Mixing, attention_part, build, network_part, switches, WIDTH):  # noqa: N803
    """Give the same where the partner has the same letter, anywhere among eight: by part, steps and rate."""

    def right(part, name, steps, peak, draw):
        stack = build(6, draw=draw, parts=(part, network_part), length=8, **switches[name])
        stack.digits = nn.Embedding(16, WIDTH)  # four letters, each with one of four digits
        adam = torch.optim.AdamW(stack.parameters(), fused=True, weight_decay=0.0)

        def rate(step):
            return linear_schedule(step, peak=peak, warmup=steps // 2, total=steps)

        how = {"loss_fn": pair_loss, "optimizer": adam, "schedule": rate, "clip_norm": 1.0}
        train(stack, (letter_pairs(32) for _ in range(steps)), **how)
        ids, answers = letter_pairs(2_000)
        with torch.no_grad():
            return (stack(ids).argmax(dim=-1) == answers).double().mean().item()

    ways = {
        "attention": (attention_part, "both", {300: (6e-3,)}),
        "mixing": (lambda: Mixing(8), "both", {300: (6e-3, 18e-3), 1200: (6e-3,)}),
        "mixing, no norm": (lambda: Mixing(8), "only add", {300: (6e-3, 18e-3), 1200: (6e-3,)}),
    }
    return {
        way: {
            str(steps): {str(peak): [right(part, on, steps, peak, i) for i in range(5)] for peak in peaks}
            for steps, peaks in tried.items()
        }
        for way, (part, on, tried) in ways.items()
    }


def letter_pairs(n):
    """Return strings of eight, each of four letters twice, in random order, with digits; and the answers."""
    letters = torch.arange(4).repeat(2)[torch.rand(n, 8).argsort(dim=-1)]
    digits = torch.randint(4, (n, 8))
    same = letters[:, :, None] == letters[:, None]  # itself and its partner
    return 4 * letters + digits, (same * digits[:, None]).sum(dim=-1) % 4


def pair_loss(stack, batch):
    """Return the cross-entropy of all answers."""
    return F.cross_entropy(stack(batch[0]).flatten(0, 1), batch[1].flatten())
