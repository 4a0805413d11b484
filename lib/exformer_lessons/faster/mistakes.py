"""Known mistakes, each with its hint: an online softmax over blocks, and a step of speculative decoding."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from exformer_lessons.exercises.grading import Mistake

Blocks = Sequence[tuple[Tensor, Tensor]]
P = Callable[[list[int]], Tensor]


def attention(q: Tensor, blocks: Blocks) -> Tensor:
    """Return the result of softmax attention of one query over all blocks."""
    k, v = (torch.cat(parts) for parts in zip(*blocks, strict=True))
    return (k @ q).softmax(dim=0) @ v


def _online(
    shrink: Callable[[float, float], tuple[float, float]] = lambda m, new: (_exp(m - new), _exp(m - new)),
    last: Callable[..., Tensor] = torch.div,
    first: float = -torch.inf,
) -> Callable[..., Tensor]:
    """Make a mistake of the factors of what is kept, sum and total, of the last division, or of the start."""

    def wrong(q: Tensor, blocks: Blocks) -> Tensor:
        m, total, result = first, torch.zeros((), dtype=q.dtype), torch.zeros((), dtype=q.dtype)
        for k, v in blocks:
            scores = k @ q
            new = max(m, scores.max().item())
            weights = (scores - new).exp()
            of_total, of_result = (1.0, 1.0) if m == -torch.inf else shrink(m, new)
            total, result = of_total * total + weights.sum(), of_result * result + weights @ v
            m = new
        return last(result, total)

    return wrong


def _exp(x: float) -> float:
    return torch.tensor(x, dtype=torch.float64).exp().item()


def _each_alone(q: Tensor, blocks: Blocks) -> Tensor:
    """Return the results of the blocks by themselves."""
    return torch.stack([(k @ q).softmax(dim=0) @ v for k, v in blocks])


def _own_maximum(q: Tensor, blocks: Blocks) -> Tensor:
    """Let each block subtract its own largest score, and add up."""
    total: Any = 0.0
    result: Any = 0.0
    for k, v in blocks:
        weights = (k @ q - (k @ q).max()).exp()
        total, result = total + weights.sum(), result + weights @ v
    return result / total


def _first_maximum(q: Tensor, blocks: Blocks) -> Tensor:
    """Subtract the first block's largest score everywhere."""
    m = (blocks[0][0] @ q).max()
    weights = torch.cat([(k @ q - m).exp() for k, _ in blocks])
    return weights @ torch.cat([v for _, v in blocks]) / weights.sum()


def _not_stable(q: Tensor, blocks: Blocks) -> Tensor:
    weights = torch.cat([(k @ q).exp() for k, _ in blocks])
    return weights @ torch.cat([v for _, v in blocks]) / weights.sum()


def _scaled(q: Tensor, blocks: Blocks) -> Tensor:
    return attention(q / len(q) ** 0.5, blocks)


#: Wrong ways to attend in blocks.
BLOCKS: dict[str, Mistake] = {
    "You keep the first block's largest score: a later block may have a larger one, whose exponential "
    "overflows.": _first_maximum,
    "Nothing is rescaled: when a block has a larger score, what you have kept is relative to the old one.": (
        _online(lambda m, new: (1.0, 1.0)),
        _own_maximum,
    ),
    "You rescale the sum but not the total of the values: both are relative to the largest score.": _online(
        lambda m, new: (_exp(m - new), 1.0)
    ),
    "You rescale the total of the values but not the sum: both are relative to the largest score.": _online(
        lambda m, new: (1.0, _exp(m - new))
    ),
    "You rescale by the wrong factor: it is exp(old - new), at most 1.": _online(
        lambda m, new: (_exp(new - m), _exp(new - m))
    ),
    "You average the blocks' results: blocks with large scores must count more.": (
        lambda q, blocks: _each_alone(q, blocks).mean(dim=0),
        lambda q, blocks: torch.einsum(
            "b,bd->d",
            torch.tensor([len(k) for k, _ in blocks], dtype=q.dtype) / sum(len(k) for k, _ in blocks),
            _each_alone(q, blocks),
        ),
    ),
    "You add the blocks' results: each is divided by its own sum already.": (
        lambda q, blocks: _each_alone(q, blocks).sum(dim=0)
    ),
    "You do not divide by the sum of the weights at the end.": _online(last=lambda result, total: result),
    "Your largest score begins at a number, and all scores may lie below it: begin at -inf.": tuple(
        _online(first=first) for first in (0.0, -10.0, -100.0, -1000.0)
    ),
    "You use the last block alone.": lambda q, blocks: attention(q, blocks[-1:]),
    "You use the first block alone.": lambda q, blocks: attention(q, blocks[:1]),
    "You divide by the root of d: the query has been divided already.": _scaled,
    "Your exponentials overflow or vanish where scores are in the thousands: subtract the largest score.": (
        _not_stable
    ),
}


