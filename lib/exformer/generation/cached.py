"""Next-token scores with a key-value cache: the same as without it, computed for the newest tokens only."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from exformer.data.padding import check_batch, count_padding
from exformer.models.decoder_lm import DecoderLM
from exformer.models.encoder_decoder import EncoderDecoder


class CachedLM:
    """Score the next token with a language model, and keep the keys and values of each step.

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
        self._model, self._pad_id, self._cache = model, pad_id, model.new_cache()
        self._ids: Tensor | None = None  # what the last call read

    @torch.no_grad()
    def __call__(self, ids: Int64[Tensor, "batch time"]) -> Float[Tensor, "batch vocab_size"]:
        """Score the token after each text.

        Args:
            ids: Texts: those of the last call, and at least one new token each.

        Returns:
            Logits.

        Raises:
            ValueError: If the texts do not go on from the last ones, one is too long, or one is only padding.
        """
        start, padding = _count_known(ids, self._ids), None
        if start == 0:
            count = count_padding(ids, pad_id=self._pad_id)
            padding = count if count.any() else None
        states = self._model.states(ids[:, start:], cache=self._cache, padding=padding)
        self._ids = ids.clone()  # the caller may write on
        return self._model.logits(states[:, -1])

    def reorder(self, rows: Int64[Tensor, " batch"]) -> None:
        """Let each row go on from another one, as a beam search does.

        Args:
            rows: From which row of the last call each row of the next one goes on.

        Raises:
            ValueError: If there was no call yet.
        """
        self._cache.reorder(rows)
        self._ids = self._ids[rows]


class CachedDecoder:
    """Score the next token of translations; keep the keys and values of the steps and those of the source.

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

    def __init__(
        self,
        model: EncoderDecoder,
        *,
        memory: Float[Tensor, "batch src d_model"],
        src: Int64[Tensor, "batch src"],
    ) -> None:
        _refuse_training(model)
        self._model, self._memory, self._src, self._cache = model, memory, src, model.new_cache()
        self._tgt: Tensor | None = None  # what the last call read

    @torch.no_grad()
    def __call__(self, tgt: Int64[Tensor, "batch tgt"]) -> Float[Tensor, "batch vocab_size"]:
        """Score the token after each translation.

        Args:
            tgt: Translations so far: those of the last call, and at least one new token each.

        Returns:
            Logits.

        Raises:
            ValueError: If they do not go on from the last ones, are too long, or not as many as the sources.
        """
        start = _count_known(tgt, self._tgt)
        states = self._model.decoder_states(
            tgt[:, start:], memory=self._memory, src=self._src, cache=self._cache
        )
        self._tgt = tgt.clone()
        return self._model.logits(states[:, -1])

    def reorder(self, rows: Int64[Tensor, " batch"]) -> None:
        """Let each row go on from another one, as a beam search does; its source sentence comes along.

        Args:
            rows: From which row of the last call each row of the next one goes on.

        Raises:
            ValueError: If there was no call yet.
        """
        self._cache.reorder(rows)
        self._tgt = self._tgt[rows]


def _refuse_training(model: DecoderLM | EncoderDecoder) -> None:
    if model.training:
        raise ValueError("a cache is for generation, without dropout: call model.eval() first")


def _count_known(ids: Tensor, known: Tensor | None) -> int:
    """Count the tokens of each text that the last call has read."""
    check_batch(ids)
    if known is None:
        return 0
    n = known.size(1)
    if len(ids) != len(known) or ids.size(1) <= n or not torch.equal(ids[:, :n], known):
        raise ValueError(
            f"the texts {tuple(ids.shape)} must be the last ones {tuple(known.shape)} and new tokens behind "
            "them: make a new cache for other texts, and call reorder where rows change places"
        )
    return n
