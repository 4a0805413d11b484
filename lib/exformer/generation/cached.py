"""Models with a key-value cache: the same scores as without it, computed for the newest symbols only."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from exformer.data.padding import check_batch, count_padding
from exformer.models.config import check_length
from exformer.models.decoder_lm import DecoderLM
from exformer.models.encoder_decoder import EncoderDecoder
from exformer.nn.cache import Cache, keys_values
from exformer.nn.cached_layers import decoder_layer_step, encoder_layer_step
from exformer.nn.masks import causal_mask, padding_mask


class CachedLM:
    """Score the next symbol with a language model, and keep the keys and values of each step.

    It is called as what :func:`~exformer.generation.autoregressive.next_logits_of` makes is called, and gives
    the same scores. Each call must go on from the texts of the last one; for other texts make a new one.

    Args:
        model: The model, in evaluation mode.
        pad_id: What stands in front of the shorter texts; None if all are equally long.

    Raises:
        ValueError: If the model is in training mode, in which dropout would differ from step to step.

    Source:
        Shazeer 2019, section 2, "incremental".
    """

    def __init__(self, model: DecoderLM, *, pad_id: int | None = None) -> None:
        _refuse_training(model)
        self._model, self._pad_id = model, pad_id
        self._ids: Tensor | None = None  # what the last call read
        self._count: Tensor | None = None  # how much of each text is padding; None if nothing is
        self._caches = [Cache() for _ in model.layers]
        nothing = model.embedding.table.new_zeros(1, model.config.max_len, model.config.d_model)
        self._codes = model.positions(nothing)[0].detach()  # of each position: what the model adds

    @torch.no_grad()
    def __call__(self, ids: Int64[Tensor, "batch time"]) -> Float[Tensor, "batch vocab_size"]:
        """Score the symbol after each text.

        Args:
            ids: Texts: those of the last call, and at least one new symbol each.

        Returns:
            Logits.

        Raises:
            ValueError: If the texts do not go on from the last ones, one is too long, or one is only padding.
        """
        model, start = self._model, _count_known(ids, self._ids)
        x = model.embedding(ids[:, start:])  # (batch, query, d_model)
        if start == 0:
            count = count_padding(ids, pad_id=self._pad_id)[:, None]
            self._count = count if count.any() else None
        x, seen = x + self._positions(ids, start=start), None
        if self._count is not None:
            seen = (torch.arange(ids.size(1), device=ids.device) >= self._count)[:, None]  # (batch, 1, key)
        mask = _and_causal(seen, n=ids.size(1), start=start, device=ids.device)
        for layer, cache in zip(model.layers, self._caches, strict=True):
            x = encoder_layer_step(layer, x, cache=cache, mask=mask)
        self._ids = ids.clone()  # the caller may write on
        x = model.norm(x[:, -1])
        return model.embedding.logits(x) if model.output is None else model.output(x)

    def reorder(self, rows: Int64[Tensor, " batch"]) -> None:
        """Let each row go on from another one, as a beam search does.

        Args:
            rows: From which row of the last call each row of the next one goes on.

        Raises:
            ValueError: If there was no call yet.
        """
        for cache in self._caches:
            cache.reorder(rows)
        self._ids = self._ids[rows]
        self._count = None if self._count is None else self._count[rows]

    def _positions(self, ids: Tensor, *, start: int) -> Tensor:
        """Give the codes of the new positions, which are counted from behind the padding on."""
        padding, least = (0, 0) if self._count is None else (self._count, int(self._count.min()))
        places = torch.arange(start, ids.size(1), device=ids.device) - padding  # (query,) or (batch, query)
        check_length(ids.size(1) - least, max_len=self._model.config.max_len)
        return self._codes[places.clamp(min=0)]


class CachedDecoder:
    """Score the next symbol of translations; keep the keys and values of the steps and those of the source.

    Args:
        model: The model, in evaluation mode.
        memory: What ``model.encode`` made of ``src``.
        src: Source sentences, padded. The translations have as many rows, or the same multiple for each: a
            beam of b rows a sentence, rows i · b to (i + 1) · b - 1 for sentence i.

    Raises:
        ValueError: If the model is in training mode.

    Source:
        Shazeer 2019, section 2, "incremental".
    """

    @torch.no_grad()
    def __init__(
        self,
        model: EncoderDecoder,
        *,
        memory: Float[Tensor, "batch src d_model"],
        src: Int64[Tensor, "batch src"],
    ) -> None:
        _refuse_training(model)
        self._model, self._src = model, src
        self._memory_mask = _unless_all(padding_mask(src, pad_id=model.config.pad_id))
        self._memory = [keys_values(layer.cross_attention, memory) for layer in model.decoder]
        self._tgt: Tensor | None = None  # what the last call read
        self._caches = [Cache() for _ in model.decoder]

    @torch.no_grad()
    def __call__(self, tgt: Int64[Tensor, "batch tgt"]) -> Float[Tensor, "batch vocab_size"]:
        """Score the symbol after each translation.

        Args:
            tgt: Translations so far: those of the last call, and at least one new symbol each.

        Returns:
            Logits.

        Raises:
            ValueError: If they do not go on from the last ones, are too long, or not as many as the sources.
        """
        model, start = self._model, _count_known(tgt, self._tgt)
        if len(tgt) % len(self._src) or len(tgt) < len(self._src):
            raise ValueError(f"there are {len(self._src)} source sentences and {len(tgt)} target sentences")
        x = model.tgt_positions(model.tgt_embedding(tgt[:, start:]), start=start)
        mask = _unless_all(padding_mask(tgt, pad_id=model.config.pad_id))
        mask = _and_causal(mask, n=tgt.size(1), start=start, device=tgt.device)
        for layer, cache, memory in zip(model.decoder, self._caches, self._memory, strict=True):
            cross = {"memory": memory, "memory_mask": self._memory_mask}
            x = decoder_layer_step(layer, x, cache=cache, mask=mask, **cross)
        self._tgt = tgt.clone()
        x = model.decoder_norm(x[:, -1])
        return model.tgt_embedding.logits(x) if model.output is None else model.output(x)

    def reorder(self, rows: Int64[Tensor, " batch"]) -> None:
        """Let each row go on from another one, as a beam search does; its source sentence comes along.

        Args:
            rows: From which row of the last call each row of the next one goes on.

        Raises:
            ValueError: If there was no call yet.
        """
        for cache in self._caches:
            cache.reorder(rows)
        n_each = len(self._tgt) // len(self._src)
        self._tgt, sources = self._tgt[rows], rows // n_each  # the sentence of each row
        if not torch.equal(sources, torch.arange(len(self._src)).repeat_interleave(n_each).to(rows)):
            # Rows went to other sentences, as those of a beam never do: now each has its own.
            self._src, self._memory = self._src[sources], [kept.take(sources) for kept in self._memory]
            self._memory_mask = None if self._memory_mask is None else self._memory_mask[sources]


def _refuse_training(model: nn.Module) -> None:
    if model.training:
        raise ValueError("a cache is for writing, without dropout: call model.eval() first")


def _count_known(ids: Tensor, known: Tensor | None) -> int:
    """Count the symbols of each text that the last call has read."""
    check_batch(ids)
    if known is None:
        return 0
    n = known.size(1)
    if len(ids) != len(known) or ids.size(1) <= n or not torch.equal(ids[:, :n], known):
        raise ValueError(
            f"the texts {tuple(ids.shape)} must be the last ones {tuple(known.shape)} and new symbols behind "
            "them: make a new cache for other texts, and call reorder where rows change places"
        )
    return n


def _unless_all(mask: Tensor) -> Tensor | None:
    """Give None for a mask that hides nothing: attention without one takes less time."""
    return None if mask.all() else mask


def _and_causal(mask: Tensor | None, *, n: int, start: int, device: torch.device) -> Tensor | None:
    """Hide from new positions what stands behind them: nothing, where there is but one."""
    if n - start == 1:
        return mask
    causal = causal_mask(n, device=device)[start:]
    return causal[None] if mask is None else causal & mask
