"""One step of a layer with a key-value cache: only the newest positions are computed."""

from jaxtyping import Bool, Float
from torch import Tensor

from exformer.nn.cache import Cache, KeysValues, attend_kept, keys_values
from exformer.nn.layers import DecoderLayer, EncoderLayer, residual
from exformer.nn.multi_head import MultiHeadAttention


def encoder_layer_step(
    layer: EncoderLayer,
    x: Float[Tensor, "batch query d_model"],
    *,
    cache: Cache,
    mask: Bool[Tensor, "#batch #query key"] | None = None,
) -> Float[Tensor, "batch query d_model"]:
    """Do what a layer with a causal mask does, at the newest positions only.

    Args:
        layer: The layer.
        x: One vector for each new position.
        cache: Keys and values of the positions before them; those of the new ones are put behind.
        mask: Which new positions see which of all; True = may attend; None: all see all.

    Returns:
        One vector for each new position.

    Source:
        Shazeer 2019, section 2, "incremental".
    """
    attention, wrap = layer.self_attention, {"dropout": layer.dropout, "pre_norm": layer.pre_norm}
    x = residual(
        x, lambda h: _attend_to_past(attention, h, cache=cache, mask=mask), norm=layer.norm_attention, **wrap
    )
    return residual(x, layer.feed_forward, norm=layer.norm_feed_forward, **wrap)


def decoder_layer_step(
    layer: DecoderLayer,
    x: Float[Tensor, "batch query d_model"],
    *,
    cache: Cache,
    memory: KeysValues,
    mask: Bool[Tensor, "#batch #query key"] | None = None,
    memory_mask: Bool[Tensor, "... 1 src"] | None = None,
) -> Float[Tensor, "batch query d_model"]:
    """Do what a decoder layer does, at the newest positions only.

    Args:
        layer, x, cache, mask: As in :func:`encoder_layer_step`.
        memory: Keys and values of the sources, computed once for a whole text. A source stands once, however
            many rows of x, one after the other, belong to it.
        memory_mask: Which source positions are seen; True = may attend; None: all.

    Returns:
        One vector for each new position.

    Source:
        Shazeer 2019, section 2, "incremental".
    """
    attention, wrap = layer.self_attention, {"dropout": layer.dropout, "pre_norm": layer.pre_norm}
    x = residual(
        x, lambda h: _attend_to_past(attention, h, cache=cache, mask=mask), norm=layer.norm_self, **wrap
    )
    x = residual(
        x,
        lambda h: _attend_to_memory(layer.cross_attention, h, memory, mask=memory_mask),
        norm=layer.norm_cross,
        **wrap,
    )
    return residual(x, layer.feed_forward, norm=layer.norm_feed_forward, **wrap)


def _attend_to_past(attention: MultiHeadAttention, h: Tensor, *, cache: Cache, mask: Tensor | None) -> Tensor:
    """Attend to all positions so far, the new ones among them."""
    return attend_kept(attention, h, cache.append(keys_values(attention, h)), mask=mask)


def _attend_to_memory(
    attention: MultiHeadAttention, h: Tensor, memory: KeysValues, *, mask: Tensor | None
) -> Tensor:
    """Attend to the sources; the rows that belong to one ask together."""
    together = h.reshape(len(memory.k), -1, h.size(-1))  # (sentence, rows * query, d_model)
    return attend_kept(attention, together, memory, mask=mask).view_as(h)
