"""Known mistakes, each with its hint: top-p, a step of beam search."""

from collections.abc import Callable

import torch
from torch import Tensor

from exformer_lessons.exercises.grading import Mistake


def beam_step(live: Tensor, further: Tensor, beam: int) -> Tensor:
    """Take the best of all continuations: sums, rows and tokens, one row of the result each."""
    return _best(live[:, None] + further, beam)


def _best(total: Tensor, beam: int, *, width: int | None = None, largest: bool = True) -> Tensor:
    values, index = total.flatten().topk(beam, largest=largest)
    width = width or total.size(1)
    return torch.stack((values, (index // width).to(values), (index % width).to(values)))


def _true_division(live: Tensor, further: Tensor, beam: int) -> Tensor:
    values, index = (live[:, None] + further).flatten().topk(beam)
    return torch.stack((values, index / further.size(1), (index % further.size(1)).to(values)))


def _each_row(live: Tensor, further: Tensor, beam: int) -> Tensor:
    values, symbols = (live[:, None] + further).max(dim=1)
    order = values.argsort(descending=True)
    return torch.stack((values[order], order.to(values), symbols[order].to(values)))


def _row_by_row(live: Tensor, further: Tensor, beam: int) -> Tensor:
    values, symbols = (live[:, None] + further).max(dim=1)
    return torch.stack((values, torch.arange(len(values)).to(values), symbols.to(values)))


def _order_of(total: Tensor, live: Tensor, further: Tensor, beam: int) -> Tensor:
    _, rows, symbols = _best(total, beam)
    return torch.stack(((live[:, None] + further)[rows.long(), symbols.long()], rows, symbols))


def _first_row(live: Tensor, further: Tensor, beam: int) -> Tensor:
    row = int(live.argmax())
    values, symbols = (live[row] + further[row]).topk(beam)
    return torch.stack((values, torch.full_like(values, row), symbols.to(values)))


#: Wrong ways to take a step of beam search.
BEAM_STEP: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "You keep the best continuation of each beginning: one beginning may have several among the best.": (
        _each_row
    ),
    "You keep one continuation of each beginning, row by row: all continuations compete.": _row_by_row,
    "You found the right ones, but the best must come first.": (
        lambda live, further, beam: beam_step(live, further, beam).flip(1)
    ),
    "You forget how probable the beginnings are: add their log-probabilities.": (
        lambda live, further, beam: _best(further.clone(), beam)
    ),
    "You choose by the next token alone, and add the beginnings too late: add first, then choose.": (
        lambda live, further, beam: _order_of(further, live, further, beam)
    ),
    "You multiply log-probabilities: the logarithm of a product is a sum.": (
        lambda live, further, beam: _best(live[:, None] * further, beam)
    ),
    "You return probabilities: return the sums of logarithms.": (
        lambda live, further, beam: _best((live[:, None] + further).exp(), beam)
    ),
    "Your rows and tokens are mixed up: divide the flat index by the size of the vocabulary.": (
        lambda live, further, beam: _best(live[:, None] + further, beam, width=beam)
    ),
    "Your rows are not integers: divide with //, not with /.": _true_division,
    "You keep the least probable: keep the largest sums.": (
        lambda live, further, beam: _best(live[:, None] + further, beam, largest=False)
    ),
    "You go on from the best beginning alone: all of them are continued.": _first_row,
    "Your order is (sums, tokens, rows): rows come before tokens.": (
        lambda live, further, beam: beam_step(live, further, beam)[[0, 2, 1]]
    ),
}


def top_p(p: Tensor, threshold: float) -> Tensor:
    """Keep the most probable tokens until their sum reaches the threshold; make the sum 1 again."""
    return _kept(p, lambda reached, own: reached - own < threshold)


def _kept(
    p: Tensor,
    keep: Callable[[Tensor, Tensor], Tensor],
    *,
    descending: bool = True,
    scale: Callable[[Tensor], Tensor] = lambda kept: kept / kept.sum(),
) -> Tensor:
    """Keep by a rule that sees the sum up to a token, and the token's own share."""
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
    larger = (p * (p > p[:, None])).sum(1)  # of each token: the sum of those that are more probable
    kept = torch.where(larger < threshold, p, torch.zeros(()))
    return kept / kept.sum()


#: Wrong ways to keep the smallest set that reaches the threshold.
TOP_P: dict[str, Mistake] = {
    "Of equally probable tokens you keep all: the smallest set may need but one of them.": _both,
    "You drop the token at which the sum reaches the threshold: it belongs to the set.": (
        lambda p, threshold: _kept(p, lambda reached, own: reached <= threshold),
        lambda p, threshold: _kept(p, lambda reached, own: (reached <= threshold) | (own.cumsum(0) == own)),
    ),
    "You keep a token only while the sum is below the threshold: the one that reaches it belongs, too.": (
        lambda p, threshold: _kept(p, lambda reached, own: reached < threshold)
    ),
    "Where a sum is exactly the threshold you keep one more: return the smallest set.": (
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
    "Your mask is in sorted order, your probabilities are not: bring the mask back to their order.": (
        _unsorted_mask
    ),
    "You read with the sorted indices (kept[order]): write to them, as scatter does.": _gathered,
    "You keep what is above 1 - threshold: each alone is compared; their sum must reach the threshold.": (
        lambda p, threshold: p * (p >= 1 - threshold) / (p * (p >= 1 - threshold)).sum()
    ),
    "You take a softmax of probabilities: divide by the sum that is left.": (
        lambda p, threshold: _kept(p, lambda reached, own: reached - own < threshold, scale=_softened)
    ),
    "You take a softmax over all tokens, and what was cut off comes back: divide by the sum that is left.": (
        lambda p, threshold: _kept(
            p, lambda reached, own: reached - own < threshold, scale=lambda kept: kept.softmax(dim=0)
        )
    ),
    "You start from the least probable token: sort in descending order.": (
        lambda p, threshold: _kept(p, lambda reached, own: reached - own < threshold, descending=False)
    ),
    "You sum in the order of the ids: sort by probability first.": _by_place,
    "You compare each probability with the threshold: their sum, the largest first, must reach it.": _alone,
    "You return what you were given: nothing is cut off.": lambda p, threshold: p,
    "Your result is sorted: put each probability back to its own index.": (
        lambda p, threshold: top_p(p, threshold).sort(descending=True).values
    ),
}
