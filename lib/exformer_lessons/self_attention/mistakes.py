"""Known mistakes, each with its hint: attention and its mask."""

import math

import torch
from torch import Tensor

from exformer.nn.attention import scaled_dot_product_attention
from exformer.nn.masks import causal_mask
from exformer_lessons.exercises.grading import FINITE_FILL, NOT_STABLE, Mistake

Mistakes = dict[str, Mistake]


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attend, and return the output alone."""
    return scaled_dot_product_attention(q, k, v, mask=mask)[0]


def scores(q: Tensor, k: Tensor, *, d: int | None = None) -> Tensor:
    """Compute the scores, divided by the root of d, by default the width of the keys."""
    return q @ k.mT / math.sqrt(d or q.size(-1))


def over_queries(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Put the softmax on the wrong axis."""
    return scores(q, k).softmax(dim=-2) @ v


def by_d_k(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Divide by d_k, not by its root."""
    return (q @ k.mT / q.size(-1)).softmax(dim=-1) @ v


def _blocked(q: Tensor, k: Tensor, mask: Tensor, *, fill: float = -math.inf) -> Tensor:
    return scores(q, k).masked_fill(~mask, fill).softmax(dim=-1)


#: Wrong in every case, and of the right shape where all sizes are equal.
ATTENTION: Mistakes = {
    "Your scores are not scaled: divide q·k by √d_k before the softmax.": (
        lambda q, k, v: (q @ k.mT).softmax(-1) @ v
    ),
    "You divide by d_k. The standard deviation of q·k is √d_k: divide by that.": by_d_k,
    "You divide the weights, after the softmax: divide the scores by √d_k, before it.": (
        lambda q, k, v: (q @ k.mT).softmax(-1) / math.sqrt(q.size(-1)) @ v
    ),
    "Your scores are q @ k: transpose the keys, q @ k.T, or no score is a query times a key.": (
        lambda q, k, v: (q @ k / math.sqrt(q.size(-1))).softmax(-1) @ v
    ),
    "Your weights sum to 1 over queries, not over keys: the softmax belongs on the last axis.": over_queries,
    "Your weights do not sum to 1: a softmax over the keys is missing.": lambda q, k, v: scores(q, k) @ v,
    "You exponentiate, but do not divide by the sum over the keys.": lambda q, k, v: scores(q, k).exp() @ v,
    "You take the mean of the keys: the weights belong on the values.": lambda q, k, v: attention(q, k, k),
    "Queries and keys are exchanged: the scores are q @ k.T, one row per query.": (
        lambda q, k, v: attention(k, q, v)
    ),
    "Your result is transposed: one row per query, one column per feature of the values.": (
        lambda q, k, v: attention(q, k, v).mT
    ),
    "You return the weights: multiply them with the values.": lambda q, k, v: scores(q, k).softmax(-1),
    "You take the value of the best key only: soft attention takes a share of all.": (
        lambda q, k, v: v[scores(q, k).argmax(-1)]
    ),
}

#: Right where all sizes are equal, wrong elsewhere.
SIZES: Mistakes = {
    "You divide by the root of the number of keys: it is the root of their width, d_k.": (
        lambda q, k, v: scores(q, k, d=k.size(-2)).softmax(-1) @ v
    ),
    "You divide by the root of the number of queries: it is the root of their width, d_k.": (
        lambda q, k, v: scores(q, k, d=q.size(-2)).softmax(-1) @ v
    ),
    "You divide by the root of the values' width: it is the root of the keys' width, d_k.": (
        lambda q, k, v: scores(q, k, d=v.size(-1)).softmax(-1) @ v
    ),
}

#: Wrong wherever a mask hides something.
MASK: Mistakes = {
    "Your mask changes nothing.": lambda q, k, v, mask: attention(q, k, v),
    "Your mask is inverted: True means that a query *may* attend.": (
        lambda q, k, v, mask: _blocked(q, k, ~mask) @ v
    ),
    "You mask after the softmax, so the rows no longer sum to 1: mask the scores.": (
        lambda q, k, v, mask: (scores(q, k).softmax(-1) * mask) @ v
    ),
    "You set forbidden scores to 0, and exp(0) = 1 is not nothing: set them to -inf.": (
        lambda q, k, v, mask: _blocked(q, k, mask, fill=0.0) @ v
    ),
    "You multiply by -inf: a negative score becomes +inf, then NaN. Fill with -inf.": (
        lambda q, k, v, mask: torch.where(mask, scores(q, k), scores(q, k) * -math.inf).softmax(-1) @ v
    ),
    "All is NaN: look for +inf, or for 0 times inf. Fill the forbidden scores with -inf.": (
        lambda q, k, v, mask: attention(q, k, v) * math.nan
    ),
    "You fill with -inf after the softmax, where it is a weight: fill the scores, before it.": (
        lambda q, k, v, mask: scores(q, k).softmax(-1).masked_fill(~mask, -math.inf) @ v
    ),
    "You mask the future, whatever the mask says: use the mask that your function is given.": (
        lambda q, k, v, mask: attention(q, k, v, causal_mask(len(q)))
    ),
    "You add the mask to the scores: what is allowed gains 1, what is forbidden stays.": (
        lambda q, k, v, mask: (scores(q, k) + mask).softmax(-1) @ v
    ),
    "Your mask is transposed: a row of it belongs to a query, a column to a key.": (
        lambda q, k, v, mask: attention(q, k, v, mask.mT)
    ),
    "Your mask is right, your scale is missing: divide the scores by √d_k.": (
        lambda q, k, v, mask: attention(q * math.sqrt(q.size(-1)), k, v, mask)
    ),
    "Your mask is right, your scale is not: you divide by d_k, and it is √d_k.": (
        lambda q, k, v, mask: attention(q / math.sqrt(q.size(-1)), k, v, mask)
    ),
}

#: Wrong only where a query may attend to no key, or where sizes differ.
EMPTY_ROW: Mistakes = {
    "Right, but for a query that may see nothing: its softmax is 0/0, so you return NaN. Return zeros.": (
        lambda q, k, v, mask: _blocked(q, k, mask) @ v
    ),
    "Right, but for a query that may see nothing: yours takes the mean of all values. Return zeros.": (
        lambda q, k, v, mask: _blocked(q, k, mask, fill=-1e9) @ v
    ),
    "Right, but for a query that may see nothing: yours sees everything. Return zeros.": (
        lambda q, k, v, mask: attention(q, k, v, mask | ~mask.any(dim=-1, keepdim=True))
    ),
    "You divide by the root of the values' width: it is the root of the keys' width, d_k.": (
        lambda q, k, v, mask: attention(q * math.sqrt(q.size(-1) / v.size(-1)), k, v, mask)
    ),
    "You divide by the root of the number of keys: it is the root of their width, d_k.": (
        lambda q, k, v, mask: attention(q * math.sqrt(q.size(-1) / len(k)), k, v, mask)
    ),
}


def _by_exponentials(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Compute the softmax as its equation has it: 0/0 where each exponential is too small for its type."""
    fit = scores(q, k).exp() * mask
    return fit / fit.sum(dim=-1, keepdim=True) @ v


#: Wrong only where scores are very large.
FAR: Mistakes = {
    FINITE_FILL: lambda q, k, v, mask: _blocked(q, k, mask, fill=-1e4) @ v,
    NOT_STABLE: (_by_exponentials, lambda *case: _by_exponentials(*case).nan_to_num()),
}
