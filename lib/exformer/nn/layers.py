"""The two layers of the transformer: attention and a feed-forward network, with residual connections."""

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from exformer.nn.cache import KVCache, MemoryCache
from exformer.nn.config import TransformerConfig, check_config
from exformer.nn.dropout import Dropout
from exformer.nn.feedforward import FeedForward
from exformer.nn.mixture_of_experts import MixtureOfExperts
from exformer.nn.multi_head import MultiHeadAttention
from exformer.nn.normalization import LayerNorm, RMSNorm
from exformer.nn.positions.alibi import ALiBi
from exformer.nn.positions.rotary import RotaryPositions


def residual(
    x: Float[Tensor, "batch position d_model"],
    sublayer: Callable[[Tensor], Tensor],
    *,
    norm: nn.Module,
    dropout: nn.Module,
    pre_norm: bool,
) -> Float[Tensor, "batch position d_model"]:
    r"""Add a sublayer's output to its input, and normalize before or after.

    .. math::
        \text{post-norm: } \mathrm{LayerNorm}(x + \mathrm{Sublayer}(x)), \qquad
        \text{pre-norm: } x + \mathrm{Sublayer}(\mathrm{LayerNorm}(x))

    Args:
        x: The input.
        sublayer: A function of x, or of the normalized x.
        norm: The normalization.
        dropout: Applied to the sublayer's output.
        pre_norm: Whether to normalize before the sublayer; the paper normalizes after the sum.

    Source:
        Vaswani et al. 2017, section 3.1; Xiong et al. 2020 for pre-norm.
    """
    if pre_norm:
        return x + dropout(sublayer(norm(x)))
    return norm(x + dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network; with a causal mask, the layer of a decoder-only model.

    Args:
        config: Sizes and choices; a model's own configuration will do.

    Source:
        Vaswani et al. 2017, section 3.1 and figure 1, left.

    >>> import torch
    >>> from exformer.nn.config import TransformerConfig
    >>> layer = EncoderLayer(TransformerConfig(d_model=8, n_heads=2, d_ff=16))
    >>> layer(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        check_config(config, TransformerConfig)
        c = config
        self.pre_norm = c.pre_norm
        self.self_attention = self_attention(c)
        self.feed_forward = feed_forward(c)
        self.norm_attention = normalization(c)
        self.norm_feed_forward = normalization(c)
        self.dropout = Dropout(c.dropout)

    def forward(
        self,
        x: Float[Tensor, "batch position d_model"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
        causal: bool = False,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "batch position d_model"]:
        """Let the positions exchange information, then work on each by itself.

        Args:
            x: One vector per position.
            mask: (query, key) or (batch, query, key); True = may attend.
            causal: Whether each position sees only itself and those before it.
            cache: Keys and values of the positions before those of x.
        """
        x = residual(
            x,
            lambda h: self.self_attention(h, h, h, mask=mask, causal=causal, cache=cache),
            norm=self.norm_attention,
            dropout=self.dropout,
            pre_norm=self.pre_norm,
        )
        return residual(
            x, self.feed_forward, norm=self.norm_feed_forward, dropout=self.dropout, pre_norm=self.pre_norm
        )

    def extra_repr(self) -> str:
        """Return where the layer normalizes, which ``print(model)`` shows."""
        return f"pre_norm={self.pre_norm}"


class DecoderLayer(nn.Module):
    """Self-attention, attention to the encoder's output (the memory), then a feed-forward network.

    Args:
        config: Sizes and choices; a model's own configuration will do. Relative positions are those of the
            self-attention, because source and target have no common order.

    Source:
        Vaswani et al. 2017, section 3.1 and figure 1, right.

    >>> import torch
    >>> from exformer.nn.config import TransformerConfig
    >>> layer = DecoderLayer(TransformerConfig(d_model=8, n_heads=2, d_ff=16))
    >>> layer(torch.zeros(2, 3, 8), torch.zeros(2, 5, 8), causal=True).shape
    torch.Size([2, 3, 8])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        check_config(config, TransformerConfig)
        c = config
        self.pre_norm = c.pre_norm
        self.self_attention = self_attention(c)
        self.cross_attention = multi_head_attention(c)
        self.feed_forward = feed_forward(c)
        self.norm_self = normalization(c)
        self.norm_cross = normalization(c)
        self.norm_feed_forward = normalization(c)
        self.dropout = Dropout(c.dropout)

    def forward(
        self,
        x: Float[Tensor, "batch tgt d_model"],
        memory: Float[Tensor, "... src d_model"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
        causal: bool = False,
        cache: KVCache | None = None,
        memory_cache: MemoryCache | None = None,
    ) -> Float[Tensor, "batch tgt d_model"]:
        """Attend to the target so far, then to the memory, then work on each position by itself.

        Args:
            x: One vector per target position.
            memory: One vector per source position, from the encoder.
            mask: Which target positions see which.
            memory_mask: Which target positions see which source positions.
            causal: Whether each target position sees only itself and those before it.
            cache: Keys and values of the target positions before those of x.
            memory_cache: Keys and values of the memory; rows of x that belong to one source sentence may
                share it.
        """
        x = residual(
            x,
            lambda h: self.self_attention(h, h, h, mask=mask, causal=causal, cache=cache),
            norm=self.norm_self,
            dropout=self.dropout,
            pre_norm=self.pre_norm,
        )
        x = residual(
            x,
            lambda h: self.cross_attention(h, memory, memory, mask=memory_mask, cache=memory_cache),
            norm=self.norm_cross,
            dropout=self.dropout,
            pre_norm=self.pre_norm,
        )
        return residual(
            x, self.feed_forward, norm=self.norm_feed_forward, dropout=self.dropout, pre_norm=self.pre_norm
        )

    def extra_repr(self) -> str:
        """Return where the layer normalizes, which ``print(model)`` shows."""
        return f"pre_norm={self.pre_norm}"


def multi_head_attention(
    config: TransformerConfig, *, positions: nn.Module | None = None, window: int | None = None
) -> MultiHeadAttention:
    """Make an attention of a layer; relative positions and a window are those of self-attention."""
    c = config
    return MultiHeadAttention(
        c.d_model,
        n_heads=c.n_heads,
        n_kv_heads=c.n_kv_heads,
        d_head=c.d_head,
        bias=c.bias if c.qkv_bias is None else c.qkv_bias,
        o_bias=c.bias if c.o_bias is None else c.o_bias,
        dropout=c.attention_dropout,
        qk_norm=c.qk_norm,
        norm_eps=c.norm_eps,
        positions=positions,
        window=window,
        zero_init=c.zero_init,
    )


def self_attention(config: TransformerConfig) -> MultiHeadAttention:
    """Make the self-attention of a layer, with the relative positions that the configuration names."""
    positions: nn.Module | None = None
    if config.positions == "rotary":
        positions = RotaryPositions(base=config.rope_base, scaling=config.rope_scaling)
    elif config.positions == "alibi":
        positions = ALiBi()
    return multi_head_attention(config, positions=positions, window=config.window)


def normalization(config: TransformerConfig) -> nn.Module:
    """Make a normalization of a layer."""
    if config.norm == "rms":
        return RMSNorm(config.d_model, eps=config.norm_eps)
    return LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias)


def feed_forward(config: TransformerConfig) -> FeedForward | MixtureOfExperts:
    """Make the feed-forward network of a layer, or a mixture of such networks."""

    def make_expert() -> FeedForward:
        return FeedForward(
            config.d_model,
            d_ff=config.d_ff,
            activation=config.activation,
            bias=config.bias,
            zero_init=config.zero_init,
        )

    if config.n_experts is None:
        return make_expert()
    return MixtureOfExperts(
        config.d_model,
        n_experts=config.n_experts,
        experts_per_token=config.experts_per_token,
        make_expert=make_expert,
    )
