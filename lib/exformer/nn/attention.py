"""Attention: every query asks all keys, and takes the mean of their values, weighted by how well they fit."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from exformer.nn.masks import check_mask


def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    *,
    mask: Bool[Tensor, "..."] | None = None,
) -> tuple[Float[Tensor, "*batch query d_v"], Float[Tensor, "*batch query key"]]:
    r"""Attend with every query to all keys.

    .. math:: \mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right) V

    Args:
        q: Queries, one row each.
        k: Keys, as wide as the queries.
        v: Values, one for each key.
        mask: True = may attend; broadcast over the axes before (query, key).

    Returns:
        The outputs, one row a query, and the weights. A row of weights sums to 1; where a query may attend
        to no key at all, its weights and its output are zero. In float16 a product of 65,504 or more has no
        number: there use the module, or float32.

    Raises:
        ValueError: If widths or counts do not fit, or the mask is not boolean or does not fit.

    Source:
        Vaswani et al. 2017, equation 1.
    """
    check_qkv(q, k, v)
    check_mask(mask, shape=(*q.shape[:-1], k.size(-2)))
    scores = q @ k.mT / math.sqrt(q.size(-1))  # (*batch, query, key)
    if mask is not None:
        # The lowest finite number, not -inf: a row of only -inf would become 0/0 in the softmax.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ v, weights


def check_qkv(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Refuse queries, keys and values that do not fit together.

    Args:
        q: Queries (..., query, d_k).
        k: Keys (..., key, d_k).
        v: Values (..., key, d_v).

    Raises:
        ValueError: If queries and keys differ in width, keys and values in number, or the axes before.
    """
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise ValueError(
            f"queries {tuple(q.shape)}, keys {tuple(k.shape)} and values {tuple(v.shape)} must have the same "
            "axes before the last two, as batch and heads"
        )
    if q.size(-1) != k.size(-1):
        raise ValueError(
            f"queries have {q.size(-1)} columns and keys {k.size(-1)}: "
            "both need the same number, as each score is their dot product"
        )
    if k.size(-2) != v.size(-2):
        raise ValueError(f"there are {k.size(-2)} keys and {v.size(-2)} values: each key needs one value")
