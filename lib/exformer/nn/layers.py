"""The two layers of the transformer: attention and a feed-forward network, each with a residual sum."""

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from exformer.nn.dropout import Dropout
from exformer.nn.feedforward import FeedForward
from exformer.nn.multi_head import MultiHeadAttention
from exformer.nn.normalization import LayerNorm


def residual(
    x: Float[Tensor, "batch time d_model"],
    sublayer: Callable[[Tensor], Tensor],
    *,
    norm: nn.Module,
    dropout: nn.Module,
    pre_norm: bool,
) -> Float[Tensor, "batch time d_model"]:
    r"""Add a sublayer's output to its input, and normalize before or after.

    .. math::
        \text{post-norm: } \mathrm{LayerNorm}(x + \mathrm{Sublayer}(x)), \qquad
        \text{pre-norm: } x + \mathrm{Sublayer}(\mathrm{LayerNorm}(x))

    Args:
        x: What comes in.
        sublayer: A function of x, or of the normalized x.
        norm: The normalization.
        dropout: Applied to the sublayer's output.
        pre_norm: Whether to normalize before the sublayer; the paper normalizes after the sum.

    Returns:
        What goes out, of the same shape.

    Source:
        Vaswani et al. 2017, section 3.1; Xiong et al. 2020 for pre-norm.
    """
    if pre_norm:
        return x + dropout(sublayer(norm(x)))
    return norm(x + dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network; with a causal mask, the layer of a decoder-only model.

    Args:
        d_model: Width of the vectors.
        n_heads: Number of attention heads.
        d_ff: Width of the hidden layer of the feed-forward network.
        dropout: Share of each sublayer's output set to zero in training.
        pre_norm: See :func:`residual`.
        activation: See :class:`~exformer.nn.feedforward.FeedForward`.
        positions: Relative positions, see :class:`~exformer.nn.multi_head.MultiHeadAttention`.

    Source:
        Vaswani et al. 2017, section 3.1 and figure 1, left.
    """

    def __init__(
        self,
        d_model: int,
        *,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        pre_norm: bool = False,
        activation: str = "relu",
        positions: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.pre_norm = pre_norm
        self.self_attention = MultiHeadAttention(d_model, n_heads=n_heads, positions=positions)
        self.feed_forward = FeedForward(d_model, d_ff=d_ff, activation=activation)
        self.norm_attention = LayerNorm(d_model)
        self.norm_feed_forward = LayerNorm(d_model)
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch time d_model"], *, mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "batch time d_model"]:
        """Let the positions exchange information, then work on each by itself.

        Args:
            x: One vector a position.
            mask: (query, key) or (batch, query, key); True = may attend.

        Returns:
            One vector a position.
        """
        wrap = {"dropout": self.dropout, "pre_norm": self.pre_norm}
        x = residual(x, lambda h: self.self_attention(h, h, h, mask=mask), norm=self.norm_attention, **wrap)
        return residual(x, self.feed_forward, norm=self.norm_feed_forward, **wrap)

    def attention_weights(
        self, x: Float[Tensor, "batch time d_model"], *, mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "batch heads query key"]:
        """Give the weights that :meth:`forward` uses on the same input.

        Args:
            x, mask: As in :meth:`forward`.

        Returns:
            One matrix a head.
        """
        h = self.norm_attention(x) if self.pre_norm else x
        return self.self_attention.weights(h, h, mask=mask)


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the encoder's output (the memory), then a feed-forward network.

    Args:
        d_model: Width of the vectors.
        n_heads: Number of attention heads.
        d_ff: Width of the hidden layer of the feed-forward network.
        dropout: Share of each sublayer's output set to zero in training.
        pre_norm: See :func:`residual`.
        activation: See :class:`~exformer.nn.feedforward.FeedForward`.
        positions: Relative positions of the self-attention; source and target have no common order.

    Source:
        Vaswani et al. 2017, section 3.1 and figure 1, right.
    """

    def __init__(
        self,
        d_model: int,
        *,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        pre_norm: bool = False,
        activation: str = "relu",
        positions: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.pre_norm = pre_norm
        self.self_attention = MultiHeadAttention(d_model, n_heads=n_heads, positions=positions)
        self.cross_attention = MultiHeadAttention(d_model, n_heads=n_heads)
        self.feed_forward = FeedForward(d_model, d_ff=d_ff, activation=activation)
        self.norm_self = LayerNorm(d_model)
        self.norm_cross = LayerNorm(d_model)
        self.norm_feed_forward = LayerNorm(d_model)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "batch tgt d_model"],
        memory: Float[Tensor, "batch src d_model"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch tgt d_model"]:
        """Look at the own past, then at the memory, then work on each position by itself.

        Args:
            x: One vector a target position.
            memory: One vector a source position, from the encoder.
            mask: Which target positions see which; causal in generation and training.
            memory_mask: Which target positions see which source positions.

        Returns:
            One vector a target position.
        """
        wrap = {"dropout": self.dropout, "pre_norm": self.pre_norm}
        x = residual(x, lambda h: self.self_attention(h, h, h, mask=mask), norm=self.norm_self, **wrap)
        x = residual(
            x,
            lambda h: self.cross_attention(h, memory, memory, mask=memory_mask),
            norm=self.norm_cross,
            **wrap,
        )
        return residual(x, self.feed_forward, norm=self.norm_feed_forward, **wrap)

    def attention_weights(
        self,
        x: Float[Tensor, "batch tgt d_model"],
        memory: Float[Tensor, "batch src d_model"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch heads tgt tgt"], Float[Tensor, "batch heads tgt src"]]:
        """Give the weights that :meth:`forward` uses on the same input, without dropout.

        Args:
            x, memory, mask, memory_mask: As in :meth:`forward`.

        Returns:
            The weights of the self-attention and those of the cross-attention.
        """
        h = self.norm_self(x) if self.pre_norm else x
        self_weights = self.self_attention.weights(h, h, mask=mask)
        wrap = {"dropout": nn.Identity(), "pre_norm": self.pre_norm}
        x = residual(x, lambda h: self.self_attention(h, h, h, mask=mask), norm=self.norm_self, **wrap)
        h = self.norm_cross(x) if self.pre_norm else x
        return self_weights, self.cross_attention.weights(h, memory, mask=memory_mask)
