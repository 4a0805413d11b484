"""Masks say which query may attend to which key: boolean, True = may attend.

This is the convention of :func:`torch.nn.functional.scaled_dot_product_attention`. It is the opposite of
:class:`torch.nn.MultiheadAttention`, where True blocks; :func:`from_torch_mask` turns such a mask into ours.
Every mask of the library is made here, and masks combine with ``&``.
"""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from exformer.check_settings import check_integer


def causal_mask(
    n_queries: int,
    n_keys: int | None = None,
    *,
    window: int | None = None,
    device: torch.device | None = None,
) -> Bool[Tensor, "query key"]:
    r"""Let each position attend to itself and to the positions before it, or to the last ones of these.

    .. math:: \mathrm{mask}_{ij} = [\, p - window < j \le p \,], \qquad p = i + n_{keys} - n_{queries}

    Args:
        n_queries: How many positions have a query, at least 1.
        n_keys: How many positions have a key, at least ``n_queries``; None: ``n_queries``. The last query is
            at the last key's position, so that with a cache the queries are those of the newest positions.
        window: How many positions a query sees, its own among them (sliding-window attention); None: all.
        device: Device of the mask.

    Returns:
        A lower triangular matrix of True; with a window, a band along the diagonal.

    Raises:
        ValueError: If a number is no integer or below 1, or there are fewer keys than queries.

    Source:
        Vaswani et al. 2017, section 3.2.3; Beltagy, Peters and Cohan 2020, section 3.1, for the window.

    >>> causal_mask(3).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    >>> causal_mask(2, 4).int()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=torch.int32)
    >>> causal_mask(4, window=2).int()
    tensor([[1, 0, 0, 0],
            [1, 1, 0, 0],
            [0, 1, 1, 0],
            [0, 0, 1, 1]], dtype=torch.int32)
    """
    n_queries = check_integer("n_queries", n_queries, least=1)
    n_keys = n_queries if n_keys is None else check_integer("n_keys", n_keys, least=1)
    if n_keys < n_queries:
        raise ValueError(f"a causal mask needs at least as many keys as queries ({n_queries}), got {n_keys}")
    last = n_keys - n_queries  # the column of the diagonal in the first row
    mask = torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(last)
    return mask if window is None else mask.triu(last + 1 - check_integer("window", window, least=1))


def padding_mask(ids: Int64[Tensor, "batch position"], *, pad_id: int) -> Bool[Tensor, "batch 1 position"]:
    r"""Let every query attend to the real tokens only, not to the padding.

    .. math:: \mathrm{mask}_{b1j} = [\, \mathrm{ids}_{bj} \ne \mathrm{pad} \,]

    Args:
        ids: Token ids (batch, position), shorter sequences filled up with ``pad_id``.
        pad_id: The id of the padding token.

    Returns:
        One row per sequence. The axis of length 1 stands for all queries.

    Raises:
        ValueError: If there is no batch: of a single sequence a mask (position, 1) would be taken for one of
            (query, key).

    Source:
        Vaswani et al. 2017 leave it out; every implementation that trains on batches needs it.

    >>> import torch
    >>> padding_mask(torch.tensor([[5, 6, 0], [7, 0, 0]]), pad_id=0).int()
    tensor([[[1, 1, 0]],
    <BLANKLINE>
            [[1, 0, 0]]], dtype=torch.int32)
    """
    if ids.dim() != 2:
        raise ValueError(
            f"ids must be (batch, position), got the shape {tuple(ids.shape)}: one sequence is ids[None]"
        )
    return (ids != pad_id).unsqueeze(1)  # (batch, 1, position)


def left_padding_mask(padding: Int64[Tensor, " batch"], n_keys: int) -> Bool[Tensor, "batch 1 key"]:
    r"""Mask the padding in front of each sequence.

    .. math:: \mathrm{mask}_{b1j} = [\, j \ge \mathrm{padding}_b \,]

    Args:
        padding: How many positions at the front of each sequence are padding.
        n_keys: How many positions there are, padding included.

    >>> left_padding_mask(torch.tensor([0, 2]), 3).int()
    tensor([[[1, 1, 1]],
    <BLANKLINE>
            [[0, 0, 1]]], dtype=torch.int32)
    """
    return (torch.arange(n_keys, device=padding.device) >= padding[:, None])[:, None]


def from_torch_mask(mask: Bool[Tensor, "*shape"] | Float[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
    """Turn a mask of :class:`torch.nn.MultiheadAttention` into ours.

    Args:
        mask: Boolean with True = blocked, or numbers that are added to the scores: 0 and minus infinity.

    Returns:
        The same mask with True = may attend.

    Raises:
        ValueError: If an additive mask holds other numbers; such a bias is not a mask.

    Source:
        The documentation of :class:`torch.nn.MultiheadAttention`, argument ``attn_mask``.

    >>> from_torch_mask(torch.tensor([0.0, float("-inf")]))
    tensor([ True, False])
    """
    if mask.dtype == torch.bool:
        return ~mask
    if not ((mask == 0) | (mask == float("-inf"))).all():
        raise ValueError(
            "an additive mask must hold 0 and -inf only; add other numbers to the scores yourself"
        )
    return mask == 0


def check_mask(mask: Tensor | None, *, shape: tuple[int, ...]) -> None:
    """Check that a mask is boolean and fits the scores.

    Args:
        mask: The mask, or None for no mask at all.
        shape: The shape of the scores, ending in (query, key).

    Raises:
        ValueError: If the mask is not boolean or cannot be broadcast to that shape.
    """
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise ValueError(
            f"a mask must be boolean with True = may attend, got {mask.dtype}; "
            "exformer.nn.masks.from_torch_mask turns the masks of nn.MultiheadAttention into ours"
        )
    if not (mask.dim() >= 2 and is_broadcastable_to(mask, shape)):
        raise ValueError(
            f"a mask must fit scores of the shape {tuple(shape)}, the last two being (query, key); "
            f"any axis may be 1, those before (query, key) may be left out; got the shape {tuple(mask.shape)}"
        )


def is_broadcastable_to(x: Tensor, shape: tuple[int, ...]) -> bool:
    """Return whether a tensor can be broadcast to a shape: each axis, from the last on, is as long or 1."""
    axes = zip(reversed(x.shape), reversed(shape), strict=False)
    return x.dim() <= len(shape) and all(size in (1, wanted) for size, wanted in axes)
