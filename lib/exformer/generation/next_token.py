"""A model as what scores the next token: all positions computed anew, or a key-value cache kept."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from exformer.data.padding import check_batch, count_padding
from exformer.models.decoder_lm import DecoderLM
from exformer.models.encoder_decoder import EncoderDecoder
from exformer.models.kinds import can_translate


def next_logits_of(
    model: Callable[[Int64[Tensor, "batch position"]], Float[Tensor, "batch position vocab_size"]],
    *,
    pad_id: int | None = None,
) -> Callable[[Int64[Tensor, "batch position"]], Float[Tensor, "batch vocab_size"]]:
    """Turn a language model into a function that scores the next token, whatever the left padding.

    The padding is moved after the text, where a model that reads from left to right cannot see it; then the
    scores at the text's own last token are taken. All positions are computed anew each time.

    Args:
        model: A language model, such as :class:`~exformer.models.decoder_lm.DecoderLM`; with dropout, in
            evaluation mode.
        pad_id: What stands in front of the shorter texts; None if all are equally long.

    Returns:
        A function from texts to the scores of the token after each, without gradients.
    """

    @torch.no_grad()
    def next_logits(ids: Tensor) -> Tensor:
        count = count_padding(ids, pad_id=pad_id)[:, None]  # (batch, 1)
        positions = torch.arange(ids.size(1), device=ids.device)
        moved = ids.gather(1, (positions + count) % ids.size(1))  # (batch, position)
        last = ids.size(1) - 1 - count  # (batch, 1)
        return model(moved).take_along_dim(last[..., None], dim=1)[:, 0]

    return next_logits


class Continuation:
    """Score the next token of growing texts.

    It is called as what :func:`next_logits_of` makes is called, with all tokens so far, and gives the same
    scores. Each call must continue the texts of the last one; for other texts make a new one.

    A text that outgrows the ``max_len`` of a language model keeps its last ``max_len // 2`` tokens as its
    context, read anew from position 0 on. So the model never sees positions that it was not trained on, at
    the cost of one pass per ``max_len // 2`` tokens. A model with a window and relative positions reads on.

    Args:
        model: A language model, or an encoder-decoder with ``src``; in evaluation mode.
        pad_id: What is in front of the shorter texts; None if all are equally long.
        src: Source sentences, padded. The translations may have b rows per sentence, as in a beam search:
            rows i · b to (i + 1) · b - 1 translate sentence i.

    Raises:
        ValueError: If the model is in training mode, in which dropout would differ from step to step, or the
            source sentences are missing, or too much.

    Source:
        Shazeer 2019, section 2, "incremental".

    >>> from exformer import load_model
    >>> model, tokenizer, card = load_model("shakespeare-bpe")
    >>> ids = torch.tensor([tokenizer.encode("O Romeo, Romeo, wherefore art")])
    >>> score = Continuation(model)
    >>> tokenizer.decode([score(ids).argmax().item()])
    ' thou'
    """

    def __init__(
        self,
        model: DecoderLM | EncoderDecoder,
        *,
        pad_id: int | None = None,
        src: Int64[Tensor, "batch src"] | None = None,
    ) -> None:
        if model.training:
            raise ValueError("a cache is for generation, without dropout: call model.eval() first")
        if (src is None) == can_translate(model):
            raise ValueError("src is for an encoder-decoder, which needs it; a language model has none")
        self._model, self._pad_id, self._src = model, pad_id, src
        self._cache = model.new_cache()
        self._ids: Tensor | None = None  # what the last call read
        self._padding: Tensor | None = None  # (batch,), ids in front of each text; None if there are none
        self._start = 0  # of the context
        with torch.no_grad():
            self._memory = None if src is None else model.encode(src)

    @torch.no_grad()
    def __call__(self, ids: Int64[Tensor, "batch position"]) -> Float[Tensor, "batch vocab_size"]:
        """Score the token after each text.

        Args:
            ids: Texts: those of the last call, and at least one new token each.

        Raises:
            ValueError: If the texts do not continue the last ones, a translation is too long, there are more
                or fewer rows than the source sentences allow, or a text is only padding.
        """
        known = self._count_known(ids)
        self._ids = ids.clone()  # the caller may write on
        if can_translate(self._model):
            states = self._model.decoder_states(
                ids[:, known:], memory=self._memory, src=self._src, cache=self._cache
            )
        else:
            states = self._language_states(ids, known)
        return self._model.logits(states[:, -1])

    def reorder(self, rows: Int64[Tensor, " batch"]) -> None:
        """Let each row go on from another one, as a beam search does; its source sentence comes along.

        Args:
            rows: From which row of the last call each row of the next one goes on.

        Raises:
            ValueError: If there was no call yet.
        """
        self._cache.reorder(rows)
        self._ids = self._ids[rows]
        self._padding = None if self._padding is None else self._padding[rows]

    def _language_states(self, ids: Tensor, known: int) -> Tensor:
        if known == 0:
            padding = count_padding(ids, pad_id=self._pad_id)
            self._padding = padding if padding.any() else None
        max_len, padding = (
            self._model.config.max_positions,
            0 if self._padding is None else int(self._padding.min()),
        )
        if max_len is not None and ids.size(1) - self._start - padding > max_len:
            kept = max(1, max_len // 2)
            moved, self._start = ids.size(1) - kept - self._start, ids.size(1) - kept
            if self._padding is not None:
                self._padding = (self._padding - moved).clamp(min=0)
            self._cache, known = self._model.new_cache(), self._start
        padding = self._padding if known == self._start else None  # the cache remembers it
        return self._model.states(ids[:, known:], cache=self._cache, padding=padding)

    def _count_known(self, ids: Tensor) -> int:
        """Count the tokens of each text that the last call has read."""
        check_batch(ids)
        if self._ids is None:
            return 0
        n = self._ids.size(1)
        if ids.size(1) <= n or not torch.equal(ids[:, :n], self._ids):
            raise ValueError(
                f"the texts {tuple(ids.shape)} must be the last ones {tuple(self._ids.shape)} and new tokens "
                "behind them: make a new Continuation for other texts, and call reorder where rows change"
            )
        return n
