"""The key-value cache: what earlier positions computed is kept, so that a step computes only the newest."""

from dataclasses import dataclass

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from exformer.nn.multi_head import MultiHeadAttention, merge_heads, over_heads, split_heads
from exformer.nn.positions.alibi import biased_attention


@dataclass(frozen=True, slots=True)
class KeysValues:
    """Hold the keys and values of an attention for some positions.

    Args:
        k: Keys of all heads, not yet turned by rotary positions.
        v: Values of all heads.
    """

    k: Float[Tensor, "batch heads key d_head"]
    v: Float[Tensor, "batch heads key d_head"]

    def take(self, rows: Int64[Tensor, " batch"]) -> "KeysValues":
        """Take sequences, one of them as often as wanted.

        Args:
            rows: Which ones.

        Returns:
            Their keys and values.
        """
        return KeysValues(self.k.index_select(0, rows), self.v.index_select(0, rows))


class Cache:
    """Keep the keys and values of an attention, with room for those still to come.

    A step writes only its own positions. Where the room is full, it doubles: for n positions fewer than 2n
    are moved, all steps together. Putting the tensors together anew at each step would move about n²/2.
    """

    def __init__(self) -> None:
        self.n = 0  # positions that are kept
        self._room: KeysValues | None = None

    def append(self, new: KeysValues) -> KeysValues:
        """Put new positions behind the old ones.

        Args:
            new: Keys and values of the next positions.

        Returns:
            Those of all positions, to be looked at until the next call.
        """
        start, self.n = self.n, self.n + new.k.size(2)
        if self._room is None or self._room.k.size(2) < self.n:
            self._room = self._more_room(new)
        room = self._room
        room.k[:, :, start : self.n], room.v[:, :, start : self.n] = new.k, new.v
        return KeysValues(room.k[:, :, : self.n], room.v[:, :, : self.n])

    def reorder(self, rows: Int64[Tensor, " batch"]) -> None:
        """Let each row go on from another one, as a beam search does.

        Args:
            rows: From which row each row goes on.

        Raises:
            ValueError: If nothing is kept yet.
        """
        if self._room is None:
            raise ValueError(
                "there is nothing to reorder yet: score the first texts, then reorder their rows"
            )
        self._room = self._room.take(rows)

    def _more_room(self, new: KeysValues) -> KeysValues:
        batch, heads, _, d_head = new.k.shape
        shape = (batch, heads, 2 * self.n, d_head)
        room = KeysValues(new.k.new_empty(shape), new.v.new_empty(shape))
        if self._room is not None:
            n_old = self._room.k.size(2)
            room.k[:, :, :n_old], room.v[:, :, :n_old] = self._room.k, self._room.v
        return room


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
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "batch query d_model"]:
    """Attend to keys and values that are there already; the last query stands where the last key stands.

    It gives what ``attention(x, y, y, mask=mask)`` gives, if ``kept`` was made from y.

    Args:
        attention: The attention.
        x: What asks.
        kept: What is asked.
        mask: (query, key) or (batch, query, key), axes of length 1 allowed; True = may attend; None: every
            query sees all.

    Returns:
        One vector a query, without dropout.

    Raises:
        ValueError: If the mask does not fit.
    """
    q, k, bias = split_heads(attention.w_q(x), n_heads=attention.n_heads), kept.k, None
    mask = over_heads(mask, q, k)
    if attention.positions is not None:
        q, k, bias = attention.positions(q, k)
    if bias is not None:
        heads, _ = biased_attention(q, k, kept.v, bias=bias, mask=mask)
    else:
        heads = F.scaled_dot_product_attention(q, k, kept.v, attn_mask=mask)
    return attention.w_o(merge_heads(heads))
