"""ALiBi: attention with linear biases. Each head loses interest with distance, each at its own rate."""

import math

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from exformer.nn.attention import check_qkv
from exformer.nn.masks import check_mask, spreads
from exformer.nn.positions.absolute import positions_of


def alibi_slopes(n_heads: int) -> Float[Tensor, " heads"]:
    r"""Give each head the rate at which its scores fall with the distance.

    .. math:: s_h = 2^{-8h/H}, \qquad h = 1, \dots, H

    This is for a number of heads H that is a power of two. For any other, the slopes of the next smaller
    power come first; then follow the 1st, 3rd, 5th, ... slope of twice that power, as many as are needed.

    Args:
        n_heads: Number of heads.

    Returns:
        One slope a head, above 0.

    Raises:
        ValueError: If there is no head.

    Source:
        Press, Smith and Lewis 2022, section 3, and the function get_slopes of their code for other numbers.

    >>> alibi_slopes(2).tolist(), alibi_slopes(3).tolist()
    ([0.0625, 0.00390625], [0.0625, 0.00390625, 0.25])
    """
    if n_heads < 1:
        raise ValueError(f"n_heads must be at least 1, got {n_heads}")
    power = 2 ** int(math.log2(n_heads))
    slopes = [2 ** (-8 * head / power) for head in range(1, power + 1)]
    between = [2 ** (-8 * head / (2 * power)) for head in range(1, 2 * power + 1, 2)]
    return torch.tensor(slopes + between[: n_heads - power], dtype=torch.float64)


def alibi_bias(
    query: Int64[Tensor, " query"], key: Int64[Tensor, " key"], *, n_heads: int
) -> Float[Tensor, "heads query key"]:
    r"""Compute what is added to the scores: minus slope times distance.

    .. math:: B_{hij} = -s_h \, |i - j|

    The paper has causal models only, in which i - j is never negative. Without a causal mask left and right
    look alike: a sequence read backwards gives the outputs backwards.

    Args:
        query: Positions of the queries.
        key: Positions of the keys.
        n_heads: Number of heads.

    Returns:
        One matrix a head.

    Source:
        Press, Smith and Lewis 2022, section 3.
    """
    distance = (query[:, None] - key).abs()  # (query, key)
    return -alibi_slopes(n_heads).to(query.device)[:, None, None] * distance


def biased_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    *,
    bias: Float[Tensor, "..."],
    mask: Bool[Tensor, "..."] | None = None,
) -> tuple[Float[Tensor, "*batch query d_v"], Float[Tensor, "*batch query key"]]:
    r"""Attend as scaled dot-product attention does, with a number added to each score before the softmax.

    .. math:: \mathrm{softmax}\left(\frac{QK^\top}{\sqrt{d_k}} + B\right) V

    Args:
        q: Queries, one row each.
        k: Keys, as wide as the queries.
        v: Values, one for each key.
        bias: :math:`B`, broadcast over the axes before (query, key).
        mask: True = may attend; broadcast as well. What may not be seen is said here, not by a bias of -∞.

    Returns:
        The outputs and the weights; both are zero where a query may attend to no key at all.

    Raises:
        ValueError: If widths or counts do not fit, bias or mask do not, or the mask is not boolean.

    Source:
        Press, Smith and Lewis 2022, section 3.
    """
    check_qkv(q, k, v)
    shape = (*q.shape[:-1], k.size(-2))
    if not spreads(bias, shape=shape):
        raise ValueError(f"a bias must fit scores of the shape {shape}, got the shape {tuple(bias.shape)}")
    check_mask(mask, shape=shape)
    scores = q @ k.mT / math.sqrt(q.size(-1)) + bias.to(q)  # (*batch, query, key)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ v, weights


class ALiBi(nn.Module):
    """Add a linear bias to the scores of every head; nothing is learned, and there is no largest position."""

    def forward(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads key d_head"],
    ) -> tuple[
        Float[Tensor, "batch heads query d_head"],
        Float[Tensor, "batch heads key d_head"],
        Float[Tensor, "heads query key"],
    ]:
        """Leave queries and keys as they are; the last query stands where the last key stands.

        Args:
            q: Queries.
            k: Keys.

        Returns:
            Queries, keys, and what is added to their scores.

        Raises:
            ValueError: If there are more queries than keys.
        """
        query, key = positions_of(q, k)
        return q, k, alibi_bias(query, key, n_heads=q.size(1)).to(q)
