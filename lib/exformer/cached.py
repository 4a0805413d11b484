"""Models with a key-value cache: the same scores as without it, computed for the newest symbols only."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from exformer.autoregressive import count_padding
from exformer.kv_cache import KeysValues, decoder_layer_step, encoder_layer_step, keys_values
from exformer.masks import causal_mask, padding_mask
from exformer.models.decoder_lm import DecoderLM
from exformer.models.encoder_decoder import EncoderDecoder


class CachedLM:
    """Score the next symbol with a language model, and keep the keys and values of each step.

    It is called as what :func:`~exformer.autoregressive.next_logits_of` makes is called, and gives the same
    scores. Each call must go on from the texts of the last one; for other texts make a new one.

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
        self._kept: list[KeysValues | None] = [None] * len(model.layers)

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
        count = count_padding(ids, pad_id=self._pad_id)[:, None]  # (batch, 1)
        longest = int(ids.size(1) - count.min())
        if longest > model.config.max_len:
            raise ValueError(
                f"the text has {longest} symbols and max_len is {model.config.max_len}: "
                "cut it, or build the model with a larger max_len"
            )
        places = torch.arange(ids.size(1), device=ids.device)
        mask = causal_mask(ids.size(1), device=ids.device)[start:] & (places >= count)[:, None]
        # The code of each position, as what the model adds to nothing: positions begin behind the padding.
        codes = model.positions(x.new_zeros(1, longest, x.size(-1)))[0]
        x = x + codes[(places[start:] - count).clamp(min=0)]
        for i, layer in enumerate(model.layers):
            x, self._kept[i] = encoder_layer_step(layer, x, past=self._kept[i], mask=mask)
        self._ids = ids
        x = model.norm(x[:, -1])
        return model.embedding.logits(x) if model.output is None else model.output(x)

    def reorder(self, rows: Int64[Tensor, " batch"]) -> None:
        """Let each row go on from another one, as a beam search does.

        Args:
            rows: From which row of the last call each row of the next one goes on.

        Raises:
            ValueError: If there was no call yet.
        """
        self._kept = _take(self._kept, rows)
        self._ids = self._ids[rows]


class CachedDecoder:
    """Score the next symbol of translations; keep the keys and values of the steps and those of the source.

    Args:
        model: The model, in evaluation mode.
        memory: What ``model.encode`` made of ``src``.
        src: Source sentences, padded: one for each row of the translations.

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
        self._model = model
        self._memory_mask = padding_mask(src, pad_id=model.config.pad_id)
        self._memory = [keys_values(layer.cross_attention, memory) for layer in model.decoder]
        self._tgt: Tensor | None = None  # what the last call read
        self._kept: list[KeysValues | None] = [None] * len(model.decoder)

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
        if len(tgt) != len(self._memory_mask):
            raise ValueError(
                f"there are {len(self._memory_mask)} source sentences and {len(tgt)} target sentences"
            )
        x = model.tgt_positions(model.tgt_embedding(tgt[:, start:]), start=start)
        mask = causal_mask(tgt.size(1), device=tgt.device)[start:]
        mask = mask & padding_mask(tgt, pad_id=model.config.pad_id)  # (batch, query, key)
        for i, layer in enumerate(model.decoder):
            cross = {"memory": self._memory[i], "memory_mask": self._memory_mask}
            x, self._kept[i] = decoder_layer_step(layer, x, past=self._kept[i], mask=mask, **cross)
        self._tgt = tgt
        x = model.decoder_norm(x[:, -1])
        return model.tgt_embedding.logits(x) if model.output is None else model.output(x)

    def reorder(self, rows: Int64[Tensor, " batch"]) -> None:
        """Let each row go on from another one, as a beam search does; its source sentence comes along.

        Args:
            rows: From which row of the last call each row of the next one goes on.

        Raises:
            ValueError: If there was no call yet.
        """
        self._kept, self._memory = _take(self._kept, rows), _take(self._memory, rows)
        self._tgt, self._memory_mask = self._tgt[rows], self._memory_mask[rows]


def _refuse_training(model: nn.Module) -> None:
    if model.training:
        raise ValueError("a cache is for writing, without dropout: call model.eval() first")


def _count_known(ids: Tensor, known: Tensor | None) -> int:
    """Count the symbols of each text that the last call has read."""
    if known is None:
        return 0
    n = known.size(1)
    if len(ids) != len(known) or ids.size(1) <= n or not torch.equal(ids[:, :n], known):
        raise ValueError(
            f"the texts {tuple(ids.shape)} must be the last ones {tuple(known.shape)} and new symbols behind "
            "them: make a new cache for other texts, and call reorder where rows change places"
        )
    return n


def _take(all_kept: list[KeysValues | None], rows: Tensor) -> list[KeysValues | None]:
    if None in all_kept:
        raise ValueError("there is nothing to reorder yet: score the first texts, then reorder their rows")
    return [kept.take(rows) for kept in all_kept]
