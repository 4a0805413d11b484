"""Multi-head attention: several narrow attentions side by side, and the projections around them."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from exformer.nn.attention import check_qkv, scaled_dot_product_attention
from exformer.nn.fast_attention import fast_attention
from exformer.nn.masks import check_mask
from exformer.nn.positions.alibi import biased_attention


def split_heads(
    x: Float[Tensor, "batch time d_model"], *, n_heads: int
) -> Float[Tensor, "batch heads time d_head"]:
    r"""Cut each vector into ``n_heads`` equal pieces, and put the heads before the positions.

    .. math:: \mathrm{out}_{bhti} = x_{bt(h \cdot d_{head} + i)}

    Args:
        x: Vectors of all heads side by side.
        n_heads: How many pieces; must divide the width.

    Returns:
        One sequence a head.

    Raises:
        ValueError: If the width cannot be divided.

    Source:
        Vaswani et al. 2017, section 3.2.2.
    """
    if n_heads < 1 or x.size(-1) % n_heads:
        raise ValueError(f"the width ({x.size(-1)}) must be divisible by n_heads ({n_heads})")
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def merge_heads(x: Float[Tensor, "batch heads time d_head"]) -> Float[Tensor, "batch time d_model"]:
    r"""Put the heads side by side again: the inverse of :func:`split_heads`.

    .. math:: \mathrm{out}_{bt(h \cdot d_{head} + i)} = x_{bhti}

    Args:
        x: One sequence a head.

    Returns:
        Vectors of all heads side by side.

    Source:
        Vaswani et al. 2017, section 3.2.2, "Concat".
    """
    return x.transpose(1, 2).flatten(start_dim=2)


class MultiHeadAttention(nn.Module):
    r"""Several attentions side by side, each on its own projection of the input.

    .. math::
        \mathrm{MultiHead}(Q, K, V) &= \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h)\, W^O \\
        \mathrm{head}_i &= \mathrm{Attention}(Q W_i^Q, K W_i^K, V W_i^V)

    Args:
        d_model: Width of the queries and of the output.
        n_heads: Number of heads; each works on ``d_model / n_heads`` columns.
        d_key: Width of the keys that come in, ``d_model`` if None.
        d_value: Width of the values that come in, ``d_model`` if None.
        bias: Whether the projections add a bias.
        dropout: Share of the weights set to zero in training.
        positions: For relative positions: from the queries and keys of all heads it makes those that are
            compared, and what is added to their scores (heads, query, key), or None; as
            :class:`~exformer.nn.positions.rotary.RotaryPositions` and
            :class:`~exformer.nn.positions.alibi.ALiBi` do.

    Raises:
        ValueError: If ``d_model`` is not divisible by ``n_heads``, or dropout is outside [0, 1).

    Source:
        Vaswani et al. 2017, section 3.2.2.
    """

    def __init__(
        self,
        d_model: int,
        *,
        n_heads: int,
        d_key: int | None = None,
        d_value: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        positions: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if n_heads < 1 or d_model % n_heads:
            raise ValueError(f"d_model ({d_model}) must be divisible by n_heads ({n_heads})")
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout must lie in [0, 1), got {dropout}")
        self.n_heads = n_heads
        self.dropout = dropout
        self.positions = positions
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_key or d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_value or d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        for projection in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(projection.weight)
            if bias:
                nn.init.zeros_(projection.bias)

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        key: Float[Tensor, "batch key d_key"],
        value: Float[Tensor, "batch key d_value"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch query d_model"]:
        """Attend with all heads.

        Args:
            query: What asks.
            key: What is asked.
            value: What is taken.
            mask: (query, key) or (batch, query, key), axes of length 1 allowed; True = may attend.

        Returns:
            One vector a query.

        Raises:
            ValueError: If the inputs or the mask do not fit.
        """
        q = self._heads(query, self.w_q, name="query", n=len(query))
        k = self._heads(key, self.w_k, name="key", n=len(query))
        v = self._heads(value, self.w_v, name="value", n=len(query))
        check_qkv(q, k, v)
        mask, bias = over_heads(mask, q, k), None
        if self.positions is not None:
            q, k, bias = self.positions(q, k)
        dropout = self.dropout if self.training else 0.0
        # The same numbers as the explicit path, without writing the weights to memory.
        heads = fast_attention(q, k, v, mask=mask, bias=bias, dropout=dropout)
        return self.w_o(merge_heads(heads))

    def weights(
        self,
        query: Float[Tensor, "batch query d_model"],
        key: Float[Tensor, "batch key d_key"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch heads query key"]:
        """Compute only the attention weights, to look at them.

        Args:
            query: What asks.
            key: What is asked.
            mask: As in :meth:`forward`.

        Returns:
            One matrix a head, without dropout. Each row sums to 1, or is zero where nothing may be seen.

        Raises:
            ValueError: If the inputs or the mask do not fit.
        """
        q = self._heads(query, self.w_q, name="query", n=len(query))
        k = self._heads(key, self.w_k, name="key", n=len(query))
        mask, bias = over_heads(mask, q, k), None
        if self.positions is not None:
            q, k, bias = self.positions(q, k)
        if bias is not None:
            return biased_attention(q, k, k, bias=bias, mask=mask)[1]
        return scaled_dot_product_attention(q, k, k, mask=mask)[1]

    def _heads(self, x: Tensor, projection: nn.Linear, *, name: str, n: int) -> Tensor:
        """Check an input, project it and split it: (batch, heads, time, d_head)."""
        if x.dim() != 3 or x.size(0) != n or x.size(-1) != projection.in_features:
            raise ValueError(
                f"{name} must be (batch, time, width) with the queries' batch of {n} and a width of "
                f"{projection.in_features}, got the shape {tuple(x.shape)}"
            )
        return split_heads(projection(x), n_heads=self.n_heads)


def over_heads(mask: Tensor | None, q: Tensor, k: Tensor) -> Tensor | None:
    """Check a mask, and give it an axis for the heads.

    Args:
        mask: (query, key) or (batch, query, key), axes of length 1 allowed; or None.
        q: Queries of all heads (batch, heads, query, d_head).
        k: Keys of all heads.

    Returns:
        The mask (batch or 1, 1, query, key), or None.

    Raises:
        ValueError: If it is not boolean, or does not fit.
    """
    check_mask(mask, shape=(q.size(0), q.size(-2), k.size(-2)))
    if mask is None:
        return None
    return mask.unsqueeze(-3) if mask.dim() == 3 else mask[None, None]
