"""Attention: each query is compared with all keys, and its output is a weighted mean of their values.

Dropout of the weights is in ``fast_attention.py``, heads of keys that several queries share in
``attention_heads.py``.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from exformer.nn.attention_heads import repeat_kv_heads
from exformer.nn.fast_attention import fast_attention
from exformer.nn.masks import causal_mask, check_mask, is_broadcastable_to


def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    *,
    mask: Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | None = None,
) -> tuple[Float[Tensor, "*batch query d_v"], Float[Tensor, "*batch query key"]]:
    r"""Compute each query's weighted mean of the values.

    .. math:: \mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{QK^\top}{\sqrt{d_k}} + B\right) V

    Args:
        q: Queries, one row each.
        k: Keys, as wide as the queries.
        v: Values, one for each key.
        mask: True = may attend; broadcast over the axes before (query, key).
        bias: :math:`B`, added to the scores, broadcast as well; ALiBi's for example. Hide keys with
            the mask, not with a bias of -∞.

    Returns:
        The outputs, one row per query, and the weights. A row of weights sums to 1; if a query may attend to
        no key at all, its weights and its output are zero. In float16 a score of 65,504 or more overflows;
        use the module there, or float32.

    Raises:
        ValueError: If widths or counts do not fit, or mask or bias do not fit the scores.

    Source:
        Vaswani et al. 2017, equation 1; Press, Smith and Lewis 2022, section 3, for the bias.

    >>> import torch
    >>> q = torch.tensor([[1.0, 0.0]])
    >>> k = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> output, weights = scaled_dot_product_attention(q, k, v=torch.tensor([[10.0], [20.0]]))
    >>> weights
    tensor([[0.6698, 0.3302]])
    >>> output
    tensor([[13.3024]])
    """
    check_qkv(q, k, v)
    check_mask(mask, shape=(*q.shape[:-1], k.size(-2)))
    check_bias(bias, shape=(*q.shape[:-1], k.size(-2)))
    scores = q @ k.mT / math.sqrt(q.size(-1))  # (*batch, query, key)
    if bias is not None:
        scores = scores + bias.to(q)
    if mask is not None:
        # The lowest finite number, not -inf: a row of only -inf would become 0/0 in the softmax.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ v, weights


def attend(
    q: Float[Tensor, "batch heads query d_head"],
    k: Float[Tensor, "batch kv_heads key d_head"],
    v: Float[Tensor, "batch kv_heads key d_head"],
    *,
    mask: Bool[Tensor, "#batch #query #key"] | None = None,
    bias: Float[Tensor, "heads query key"] | None = None,
    causal: bool = False,
    window: int | None = None,
    dropout: float = 0.0,
    record: Callable[[Tensor], None] | None = None,
) -> Float[Tensor, "batch heads query d_head"]:
    """Attend with all heads of a layer, as every model does, with or without a cache.

    Args:
        q: Queries.
        k: Keys; each of their heads serves ``heads / kv_heads`` heads of queries, neighbors in order.
        v: Values.
        mask: True = may attend, for all heads alike.
        bias: Added to the scores.
        causal: Whether each query sees only the keys up to its own position. The last query is at the last
            key's position, also where earlier keys come from a cache.
        window: How many keys each query sees, the one at its own position last; None: all. For causal
            attention only.
        dropout: Fraction of the weights set to zero.
        record: Called with the weights (batch, heads, query, key), which are then computed without dropout.

    Returns:
        One vector per query and head; zero where a query may attend to no key at all.

    Raises:
        ValueError: If there is a window without ``causal``.

    Source:
        Vaswani et al. 2017, section 3.2; Ainslie et al. 2023 for the shared heads of keys and values;
        Beltagy, Peters and Cohan 2020, section 3.1, for the window.
    """
    if window is not None and not causal:
        raise ValueError(
            f"a window of {window} positions is for causal attention: build an encoder without a window"
        )
    n_queries, n_keys = q.size(2), k.size(2)
    windowed = window is not None and window < n_keys
    # The fused kernel has the causal triangle built in, but only for as many queries as keys, and no mask.
    plain = mask is None and bias is None and record is None and not windowed
    built_in = causal and n_queries == n_keys and plain
    # A single query is the last one, and sees all keys.
    if causal and (n_queries > 1 or windowed) and not built_in:
        triangle = causal_mask(n_queries, n_keys, window=window, device=q.device)
        mask = triangle[None] if mask is None else mask & triangle
    mask = None if mask is None else mask.unsqueeze(1)  # (batch or 1, 1, query or 1, key)
    if record is None:
        return fast_attention(q, k, v, mask=mask, bias=bias, causal=built_in, dropout=dropout)
    k, v = (repeat_kv_heads(x, n_heads=q.size(1)) for x in (k, v))
    heads, weights = scaled_dot_product_attention(q, k, v, mask=mask, bias=bias)
    record(weights)
    return heads


def check_qkv(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Check that queries (..., query, d_k), keys (..., key, d_k) and values (..., key, d_v) fit.

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


def check_bias(bias: Tensor | None, *, shape: tuple[int, ...]) -> None:
    """Check that a bias can be broadcast to scores of a shape.

    Raises:
        ValueError: If it can't.
    """
    if bias is not None and not is_broadcastable_to(bias, shape):
        raise ValueError(f"a bias must fit scores of the shape {shape}, got the shape {tuple(bias.shape)}")
