"""A rival of the scaling law: a memory of our finite list, which has so much room and meets so many facts."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from exformer_lessons.facts import N_SYMBOLS, Facts

ROOMS = torch.logspace(1.5, 4.5, 91, dtype=torch.float64)
POWERS = torch.arange(0.5, 2.01, 0.05, dtype=torch.float64)
MEETINGS = torch.logspace(-0.5, 2, 41, dtype=torch.float64)
TYPICAL = 3_000.0  # parameters at which the room is stated


@dataclass(frozen=True)
class Memory:
    r"""What is unknown to a memory that knows the most frequent facts, once it has met them.

    .. math:: L = \ln 32 \, \Big( \sum_{k > K} p_k + \sum_k p_k \, e^{-n p_k / m} \Big),
              \quad K = K_0 \, (N / 3000)^c

    The first sum is the shortage of room, the second that of data, so that both add up as in the scaling law.
    The list has an end.

    Args:
        room: :math:`K_0`, the facts for which 3,000 parameters have room.
        power: :math:`c`, how the room grows with the parameters.
        meetings: :math:`m`, how often a fact must be met, on average.
    """

    room: float
    power: float
    meetings: float

    def predict(self, n: Tensor, d: Tensor) -> Tensor:
        """Return the losses of n parameters and d tokens."""
        p = Facts().p
        no_room = beyond(p, self.room * (n / TYPICAL) ** self.power)
        not_met = unmet(p, d, torch.tensor([self.meetings]).double())[0]
        return math.log(N_SYMBOLS) * (no_room + not_met)


def fit_memory(n: Tensor, d: Tensor, loss: Tensor) -> Memory:
    """Try all rooms, powers and meetings; return the memory with the smallest relative errors."""
    p, found = Facts().p, (float("inf"), Memory(1.0, 1.0, 1.0))
    not_met = unmet(p, d, MEETINGS)  # (meetings, run)
    for power in POWERS.tolist():
        no_room = beyond(p, ROOMS[:, None] * (n / TYPICAL) ** power)  # (room, run)
        predicted = math.log(N_SYMBOLS) * (no_room[:, None] + not_met)  # (room, meetings, run)
        errors = (predicted / loss - 1).square().sum(dim=2)
        room, meetings = divmod(int(errors.argmin()), len(MEETINGS))
        each = Memory(ROOMS[room].item(), power, MEETINGS[meetings].item())
        found = min(found, (errors.min().item(), each), key=lambda pair: pair[0])
    return found[1]


def _still_unknown(met: Tensor) -> Tensor:
    return torch.exp(-met)


def beyond(p: Tensor, k: Tensor) -> Tensor:
    """Return the probability of the facts beyond the k most frequent; k need not be an integer."""
    known = torch.cat([torch.zeros(1).double(), p.cumsum(0)])
    k = k.double().clamp(max=len(p))
    whole = k.long().clamp(max=len(p) - 1)
    return 1 - torch.lerp(known[whole], known[whole + 1], k - whole)


def unmet(
    p: Tensor, d: Tensor, meetings: Tensor, left: Callable[[Tensor], Tensor] = _still_unknown
) -> Tensor:
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
