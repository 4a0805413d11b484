"""Known mistakes, each with its hint: splitting and merging heads and attending with several."""

import math
from collections.abc import Callable

from torch import Tensor

from exformer.nn.attention import scaled_dot_product_attention
from exformer.nn.attention_heads import merge_heads, split_heads
from exformer_lessons.exercises.grading import Mistake

Mistakes = dict[str, Callable[..., Tensor]]


def split(x: Tensor, n_heads: int) -> Tensor:
    """Split the heads."""
    return split_heads(x, n_heads=n_heads)


def _by_view(x: Tensor, n_heads: int) -> Tensor:
    batch, length, d_model = x.shape
    return x.reshape(batch, n_heads, length, d_model // n_heads)


def _strided(x: Tensor, n_heads: int) -> Tensor:
    return x.unflatten(-1, (-1, n_heads)).movedim(-1, 1)


#: Wrong ways to cut, all of the right shape.
SPLIT: Mistakes = {
    "The shape is right, but view or reshape deals the numbers out in the order of memory, so words are "
    "mixed: cut the columns first, then transpose heads and positions.": _by_view,
    "You deal the columns out in turn, as cards: each head owns neighbors, d_head columns in a row.": (
        _strided
    ),
}

#: Orders of the axes batch, heads, position, d_head that are wrong.
ORDERS = {
    (0, 2, 1, 3): "Your heads come after the positions: after the cut, transpose heads and positions.",
    (0, 2, 3, 1): "Your heads are the last axis: the order is batch, heads, position, d_head.",
    (0, 1, 3, 2): "A head's columns come before the positions: the order is batch, heads, position, d_head.",
    (1, 0, 2, 3): "Your heads come before the batch: the order is batch, heads, position, d_head.",
}

#: Wrong ways to join heads, all of the right shape.
MERGE: Mistakes = {
    "You merge without the transpose, so positions are mixed: swap heads and positions first.": (
        lambda heads: heads.reshape(len(heads), heads.size(2), -1)
    ),
    "You join the columns in turn, as cards: the columns of a head stay together.": (
        lambda heads: heads.movedim(1, -1).flatten(2)
    ),
    "You set the heads side by side in reverse: the first head comes first.": (
        lambda heads: merge_heads(heads.flip(1))
    ),
}


def several(
    x: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    n_heads: int,
    *,
    cut: Callable[[Tensor, int], Tensor] = split,
    scale: float = 1.0,
) -> Tensor:
    """Attend with all heads, keep them apart (1, heads, position, d_head); ``scale`` multiplies scores."""
    q, k, v = (cut((x @ w)[None], n_heads) for w in (w_q, w_k, w_v))
    return scaled_dot_product_attention(q * scale, k, v)[0]


def multi_head(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int) -> Tensor:
    """Attend with all heads."""
    return _beside(several(x, w_q, w_k, w_v, n_heads)) @ w_o


def _beside(heads: Tensor) -> Tensor:
    return merge_heads(heads)[0]


def _scaled(scale: Callable[[int, int], float]) -> Callable[..., Tensor]:
    """Make multi-head attention with a wrong scale, from the widths of the model and of a head."""

    def mistaken(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int) -> Tensor:
        d_head = w_q.size(1) // n_heads
        times = math.sqrt(d_head) / scale(w_q.size(1), d_head)
        return _beside(several(x, w_q, w_k, w_v, n_heads, scale=times)) @ w_o

    return mistaken


def _softmax_along(dim: int) -> Callable[..., Tensor]:
    """Make multi-head attention with the softmax of (1, heads, query, key) along another axis."""

    def mistaken(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int) -> Tensor:
        q, k, v = (split((x @ w)[None], n_heads) for w in (w_q, w_k, w_v))
        scores = q @ k.mT / math.sqrt(q.size(-1))
        return _beside((scores.softmax(dim) if dim else scores) @ v) @ w_o

    return mistaken


def _first_slice_only(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int) -> Tensor:
    heads = several(x, w_q, w_k, w_v, n_heads)[0]  # (heads, position, d_head)
    return heads.mean(0) @ w_o[: heads.size(-1)]


def _one_head(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n: int, which: int) -> Tensor:
    return several(x, w_q, w_k, w_v, n)[0, which] @ w_o.chunk(n)[which]


#: Wrong ways to attend with several heads.
MULTI_HEAD: dict[str, Mistake] = {
    "W^O is missing: after the heads are set side by side, multiply by w_o.": (
        lambda x, q, k, v, o, n: _beside(several(x, q, k, v, n))
    ),
    "You divide by √d_model: each score is a sum over the d_head columns of one head.": _scaled(
        lambda d_model, d_head: math.sqrt(d_model)
    ),
    "You divide by d_head: divide the scores by its root.": _scaled(lambda d_model, d_head: d_head),
    "You divide by d_model: divide the scores by the root of d_head.": _scaled(
        lambda d_model, d_head: d_model
    ),
    "Your scores are not scaled: divide them by √d_head.": _scaled(lambda d_model, d_head: 1.0),
    "You take the mean of the heads' shares: they are added, or set side by side before w_o.": (
        lambda x, q, k, v, o, n: multi_head(x, q, k, v, o, n) / n
    ),
    "You keep one head alone: add up what all heads give.": (
        lambda x, q, k, v, o, n: _one_head(x, q, k, v, o, n, -1),
        lambda x, q, k, v, o, n: _one_head(x, q, k, v, o, n, 0),
    ),
    "You average the heads and use the first slice of w_o alone: each head has a slice of its own.": (
        _first_slice_only
    ),
    "You average the heads before w_o: set them side by side, each with its own columns.": (
        lambda x, q, k, v, o, n: several(x, q, k, v, n).mean(1)[0].repeat(1, n) @ o
    ),
    "Your softmax runs over the heads: the weights of a query sum to 1 in each head, over the keys.": (
        _softmax_along(1)
    ),
    "Your softmax runs over the queries: it belongs on the last axis, the keys.": _softmax_along(2),
    "The softmax is missing: weights come from scores by a softmax over the keys.": _softmax_along(0),
    "That is one wide head: n_heads changes nothing. Cut the columns of q, k and v into heads.": (
        lambda x, q, k, v, o, n: multi_head(x, q, k, v, o, 1)
    ),
    "You cut by view or reshape alone, so words are mixed: cut the columns, then transpose.": (
        lambda x, q, k, v, o, n: several(x, q, k, v, n, cut=_by_view).reshape(x.shape) @ o
    ),
    "Your cut mixes words, as view and reshape alone do: cut the columns, then transpose.": (
        lambda x, q, k, v, o, n: _beside(several(x, q, k, v, n, cut=_by_view)) @ o
    ),
    "You merge the heads without a transpose, so positions are mixed: swap heads and positions first.": (
        lambda x, q, k, v, o, n: several(x, q, k, v, n).reshape(x.shape) @ o
    ),
    "You deal the columns out to the heads in turn, as cards: each head owns neighbors.": (
        lambda x, q, k, v, o, n: _beside(several(x, q, k, v, n, cut=_strided)) @ o
    ),
    "You multiply by transposes, as nn.Linear does: here the matrices multiply as they are, x @ w.": (
        lambda x, q, k, v, o, n: multi_head(x, q.mT, k.mT, v.mT, o.mT, n)
    ),
    "You transpose w_o: it multiplies as it is.": lambda x, q, k, v, o, n: multi_head(x, q, k, v, o.mT, n),
    "Queries and keys are exchanged: the scores are q @ k.mT, one row per query.": (
        lambda x, q, k, v, o, n: multi_head(x, k, q, v, o, n)
    ),
}
