"""The key-value cache: keys and values of earlier positions are kept, and a step computes only new ones."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor


class KVCache:
    """Keys and values of one self-attention, with room for those to come.

    A step writes only its own positions. Where the room is full, it doubles: for n positions fewer than 2n
    are moved, all steps together. Concatenating anew at each step would move about n²/2.

    With a window only the positions that a later query sees are kept, so that the room is at most twice the
    window, however long the text becomes.

    The keys are kept as they are compared: normalized and rotated. No gradient flows through the cache.

    Args:
        window: How many positions a query sees, its own among them; None: all.

    Source:
        Shazeer 2019, section 2, "incremental"; Jiang et al. 2023, section 2, for the window.

    >>> cache = KVCache(window=3)
    >>> for length in (5, 1):
    ...     k, v = cache.append(torch.zeros(1, 2, length, 4), torch.zeros(1, 2, length, 4))
    >>> cache.length, cache.n_kept, k.shape
    (6, 2, torch.Size([1, 2, 3, 4]))
    """

    def __init__(self, *, window: int | None = None) -> None:
        self.window = window
        self.length = 0  # positions that were appended
        self._k: Tensor | None = None  # (batch, kv_heads, room, d_head)
        self._v: Tensor | None = None
        self._start = self._end = 0  # of the positions in the room that are kept

    @property
    def n_kept(self) -> int:
        """How many positions are kept; with a window, fewer than it has."""
        return self._end - self._start

    @property
    def batch_size(self) -> int | None:
        """How many sequences it was filled with; None if it is empty."""
        return None if self._k is None else len(self._k)

    def append(
        self, k: Float[Tensor, "batch kv_heads key d_head"], v: Float[Tensor, "batch kv_heads key d_head"]
    ) -> tuple[Float[Tensor, "batch kv_heads ... d_head"], Float[Tensor, "batch kv_heads ... d_head"]]:
        """Add the keys and values of new positions, and return those of all positions that are kept.

        With a window these are the ones that a new query sees: the new ones and up to ``window - 1`` before.
        What is returned are views, valid until the next call.

        Raises:
            ValueError: If there are more or fewer sequences than before.
        """
        if self._k is not None and len(k) != len(self._k):
            raise ValueError(
                f"the cache holds {len(self._k)} sequences, got {len(k)}: make a new cache for another batch"
            )
        n_new = k.size(2)
        if self._k is None or self._k.size(2) < self._end + n_new:
            room = 2 * (self.n_kept + n_new)
            self._k, self._v = self._resize(self._k, k, room), self._resize(self._v, v, room)
            self._start, self._end = 0, self.n_kept
        first, self._end = self._end, self._end + n_new
        self._k[:, :, first : self._end], self._v[:, :, first : self._end] = k.detach(), v.detach()
        self.length += n_new
        k, v = (x[:, :, self._start : self._end] for x in (self._k, self._v))
        self._forget()
        return k, v

    def reorder(self, rows: Int64[Tensor, " batch"]) -> None:
        """Let row i continue from row ``rows[i]``, as beam search does.

        Raises:
            ValueError: If the cache is still empty.
        """
        if self._k is None:
            raise ValueError("there is nothing to reorder yet: run the model with this cache first")
        self._k, self._v = self._k.index_select(0, rows), self._v.index_select(0, rows)

    def truncate(self, length: int) -> None:
        """Forget the positions from ``length`` on, as if they had never been appended.

        Raises:
            ValueError: If there are not as many, or the window has let go of positions that the next query
                would see.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"can't truncate to {length} positions: the cache holds {self.length}")
        n_kept = self.n_kept - (self.length - length)
        if self.window is not None and n_kept < min(length, self.window - 1):
            raise ValueError(
                f"can't go back from {self.length} positions to {length}: with a window of {self.window} the "
                "cache no longer has what a query there sees, so make a new cache"
            )
        self.length, self._end = length, self._start + n_kept

    def _forget(self) -> None:
        """Let go of the positions that no later query sees."""
        if self.window is None:
            return
        self._start = max(self._start, self._end - self.window + 1)
        if self._k.size(2) > 2 * self.window:  # after a long text
            self._k, self._v = (x[:, :, self._start : self._end].clone() for x in (self._k, self._v))
            self._start, self._end = 0, self.n_kept

    def _resize(self, old: Tensor | None, new: Tensor, room: int) -> Tensor:
        """Move the positions that are kept to the front of a tensor with more room."""
        batch, heads, _, width = new.shape
        resized = new.new_empty(batch, heads, room, width)
        if old is not None:
            resized[:, :, : self.n_kept] = old[:, :, self._start : self._end]
        return resized


class MemoryCache:
    """Keys and values of one cross-attention: computed from the memory at the first step, then kept.

    One memory can serve several rows of queries: with b rows per source sentence, rows i·b to (i+1)·b - 1
    belong to sentence i, as in a beam search.
    """

    def __init__(self) -> None:
        self.k: Tensor | None = None  # (sentence, kv_heads, src, d_head)
        self.v: Tensor | None = None

    def get_or_compute(self, project: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
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
        window: How many positions a query sees, its own among them; None: all.
    """

    def __init__(self, n_layers: int, *, cross: bool = False, window: int | None = None) -> None:
        self.layers = [KVCache(window=window) for _ in range(n_layers)]
        self.memories = [MemoryCache() for _ in range(n_layers)] if cross else []
        self.padding: Tensor | None = None  # (batch,), ids of each row that are padding, at its front
        self.memory_mask: Tensor | None = None  # (sentence, 1, src)
        self.tgt_mask: Tensor | None = None  # (batch, 1, key), where a target holds padding

    @property
    def length(self) -> int:
        """How many positions the model has read."""
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

    def truncate(self, length: int) -> None:
        """Forget what the model has read from position ``length`` on.

        Raises:
            ValueError: As :meth:`KVCache.truncate`.
        """
        for layer in self.layers:
            layer.truncate(length)
        if self.tgt_mask is not None:
            self.tgt_mask = self.tgt_mask[..., :length]

    def _reorder_memories(self, rows: Tensor, *, n_rows: int) -> None:
        n_sentences = len(self.memories[0].k)
        n_each = n_rows // n_sentences
        sentences = rows // n_each  # the sentence of each row
        first = sentences[::n_each]
        if torch.equal(first.repeat_interleave(n_each), sentences):  # still n_each rows share a memory
            sentences = first
            if torch.equal(sentences, torch.arange(n_sentences, device=rows.device)):  # nothing to move
                return
        for memory in self.memories:
            memory.select(sentences)
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask[sentences]
