"""The key-value cache: what earlier positions computed is kept, so that a step computes only the newest."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from exformer.alibi import biased_attention
from exformer.attention import scaled_dot_product_attention
from exformer.layers import DecoderLayer, EncoderLayer, residual
from exformer.multi_head import MultiHeadAttention, merge_heads, split_heads


@dataclass(frozen=True, slots=True)
class KeysValues:
    """Hold the keys and values of an attention, for all positions so far.

    Args:
        k: Keys of all heads, not yet turned by rotary positions.
        v: Values of all heads.
    """

    k: Float[Tensor, "batch heads key d_head"]
    v: Float[Tensor, "batch heads key d_head"]

    def join(self, new: "KeysValues") -> "KeysValues":
        """Put new positions behind the old ones.

        Args:
            new: Keys and values of the next positions.

        Returns:
            All of them.
        """
        return KeysValues(torch.cat((self.k, new.k), dim=2), torch.cat((self.v, new.v), dim=2))

    def take(self, rows: Int64[Tensor, " batch"]) -> "KeysValues":
        """Take sequences, one of them as often as wanted.

        Args:
            rows: Which ones.

        Returns:
            Their keys and values.
        """
        return KeysValues(self.k[rows], self.v[rows])


def keys_values(attention: MultiHeadAttention, x: Float[Tensor, "batch key d_model"]) -> KeysValues:
    r"""Compute the keys and values of some positions: what need not be computed twice.

    .. math:: K = x W^K, \qquad V = x W^V

    Args:
        attention: Whose projections are used.
        x: What is attended to.

    Returns:
        Keys and values.

    Source:
        Vaswani et al. 2017, section 3.2.2.
    """
    heads = {"n_heads": attention.n_heads}
    return KeysValues(split_heads(attention.w_k(x), **heads), split_heads(attention.w_v(x), **heads))


def attend_kept(
    attention: MultiHeadAttention,
    x: Float[Tensor, "batch query d_model"],
    kept: KeysValues,
    *,
    mask: Bool[Tensor, "batch query key"] | Bool[Tensor, "batch 1 key"],
) -> Float[Tensor, "batch query d_model"]:
    """Attend to keys and values that are there already; the last query stands where the last key stands.

    It gives what ``attention(x, y, y, mask=mask)`` gives, if ``kept`` was made from y.

    Args:
        attention: The attention.
        x: What asks.
        kept: What is asked.
        mask: True = may attend.

    Returns:
        One vector a query, without dropout.
    """
    q, k, bias = split_heads(attention.w_q(x), n_heads=attention.n_heads), kept.k, None
    if attention.positions is not None:
        q, k, bias = attention.positions(q, k)
    mask = mask[:, None]  # (batch, 1, query, key)
    if bias is None:
        heads, _ = scaled_dot_product_attention(q, k, kept.v, mask=mask)
    else:
        heads, _ = biased_attention(q, k, kept.v, bias=bias, mask=mask)
    return attention.w_o(merge_heads(heads))


def encoder_layer_step(
    layer: EncoderLayer,
    x: Float[Tensor, "batch query d_model"],
    *,
    past: KeysValues | None,
    mask: Bool[Tensor, "batch query key"],
) -> tuple[Float[Tensor, "batch query d_model"], KeysValues]:
    """Do what a layer with a causal mask does, at the newest positions only.

    Args:
        layer: The layer.
        x: One vector for each new position.
        past: Keys and values of the positions before them; None if there are none.
        mask: Which new positions see which of all; True = may attend.

    Returns:
        One vector for each new position, and the keys and values of all.

    Source:
        Shazeer 2019, section 2, "incremental".
    """
    wrap = {"dropout": layer.dropout, "pre_norm": layer.pre_norm}
    new = keys_values(layer.self_attention, layer.norm_attention(x) if layer.pre_norm else x)
    kept = new if past is None else past.join(new)
    x = residual(
        x, lambda h: attend_kept(layer.self_attention, h, kept, mask=mask), norm=layer.norm_attention, **wrap
    )
    return residual(x, layer.feed_forward, norm=layer.norm_feed_forward, **wrap), kept


def decoder_layer_step(
    layer: DecoderLayer,
    x: Float[Tensor, "batch query d_model"],
    *,
    past: KeysValues | None,
    mask: Bool[Tensor, "batch query key"],
    memory: KeysValues,
    memory_mask: Bool[Tensor, "batch 1 src"],
) -> tuple[Float[Tensor, "batch query d_model"], KeysValues]:
    """Do what a decoder layer does, at the newest positions only.

    Args:
        layer, x, past, mask: As in :func:`encoder_layer_step`.
        memory: Keys and values of the source, computed once for a whole text.
        memory_mask: Which source positions are seen; True = may attend.

    Returns:
        One vector for each new position, and the keys and values of the self-attention.

    Source:
        Shazeer 2019, section 2, "incremental".
    """
    wrap = {"dropout": layer.dropout, "pre_norm": layer.pre_norm}
    new = keys_values(layer.self_attention, layer.norm_self(x) if layer.pre_norm else x)
    kept = new if past is None else past.join(new)
    x = residual(
        x, lambda h: attend_kept(layer.self_attention, h, kept, mask=mask), norm=layer.norm_self, **wrap
    )
    x = residual(
        x,
        lambda h: attend_kept(layer.cross_attention, h, memory, mask=memory_mask),
        norm=layer.norm_cross,
        **wrap,
    )
    return residual(x, layer.feed_forward, norm=layer.norm_feed_forward, **wrap), kept
