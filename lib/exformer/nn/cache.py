"""The key-value cache: keys and values of earlier positions are kept, and a step computes only new ones."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor


class KVCache:
    """Keys and values of one self-attention, with room for those to come.

    A step writes only its own positions. Where the room is full, it doubles: for n positions fewer than 2n
    are moved, all steps together. Concatenating anew at each step would move about n²/2.

    The keys are kept as they are compared: normalized and rotated. No gradient flows through the cache.

    Source:
        Shazeer 2019, section 2, "incremental".
    """

    def __init__(self) -> None:
        self.length = 0  # positions that are kept
        self._k: Tensor | None = None  # (batch, kv_heads, room, d_head)
        self._v: Tensor | None = None

    @property
    def batch_size(self) -> int | None:
        """How many sequences it was filled with; None if it is empty."""
        return None if self._k is None else len(self._k)

    def append(
        self, k: Float[Tensor, "batch kv_heads key d_head"], v: Float[Tensor, "batch kv_heads key d_head"]
    ) -> tuple[Float[Tensor, "batch kv_heads ... d_head"], Float[Tensor, "batch kv_heads ... d_head"]]:
        """Add the keys and values of new positions, and return those of all positions.

        What is returned are views, valid until the next call.

        Raises:
            ValueError: If there are more or fewer sequences than before.
        """
        if self._k is not None and len(k) != len(self._k):
            raise ValueError(
                f"the cache holds {len(self._k)} sequences, got {len(k)}: make a new cache for another batch"
            )
        start, self.length = self.length, self.length + k.size(2)
        if self._k is None or self._k.size(2) < self.length:
            self._k, self._v = self._grown(self._k, k), self._grown(self._v, v)
        self._k[:, :, start : self.length], self._v[:, :, start : self.length] = k.detach(), v.detach()
        return self._k[:, :, : self.length], self._v[:, :, : self.length]

    def reorder(self, rows: Int64[Tensor, " batch"]) -> None:
        """Let row i continue from row ``rows[i]``, as beam search does.

        Raises:
            ValueError: If the cache is still empty.
        """
        if self._k is None:
            raise ValueError("there is nothing to reorder yet: run the model with this cache first")
        self._k, self._v = self._k.index_select(0, rows), self._v.index_select(0, rows)

    def _grown(self, old: Tensor | None, new: Tensor) -> Tensor:
        """Return a tensor with room for twice as many positions as are needed now."""
        batch, heads, _, width = new.shape
        room = new.new_empty(batch, heads, 2 * self.length, width)
        if old is not None:
            room[:, :, : old.size(2)] = old
        return room


class MemoryCache:
    """Keys and values of one cross-attention: computed from the memory at the first step, then kept.

    One memory can serve several rows of queries: with b rows per source sentence, rows i·b to (i+1)·b - 1
    belong to sentence i, as in a beam search.
    """

    def __init__(self) -> None:
        self.k: Tensor | None = None  # (sentence, kv_heads, src, d_head)
        self.v: Tensor | None = None

    def once(self, project: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Return the keys and values; call ``project`` to compute them the first time only."""
        if self.k is None:
            k, v = project()
            self.k, self.v = k.detach(), v.detach()
        return self.k, self.v

    def select(self, sentences: Int64[Tensor, " batch"]) -> None:
        """Keep the given source sentences, one for each row from now on."""
        self.k, self.v = self.k.index_select(0, sentences), self.v.index_select(0, sentences)


class Cache:
    """All that a model keeps between two steps of generation; ``model.new_cache()`` makes one.

    Args:
        n_layers: Layers of the stack that generates.
        cross: Whether its layers also attend to a memory.
    """

    def __init__(self, n_layers: int, *, cross: bool = False) -> None:
        self.layers = [KVCache() for _ in range(n_layers)]
        self.memories = [MemoryCache() for _ in range(n_layers)] if cross else []
        self.padding: Tensor | None = None  # (batch,), ids of each row that are padding, at its front
        self.memory_mask: Tensor | None = None  # (sentence, 1, src)
        self.tgt_mask: Tensor | None = None  # (batch, 1, key), where a target holds padding

    @property
    def length(self) -> int:
        """How many positions are kept."""
        return self.layers[0].length

    @property
    def batch_size(self) -> int | None:
        """How many sequences it was filled with; None if it is empty."""
        return self.layers[0].batch_size

    def reorder(self, rows: Int64[Tensor, " batch"]) -> None:
        """Let row i of the next step continue from row ``rows[i]`` of the last one, as beam search does.

        Its source sentence comes along.

        Raises:
            ValueError: If the cache is still empty.
        """
        n_rows = self.batch_size
        for layer in self.layers:
            layer.reorder(rows)
        if self.padding is not None:
            self.padding = self.padding[rows]
        if self.tgt_mask is not None:
            self.tgt_mask = self.tgt_mask[rows]
        if self.memories:
            self._reorder_memories(rows, n_rows=n_rows)

    def _reorder_memories(self, rows: Tensor, *, n_rows: int) -> None:
        n_sentences = len(self.memories[0].k)
        n_each = n_rows // n_sentences
        sentences = rows // n_each  # the sentence of each row
        own = torch.arange(n_sentences, device=rows.device).repeat_interleave(n_each)
        if torch.equal(sentences, own):  # as always in a beam search: nothing to move
            return
        for memory in self.memories:
            memory.select(sentences)
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask[sentences]
