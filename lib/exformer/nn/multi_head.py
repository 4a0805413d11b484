"""Multi-head attention: several narrow attentions side by side, and the projections around them."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from exformer.nn.attention import attend
from exformer.nn.attention_heads import merge_heads, split_heads
from exformer.nn.cache import KVCache, MemoryCache
from exformer.nn.initialization import init_linear
from exformer.nn.masks import check_mask
from exformer.nn.normalization import RMSNorm
from exformer.nn.record_attention import recorder


class MultiHeadAttention(nn.Module):
    r"""Several attentions side by side, each on its own projection of the input.

    .. math::
        \mathrm{MultiHead}(Q, K, V) &= \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h)\, W^O \\
        \mathrm{head}_i &= \mathrm{Attention}(Q W_i^Q, K W_i^K, V W_i^V)

    Args:
        d_model: Width of the queries' inputs and of the output.
        n_heads: Number of heads.
        n_kv_heads: Heads of keys and values, each shared by ``n_heads / n_kv_heads`` neighboring heads of
            queries (grouped-query attention); as many as ``n_heads`` if None.
        d_head: Width of a head, ``d_model / n_heads`` if None.
        d_key: Width of the vectors that keys are made from, ``d_model`` if None.
        d_value: Width of the vectors that values are made from, ``d_model`` if None.
        bias: Whether the projections add a bias.
        o_bias: Whether the output projection adds one; as ``bias`` says if None.
        dropout: Fraction of the weights set to zero in training.
        qk_norm: Whether queries and keys are brought to mean square 1 in every head, before positions act on
            them; then no score exceeds :math:`\sqrt{d_{head}}`, as long as the gains are 1.
        norm_eps: ε of these normalizations; that of :class:`~exformer.nn.normalization.RMSNorm` if None.
        positions: For relative positions, :class:`~exformer.nn.positions.rotary.RotaryPositions` or
            :class:`~exformer.nn.positions.alibi.ALiBi`: changes queries and keys, or adds to their scores.
        window: In causal attention, how many positions a query sees, its own among them; None: all.
        zero_init: Whether the output projection starts at zero.

    Raises:
        ValueError: If a number of heads does not divide what it should, or dropout is outside [0, 1).

    Source:
        Vaswani et al. 2017, section 3.2.2; Ainslie et al. 2023 for ``n_kv_heads``; Henry et al. 2020,
        equation 4, with a mean square of 1 and learned gains as in Yang et al. 2025, section 2, for
        ``qk_norm``.

    >>> import torch
    >>> attention = MultiHeadAttention(12, n_heads=3)
    >>> x = torch.ones(2, 5, 12)  # (batch, position, d_model)
    >>> attention(x, x, x, causal=True).shape
    torch.Size([2, 5, 12])
    """

    def __init__(
        self,
        d_model: int,
        *,
        n_heads: int,
        n_kv_heads: int | None = None,
        d_head: int | None = None,
        d_key: int | None = None,
        d_value: int | None = None,
        bias: bool = True,
        o_bias: bool | None = None,
        dropout: float = 0.0,
        qk_norm: bool = False,
        norm_eps: float | None = None,
        positions: nn.Module | None = None,
        window: int | None = None,
        zero_init: bool = False,
    ) -> None:
        super().__init__()
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        if n_heads < 1 or (d_head is None and d_model % n_heads):
            raise ValueError(f"d_model ({d_model}) must be divisible by n_heads ({n_heads})")
        if n_kv_heads < 1 or n_heads % n_kv_heads:
            raise ValueError(f"n_heads ({n_heads}) must be divisible by n_kv_heads ({n_kv_heads})")
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout must lie in [0, 1), got {dropout}")
        d_head = d_model // n_heads if d_head is None else d_head
        self.n_heads, self.n_kv_heads, self.d_head = n_heads, n_kv_heads, d_head
        self.dropout = dropout
        self.norm_q = RMSNorm(d_head, eps=norm_eps) if qk_norm else None
        self.norm_k = RMSNorm(d_head, eps=norm_eps) if qk_norm else None
        self.positions, self.window = positions, window
        self.w_q = nn.Linear(d_model, n_heads * d_head, bias=bias)
        self.w_k = nn.Linear(d_key or d_model, n_kv_heads * d_head, bias=bias)
        self.w_v = nn.Linear(d_value or d_model, n_kv_heads * d_head, bias=bias)
        self.w_o = nn.Linear(n_heads * d_head, d_model, bias=bias if o_bias is None else o_bias)
        init_linear(self.w_q, self.w_k, self.w_v, self.w_o)
        if zero_init:
            nn.init.zeros_(self.w_o.weight)

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        key: Float[Tensor, "... key d_key"],
        value: Float[Tensor, "... key d_value"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
        causal: bool = False,
        cache: KVCache | MemoryCache | None = None,
    ) -> Float[Tensor, "batch query d_model"]:
        """Attend with all heads.

        Args:
            query: Vectors that queries are made from.
            key: Vectors that keys are made from.
            value: Vectors that values are made from.
            mask: (query, key) or (batch, query, key), axes of length 1 allowed; True = may attend.
            causal: Whether each position sees only itself and those before it; combines with a mask.
            cache: A :class:`~exformer.nn.cache.KVCache` in self-attention: query, key and value are those of
                the newest positions, and all positions so far are attended to. In cross-attention a
                :class:`~exformer.nn.cache.MemoryCache`: keys and values are computed once.

        Returns:
            One vector per query.

        Raises:
            ValueError: If the inputs or the mask do not fit, or a memory cache comes with ``causal`` or
                relative positions.
        """
        n_rows, record, bias = len(query), recorder(self), None
        if isinstance(cache, MemoryCache):
            if causal or self.positions is not None:
                raise ValueError(
                    "a MemoryCache is for cross-attention, which has no order of its own, got causal=True or "
                    "relative positions: leave them out, or take no cache"
                )
            k, v = cache.get_or_compute(lambda: self._keys_values(key, value, n=len(key)))
            if n_rows % len(k):
                raise ValueError(
                    f"a memory of {len(k)} sentences serves as many rows of queries, or a multiple, "
                    f"got {n_rows}"
                )
            # Rows that share a memory attend to it together: (sentence, rows * query, d_model).
            query = query.reshape(len(k), -1, query.size(-1))
            q = self._project(query, self.w_q, self.norm_q, n=len(query), name="query")
        else:
            q = self._project(query, self.w_q, self.norm_q, n=n_rows, name="query")
            k, v = self._keys_values(key, value, n=n_rows)
            if self.positions is not None:
                q, k, bias = self.positions(q, k, start=0 if cache is None else cache.length)
            if cache is not None:
                k, v = cache.append(k, v)
                # With a window the cache has let go of the first keys.
                mask, bias = (_drop_columns(each, cache.length - k.size(2)) for each in (mask, bias))
        check_mask(mask, shape=(q.size(0), q.size(2), k.size(2)))
        heads = attend(
            q,
            k,
            v,
            mask=mask[None] if mask is not None and mask.dim() == 2 else mask,
            bias=bias,
            causal=causal,
            window=self.window,
            dropout=self.dropout if self.training else 0.0,
            record=None if record is None else lambda weights: record(_split_rows(weights, n_rows)),
        )
        return self.w_o(merge_heads(heads)).view(n_rows, -1, self.w_o.out_features)

    def extra_repr(self) -> str:
        """Return the sizes that ``print(model)`` shows."""
        sizes = {name: getattr(self, name) for name in ("n_heads", "n_kv_heads", "d_head", "dropout")}
        sizes |= {} if self.window is None else {"window": self.window}
        return ", ".join(f"{name}={size:g}" for name, size in sizes.items())

    def _keys_values(self, key: Tensor, value: Tensor, *, n: int) -> tuple[Tensor, Tensor]:
        if key.size(1) != value.size(1):
            raise ValueError(
                f"there are {key.size(1)} keys and {value.size(1)} values: each key needs one value"
            )
        k = self._project(key, self.w_k, self.norm_k, n=n, name="key")
        return k, self._project(value, self.w_v, None, n=n, name="value")

    def _project(
        self, x: Tensor, projection: nn.Linear, norm: nn.Module | None, *, n: int, name: str
    ) -> Tensor:
        """Check an input, project it, split it into heads, normalize these if asked to."""
        if x.dim() != 3 or x.size(0) != n or x.size(-1) != projection.in_features:
            raise ValueError(
                f"{name} must be (batch, position, width) with the queries' batch of {n} and a width of "
                f"{projection.in_features}, got the shape {tuple(x.shape)}"
            )
        n_heads = projection.out_features // self.d_head
        heads = split_heads(projection(x), n_heads=n_heads)  # (batch, heads, position, d_head)
        return heads if norm is None else norm(heads)


def _split_rows(weights: Tensor, n_rows: int) -> Tensor:
    """Split weights into those of each row, where rows have attended to one memory together."""
    n_sentences, heads, _, n_keys = weights.shape
    rows = weights.view(n_sentences, heads, n_rows // n_sentences, -1, n_keys)
    return rows.transpose(1, 2).reshape(n_rows, heads, -1, n_keys)


def _drop_columns(x: Tensor | None, n: int) -> Tensor | None:
    """Leave out the first n columns, unless there is only one, which stands for all."""
    return x if x is None or x.size(-1) == 1 else x[..., n:]
