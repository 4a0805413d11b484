"""Attention heads: cut vectors into pieces, put them together again, share some among several queries."""

from jaxtyping import Float
from torch import Tensor


def split_heads(
    x: Float[Tensor, "batch position d_model"], *, n_heads: int
) -> Float[Tensor, "batch heads position d_head"]:
    r"""Cut each vector into ``n_heads`` equal pieces, and put the heads before the positions.

    .. math:: \mathrm{out}_{bhti} = x_{bt(h \cdot d_{head} + i)}

    Raises:
        ValueError: If ``n_heads`` does not divide the width.

    Source:
        Vaswani et al. 2017, section 3.2.2.

    >>> import torch
    >>> x = torch.tensor([[[0, 1, 2, 3], [4, 5, 6, 7.0]]])  # two positions of width 4
    >>> split_heads(x, n_heads=2).tolist()
    [[[[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [6.0, 7.0]]]]
    """
    if n_heads < 1 or x.size(-1) % n_heads:
        raise ValueError(f"the width ({x.size(-1)}) must be divisible by n_heads ({n_heads})")
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def merge_heads(x: Float[Tensor, "batch heads position d_head"]) -> Float[Tensor, "batch position d_model"]:
    r"""Put the heads side by side again: the inverse of :func:`split_heads`.

    .. math:: \mathrm{out}_{bt(h \cdot d_{head} + i)} = x_{bhti}

    Source:
        Vaswani et al. 2017, section 3.2.2, "Concat".

    >>> import torch
    >>> x = torch.randn(2, 3, 8)
    >>> torch.equal(merge_heads(split_heads(x, n_heads=4)), x)
    True
    """
    return x.transpose(1, 2).flatten(start_dim=2)


def repeat_kv_heads(
    x: Float[Tensor, "batch kv_heads key d_head"], *, n_heads: int
) -> Float[Tensor, "batch heads key d_head"]:
    """Repeat each head of keys or values for the queries of its group.

    >>> import torch
    >>> repeat_kv_heads(torch.tensor([3.0, 5.0]).view(1, 2, 1, 1), n_heads=4).flatten()
    tensor([3., 3., 5., 5.])
    """
    return x.repeat_interleave(n_heads // x.size(1), dim=1)
