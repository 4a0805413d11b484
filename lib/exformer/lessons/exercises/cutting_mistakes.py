"""What goes wrong in cutting off the tail: each hint beside a function that makes the mistake."""

from collections.abc import Callable

import torch
from torch import Tensor


def top_p(p: Tensor, threshold: float) -> Tensor:
    """Keep the most probable symbols until their sum reaches the threshold; make the sum 1 again."""
    return _kept(p, lambda reached, own: reached - own < threshold)


def _kept(
    p: Tensor,
    keep: Callable[[Tensor, Tensor], Tensor],
    *,
    descending: bool = True,
    scale: Callable[[Tensor], Tensor] = lambda kept: kept / kept.sum(),
) -> Tensor:
    """Keep by a rule that sees the sum up to a symbol, and the symbol's own share."""
    own, order = p.sort(descending=descending)
    kept = torch.where(keep(own.cumsum(0), own), own, torch.zeros(()))
    return scale(torch.zeros_like(p).scatter(0, order, kept))


def _by_place(p: Tensor, threshold: float) -> Tensor:
    kept = torch.where(p.cumsum(0) - p < threshold, p, torch.zeros(()))
    return kept / kept.sum()


def _alone(p: Tensor, threshold: float) -> Tensor:
    kept = torch.where(p >= threshold, p, torch.zeros(()))
    return kept / kept.sum()


def _unsorted_mask(p: Tensor, threshold: float) -> Tensor:
    own = p.sort(descending=True).values
    kept = torch.where(own.cumsum(0) - own < threshold, p, torch.zeros(()))
    return kept / kept.sum()


def _gathered(p: Tensor, threshold: float) -> Tensor:
    own, order = p.sort(descending=True)
    kept = torch.where(own.cumsum(0) - own < threshold, own, torch.zeros(()))
    return (kept / kept.sum())[order]


def _softened(kept: Tensor) -> Tensor:
    return torch.where(kept > 0, kept, -torch.inf).softmax(dim=0)


def _both(p: Tensor, threshold: float) -> Tensor:
    larger = (p * (p > p[:, None])).sum(1)  # of each symbol: the sum of those that are more probable
    kept = torch.where(larger < threshold, p, torch.zeros(()))
    return kept / kept.sum()


#: Wrong ways to cut at a probability.
TOP_P: dict[str, Callable[[Tensor, float], Tensor]] = {
    "Of equally probable symbols you keep all: the smallest set may need but one of them.": _both,
    "You drop the symbol at which the sum reaches p: it belongs to the set.": (
        lambda p, threshold: _kept(p, lambda reached, own: reached <= threshold)
    ),
    "You keep a symbol only while the sum is below p: the one that reaches it belongs to the set.": (
        lambda p, threshold: _kept(p, lambda reached, own: reached < threshold)
    ),
    "Where a sum is exactly p you keep one more: the smallest set is asked for.": (
        lambda p, threshold: _kept(p, lambda reached, own: reached - own <= threshold)
    ),
    "What you keep does not sum to 1: divide by the sum that is left.": (
        lambda p, threshold: _kept(p, lambda reached, own: reached - own < threshold, scale=lambda kept: kept)
    ),
    "You divide by the threshold, which the sum has passed: divide by the sum that is left.": (
        lambda p, threshold: _kept(
            p,
            lambda reached, own: reached - own < threshold,
            scale=lambda kept: kept / threshold,
        )
    ),
    "Your mask is in sorted order, your probabilities are not: bring the mask back to their places.": (
        _unsorted_mask
    ),
    "You read with the sorted places (kept[order]): write to them, as scatter does.": _gathered,
    "You keep what is above 1 - p: each alone is compared; it is their sum that must reach p.": (
        lambda p, threshold: p * (p >= 1 - threshold) / (p * (p >= 1 - threshold)).sum()
    ),
    "You take a softmax of probabilities: divide by the sum that is left.": (
        lambda p, threshold: _kept(p, lambda reached, own: reached - own < threshold, scale=_softened)
    ),
    "You take a softmax over all symbols, and what was cut off comes back: divide by the sum that is left.": (
        lambda p, threshold: _kept(
            p, lambda reached, own: reached - own < threshold, scale=lambda kept: kept.softmax(dim=0)
        )
    ),
    "You start from the least probable symbol: sort in descending order.": (
        lambda p, threshold: _kept(p, lambda reached, own: reached - own < threshold, descending=False)
    ),
    "You sum in the order of the ids: sort by probability first.": _by_place,
    "You compare each probability with p: it is their sum, the largest first, that must reach p.": _alone,
    "You return what you were given: nothing is cut off.": lambda p, threshold: p,
    "Your result is sorted: put each probability back to its own place.": (
        lambda p, threshold: top_p(p, threshold).sort(descending=True).values
    ),
}
