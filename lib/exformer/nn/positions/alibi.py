"""ALiBi: attention with linear biases. Scores fall with the distance, faster in some heads than in others."""

import math

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from exformer.check_settings import check_integer
from exformer.nn.positions.rotary import check_same_positions


def alibi_slopes(n_heads: int) -> Float[Tensor, " heads"]:
    r"""Return the slope of each head: the rate at which its scores fall with the distance.

    .. math:: s_h = 2^{-8h/H}, \qquad h = 1, \dots, H

    This is for a number of heads H that is a power of two. For any other, the slopes of the next smaller
    power come first; then follow the 1st, 3rd, 5th, ... slope of twice that power, as many as are needed.

    Raises:
        ValueError: If there is no head.

    Source:
        Press, Smith and Lewis 2022, section 3, and the function get_slopes of their code for other numbers.

    >>> alibi_slopes(2).tolist(), alibi_slopes(3).tolist()
    ([0.0625, 0.00390625], [0.0625, 0.00390625, 0.25])
    """
    check_integer("n_heads", n_heads, least=1)
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

    Source:
        Press, Smith and Lewis 2022, section 3.

    >>> alibi_bias(torch.tensor([2]), torch.arange(3), n_heads=1) * 256  # the slope is 1/256
    tensor([[[-2., -1., -0.]]], dtype=torch.float64)
    """
    distance = (query[:, None] - key).abs()  # (query, key)
    return -alibi_slopes(n_heads).to(query.device)[:, None, None] * distance


class ALiBi(nn.Module):
    """Add a linear bias to the scores of every head; nothing is learned, and there is no largest position.

    Source:
        Press, Smith and Lewis 2022, section 3.
    """

    def forward(
        self,
        q: Float[Tensor, "batch heads position d_head"],
        k: Float[Tensor, "batch kv_heads position d_head"],
        *,
        start: int = 0,
    ) -> tuple[
        Float[Tensor, "batch heads position d_head"],
        Float[Tensor, "batch kv_heads position d_head"],
        Float[Tensor, "heads query key"],
    ]:
        """Compute the bias of the queries of consecutive positions against all keys up to them.

        Args:
            q: Queries.
            k: Keys of the same positions.
            start: How many positions came before, as in a cache.

        Returns:
            Queries, keys, and what is added to the scores of the queries with all ``start + position`` keys.

        Raises:
            ValueError: If queries and keys differ in number.
        """
        check_same_positions(q, k)
        positions = torch.arange(start + k.size(2), device=q.device)
        # Computed in float64 for each distance, not for each pair of positions: (heads, distance).
        of_distance = alibi_bias(positions.new_zeros(1), positions, n_heads=q.size(1)).to(q)[:, 0]
        return q, k, of_distance[:, (positions[start:, None] - positions).abs()]
