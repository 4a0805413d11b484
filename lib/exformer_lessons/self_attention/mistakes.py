"""Known mistakes, each with its hint: the mask of attention, and what two suspects do."""

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


def scores(q: Tensor, k: Tensor) -> Tensor:
    """Compute the scores, divided by the root of the width of the keys."""
    return q @ k.mT / math.sqrt(q.size(-1))


def over_queries(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Put the softmax on the wrong axis."""
    return scores(q, k).softmax(dim=-2) @ v


def by_d_k(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Divide by d_k, not by its root."""
    return (q @ k.mT / q.size(-1)).softmax(dim=-1) @ v


def _blocked(q: Tensor, k: Tensor, mask: Tensor, *, fill: float = -math.inf) -> Tensor:
    return scores(q, k).masked_fill(~mask, fill).softmax(dim=-1)


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
