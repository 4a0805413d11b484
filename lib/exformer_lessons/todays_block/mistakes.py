"""Known mistakes, each with its hint: queries in groups, a mixture of experts."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from exformer_lessons.exercises.grading import Mistake

Expert = Callable[[Tensor], Tensor]
Result = tuple[Tensor, Tensor]


def neighbors(x: Tensor, n: int) -> Tensor:
    """Give each head of keys or values to n neighboring heads of queries."""
    return x.repeat_interleave(n, dim=0)


def _in_turn(x: Tensor, n: int) -> Tensor:
    return x.repeat(n, 1, 1)


def _first(x: Tensor, n: int) -> Tensor:
    return x[:1].expand(n * len(x), -1, -1)


def _mean(x: Tensor, n: int) -> Tensor:
    return x.mean(dim=0, keepdim=True).expand(n * len(x), -1, -1)


def _turned(x: Tensor, n: int) -> Tensor:
    return neighbors(x, n).flip(0)


def grouped(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    keys: Callable[[Tensor, int], Tensor] = neighbors,
    values: Callable[[Tensor, int], Tensor] | None = None,
    root: Callable[[Tensor], float] = lambda q: q.size(-1) ** 0.5,
    dim: int = -1,
    causal: bool = False,
) -> Tensor:
    """Attend with groups of query heads (heads, query, d_head), which share keys and values."""
    n = len(q) // len(k)
    scores = q @ keys(k, n).mT / root(q)
    if causal:
        unseen = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(unseen, -torch.inf)
    return scores.softmax(dim=dim) @ (values or keys)(v, n)


def _grouped(**changes: Any) -> Callable[..., Tensor]:
    return lambda q, k, v: grouped(q, k, v, **changes)


#: Wrong ways to share keys and values, all of the right shape.
GROUPED: dict[str, Mistake] = {
    "You deal the heads out in turn, as repeat or tile does: the heads of a group are neighbors, as with "
    "repeat_interleave.": _grouped(keys=_in_turn),
    "Your keys are shared by neighbors, your values are dealt out in turn: repeat both alike.": (
        _grouped(values=_in_turn)
    ),
    "Your values are shared by neighbors, your keys are dealt out in turn: repeat both alike.": (
        _grouped(keys=_in_turn, values=neighbors)
    ),
    "All your heads read the first head of keys and values: each group has its own.": _grouped(keys=_first),
    "You average the heads of keys and values: each group reads one of them, as it is.": _grouped(keys=_mean),
    "Your groups are in reverse: the first queries read the first head of keys and values.": (
        _grouped(keys=_turned)
    ),
    "The scores are not divided by the root of d_head.": _grouped(root=lambda q: 1.0),
    "You divide by d_head: take its root.": _grouped(root=lambda q: q.size(-1)),
    "You divide by the root of d_model: the width is that of one head.": (
        _grouped(root=lambda q: (q.size(-1) * len(q)) ** 0.5)
    ),
    "Your softmax runs over the queries: the weights of one query sum to 1.": _grouped(dim=-2),
    "Your softmax runs over the heads: the weights of one query sum to 1.": _grouped(dim=0),
    "You mask later keys: here each query attends to all.": _grouped(causal=True),
}


def mixture(
    x: Tensor,
    w: Tensor,
    experts: Sequence[Expert],
    k: int,
    *,
    weigh: Callable[[Tensor, Tensor, Tensor], Tensor] = lambda p, top, logits: (
        top / top.sum(-1, keepdim=True)
    ),
    choose: Callable[[Tensor, int], Tensor] = lambda p, k: p.topk(k, dim=-1).indices,
    dim: int = -1,
) -> Tensor:
    """Return what the chosen experts give together."""
    logits = x @ w
    p = logits.softmax(dim=dim)
    chosen = choose(p, k)
    weights = weigh(p, p.gather(-1, chosen), logits.gather(-1, chosen))
    gates = torch.zeros_like(p).scatter(-1, chosen, weights)
    return torch.stack([gates[:, [e]] * expert(x) for e, expert in enumerate(experts)]).sum(dim=0)


def balance(
    x: Tensor,
    w: Tensor,
    experts: Sequence[Expert],
    k: int,
    *,
    join: Callable[[Tensor, Tensor, int, int], Tensor] = lambda f, p, n, k: (
        n * (f.mean(dim=0) * p.mean(dim=0)).sum()
    ),
    top: int | None = None,
) -> Tensor:
    """Return the balance loss of a router."""
    p = (x @ w).softmax(dim=-1)
    chosen = p.topk(top or k, dim=-1).indices
    return join(torch.zeros_like(p).scatter(-1, chosen, 1.0), p, len(experts), k)


def _mixture(**changes: Any) -> Callable[..., Result]:
    return lambda *case: (mixture(*case, **changes), balance(*case))


def _balance(**changes: Any) -> Callable[..., Result]:
    return lambda *case: (mixture(*case), balance(*case, **changes))


def both(x: Tensor, w: Tensor, experts: Sequence[Expert], k: int) -> Result:
    """Return the output of a mixture of experts, and its balance loss."""
    return mixture(x, w, experts, k), balance(x, w, experts, k)


def _gates(p: Tensor, used: Tensor) -> Tensor:
    return (p * used) / (p * used).sum(dim=-1, keepdim=True)


def _zeroed(x: Tensor, w: Tensor, experts: Sequence[Expert], k: int) -> Result:
    """Set the logits of the other experts to 0, before the softmax."""
    top, chosen = (x @ w).topk(k, dim=-1)
    gates = torch.zeros_like(x @ w).scatter(-1, chosen, top).softmax(dim=-1)
    output = torch.stack([gates[:, [e]] * expert(x) for e, expert in enumerate(experts)]).sum(dim=0)
    return output, balance(x, w, experts, k)


#: Wrong outputs.
MIXTURE: dict[str, Mistake] = {
    "The weights are not applied: multiply what each chosen expert gives by its weight.": (
        _mixture(weigh=lambda p, top, logits: torch.ones_like(top))
    ),
    "You average the chosen experts: each has its own weight.": (
        _mixture(weigh=lambda p, top, logits: torch.full_like(top, 1 / top.size(-1)))
    ),
    "The weights do not sum to 1: divide the chosen probabilities by their sum.": (
        _mixture(weigh=lambda p, top, logits: top)
    ),
    "You use all experts: only the k most probable ones count.": (
        _mixture(choose=lambda p, k: p.topk(p.size(-1), dim=-1).indices)
    ),
    "You set the logits of the other experts to 0, and exp(0) is 1: set them to -inf.": _zeroed,
    "You use the most probable expert alone: choose k.": (
        _mixture(choose=lambda p, k: p.topk(1, dim=-1).indices)
    ),
    "You choose the least probable experts.": (
        _mixture(choose=lambda p, k: p.topk(k, dim=-1, largest=False).indices)
    ),
    "Your softmax runs over the tokens: the probabilities of one token sum to 1.": _mixture(dim=0),
    "You take the softmax twice: divide the chosen probabilities by their sum.": (
        _mixture(weigh=lambda p, top, logits: top.softmax(dim=-1))
    ),
    "The weights are given to the wrong experts: each belongs to the expert that was chosen with it.": (
        _mixture(weigh=lambda p, top, logits: (top / top.sum(-1, keepdim=True)).flip(-1))
    ),
    "You add the input: the residual connection is outside of the mixture.": (
        lambda x, w, experts, k: (x + mixture(x, w, experts, k), balance(x, w, experts, k))
    ),
    "You weigh the experts by their logits: take the softmax first.": (
        _mixture(weigh=lambda p, top, logits: logits),
        _mixture(weigh=lambda p, top, logits: logits / logits.sum(-1, keepdim=True)),
    ),
}

#: Wrong balance losses.
BALANCE: dict[str, Mistake] = {
    "You multiply counts by counts, and counts have no gradient: one factor is the mean probability.": (
        _balance(join=lambda f, p, n, k: n * f.mean(dim=0).square().sum())
    ),
    "You multiply probabilities by probabilities: one factor is the fraction of the tokens.": (
        _balance(join=lambda f, p, n, k: n * p.mean(dim=0).square().sum())
    ),
    "The number of experts is missing as a factor.": (
        _balance(join=lambda f, p, n, k: (f.mean(dim=0) * p.mean(dim=0)).sum()),
        _balance(join=lambda f, p, n, k: (f.mean(dim=0) * p.mean(dim=0)).mean()),
    ),
    "You count the most probable expert alone: count all k that are chosen.": _balance(top=1),
    "You divide the counts by k: f is the fraction of the tokens that choose an expert.": (
        _balance(join=lambda f, p, n, k: n * (f.mean(dim=0) / k * p.mean(dim=0)).sum())
    ),
    "You sum over the tokens: f and P are means.": (
        _balance(join=lambda f, p, n, k: n * (f.sum(dim=0) * p.sum(dim=0)).sum()),
        _balance(join=lambda f, p, n, k: n * (f.sum(dim=0) * p.mean(dim=0)).sum()),
        _balance(join=lambda f, p, n, k: n * (f.mean(dim=0) * p.sum(dim=0)).sum()),
    ),
    "P is the mean of the weights of the chosen: take all probabilities, before the choice.": (
        _balance(join=lambda f, p, n, k: n * (f.mean(dim=0) * _gates(p, f).mean(dim=0)).sum()),
        _balance(join=lambda f, p, n, k: n * (f.mean(dim=0) * (p * f).mean(dim=0)).sum()),
    ),
    "You multiply token by token: take both means first, then the product.": (
        _balance(join=lambda f, p, n, k: n * (f * p).mean(dim=0).sum())
    ),
}