def step(
    ids: list[int], p: P, q: P, sharpen: Callable[[Tensor], Tensor], draw: Callable[[Tensor], int]
) -> Any:
    """Take one step of speculative decoding, with one proposal."""
    return _step()(ids, p, q, sharpen, draw)


def _accept(p: Tensor, q: Tensor, x: int) -> float:
    return min(1.0, (p[x] / q[x]).item())


def _residual(p: Tensor, q: Tensor) -> Tensor:
    return (p - q).clamp(min=0)


def _step(
    propose: Callable[[Tensor, Callable[[Tensor], int]], int] = lambda q, draw: draw(q),
    sampled_from: Callable[[Tensor, Callable[[Tensor], Tensor]], Tensor] = lambda q, sharpen: sharpen(q),
    ratio: Callable[[Tensor, Callable[[Tensor], Tensor]], Tensor] = lambda q, sharpen: sharpen(q),
    accept: Callable[[Tensor, Tensor, int], float] = _accept,
    replace: Callable[[Tensor, Tensor], Tensor] = _residual,
    bonus: Callable[[list[int], int, P], Tensor] | None = lambda ids, x, p: p([*ids, x]),
) -> Callable[..., list[int]]:
    """Make a mistake of one part of the step."""

    def wrong(ids: list[int], p: P, q: P, sharpen: Any, draw: Any) -> list[int]:
        target, raw = p(ids), q(ids)
        x = propose(sampled_from(raw, sharpen), draw)
        known = ratio(raw, sharpen)
        keep = accept(target, known, x)
        if draw(torch.tensor([keep, 1 - keep], dtype=target.dtype)) == 1:
            left = replace(target, known)
            return [draw(left if left.sum() > 0 else target)]
        return [x] if bonus is None else [x, draw(bonus(ids, x, p))]

    return wrong


#: Wrong steps of speculative decoding.
STEP: dict[str, Mistake] = {
    "After a rejection you sample from p: an overrated token has had its probability already, so sample from "
    "what p has above q.": _step(replace=lambda p, q: p),
    "Your ratio has the draft's raw probabilities: divide by those that the proposal was sampled from, after "
    "sharpen.": _step(ratio=lambda q, sharpen: q),
    "Your draft is greedy, but the ratio has its probabilities: sample the proposal with draw.": _step(
        propose=lambda q, draw: int(q.argmax())
    ),
    "Your ratio is turned: accept with min(1, p/q).": _step(
        accept=lambda p, q, x: min(1.0, (q[x] / p[x]).item()) if p[x] > 0 else 1.0
    ),
    "You accept every proposal: that is the draft's distribution.": _step(accept=lambda p, q, x: 1.0),
    "You accept with the probability p(x): divide it by q(x), and none is above 1.": _step(
        accept=lambda p, q, x: p[x].item()
    ),
    "Your residual has the wrong sign: it is what p has above q.": _step(
        replace=lambda p, q: (q - p).clamp(min=0)
    ),
    "Your residual is |p - q|: it is what p has above q, and 0 elsewhere.": _step(
        replace=lambda p, q: (p - q).abs()
    ),
    "After a rejection you sample from the draft: sample from what p has above q.": _step(
        replace=lambda p, q: q
    ),
    "After an accepted proposal, you sample the free token from p before it: it follows ids and the "
    "proposal.": _step(bonus=lambda ids, x, p: p(ids)),
}

#: Wrong steps that have the right probabilities: what they draw tells them.
NO_DRAFT = (
    "The draft is not used: first sample a proposal from sharpen(q(ids)). It is what makes a step cheap."
)
NOT_SHARPENED = "You sample the proposal from q(ids): sample it from sharpen(q(ids))."
NOT_FREE = (
    "After a rejection you return a second token: p after the residual's token is not known from this pass. "
    "Only an accepted proposal is followed by a free token."
)
