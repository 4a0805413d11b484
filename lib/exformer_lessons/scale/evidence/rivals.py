r"""Rivals of the scaling law: memories of our finite list, with so much room, that have met so many facts.

A memory knows the most frequent facts, for which it has room, once it has met them:

.. math:: L = \ln 32 \, \Big( \sum_{k > K} p_k + \sum_k p_k \, e^{-n p_k / m} \Big),
          \quad K = K_0 \, (N / 3000)^c

The first sum is the shortage of room, the second that of data, so that both add up as in the scaling law.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from exformer_lessons.facts import N_SYMBOLS, Facts
from exformer_lessons.scale.law import columns

ROOMS = torch.logspace(1.5, 4.5, 91, dtype=torch.float64)
POWERS = torch.arange(0.5, 2.01, 0.05, dtype=torch.float64)
MEETINGS = torch.logspace(-0.5, 2, 41, dtype=torch.float64)
TYPICAL = 3_000.0  # parameters at which the room is stated
#: Typical error of the fit, and the losses that are predicted for the five sizes of the budget.
Rival = tuple[float, Tensor]
ONE_POWER = torch.ones(1).double()


def exponential(x: Tensor) -> Tensor:
    """Return what is unknown after x times the meetings that are needed."""
    return torch.exp(-x)


def slow(x: Tensor) -> Tensor:
    """Return what is unknown to a slow learner."""
    return (1 + x) ** -0.5


def beyond(p: Tensor, k: Tensor) -> Tensor:
    """Return the probability of the facts beyond the k most frequent; k need not be an integer."""
    known = torch.cat([torch.zeros(1).double(), p.cumsum(0)])
    k = k.double().clamp(max=len(p))
    whole = k.long().clamp(max=len(p) - 1)
    return 1 - torch.lerp(known[whole], known[whole + 1], k - whole)


def unmet(p: Tensor, d: Tensor, meetings: Tensor, left: Callable[[Tensor], Tensor] = exponential) -> Tensor:
    """Return the probability of the facts that are not met often enough (meetings, run).

    Args:
        p: Probability of each fact.
        d: Tokens of each run.
        meetings: How often a fact must be met.
        left: What of a fact is unknown after so many times as many meetings.
    """
    amounts, which = d.double().unique(return_inverse=True)
    expected = amounts[:, None] / 3 * p  # three tokens for each fact
    return torch.stack([(p * left(expected / m)).sum(dim=1) for m in meetings])[:, which]


def best_memory(
    n: Tensor,
    d: Tensor,
    loss: Tensor,
    *,
    powers: Tensor = POWERS,
    left: Callable[[Tensor], Tensor] = exponential,
    heights: bool = False,
) -> Rival:
    """Search the memory that fits best.

    Args:
        n: Parameters of each run.
        d: Tokens of each run.
        loss: Of each run, in nats.
        powers: What is tried for the growth of the room with the parameters.
        left: What is unknown of a fact after x times the meetings that are needed.
        heights: Whether both shortages have a free factor in place of ln 32.
    """
    big_n, big_d, _ = columns("budget")
    size, tokens = torch.cat([n, big_n]), torch.cat([d, big_d])
    p, found = Facts().p, (float("inf"), big_n)
    not_met = unmet(p, tokens, MEETINGS, left)
    for power in powers.tolist():
        no_room = beyond(p, ROOMS[:, None] * (size / TYPICAL) ** power)
        x = torch.stack(torch.broadcast_tensors(no_room[:, None], not_met[None]), dim=3).flatten(0, 1)
        part = x[:, : len(n)] / loss[:, None]
        scale = torch.full((len(x), 2), math.log(N_SYMBOLS)).double()
        if heights:
            ridge = 1e-9 * torch.eye(2).double()
            scale = torch.linalg.solve(part.mT @ part + ridge, part.sum(dim=1))
        errors = ((part * scale[:, None]).sum(dim=2) - 1).square().mean(dim=1).sqrt()
        at = int(errors.argmin())
        found = min(
            found, (errors[at].item(), (x[at, len(n) :] * scale[at]).sum(dim=1)), key=lambda pair: pair[0]
        )
    return found


def unknown_once(n: Tensor, d: Tensor, loss: Tensor) -> Rival:
    """Search the memory in which a fact without room that was not met either is unknown once, not twice."""
    big_n, big_d, _ = columns("budget")
    size, tokens = torch.cat([n, big_n]), torch.cat([d, big_d])
    p, found = Facts().p, (float("inf"), big_n)
    amounts, which = tokens.unique(return_inverse=True)
    for meetings in MEETINGS[::2]:
        unknown = p * torch.exp(-amounts[:, None] / 3 * p / meetings)  # (amount, fact)
        summed = torch.cat([torch.zeros(len(amounts), 1).double(), unknown.cumsum(dim=1)], dim=1)
        for power in POWERS[::2].tolist():
            k = (ROOMS[:, None] * (size / TYPICAL) ** power).clamp(max=len(p))
            predicted = math.log(N_SYMBOLS) * (beyond(p, k) + summed[which.expand(k.shape), k.long()])
            errors = (predicted[:, : len(n)] / loss - 1).square().mean(dim=1).sqrt()
            at = int(errors.argmin())
            found = min(found, (errors[at].item(), predicted[at, len(n) :]), key=lambda pair: pair[0])
    return found
