"""The scores of the next token: with all positions computed anew, or with a key-value cache."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from exformer.data.padding import check_batch, count_padding
from exformer.models.decoder_lm import DecoderLM
from exformer.models.encoder_decoder import EncoderDecoder
from exformer.models.kinds import can_translate

# Keys and values of 2^15 positions take 256 MiB in a model of 4 layers and width 256. 32 texts of 128 tokens
# fit with up to 8 beams.
_CACHED_POSITIONS = 2**15


def texts_at_once(positions: int) -> int:
    """Return how many texts of a length, each with its beams, may be generated at once: 1 or more.

    >>> texts_at_once(positions=8 * 128)  # 8 beams of 128 tokens
    32
    """
    return max(1, _CACHED_POSITIONS // positions)


def next_logits_of(
    model: Callable[[Int64[Tensor, "batch position"]], Float[Tensor, "batch position vocab_size"]],
) -> Callable[[Int64[Tensor, "batch position"]], Float[Tensor, "batch vocab_size"]]:
    """Turn a language model into a function that scores the next token.

    All positions are computed anew each time.

    Args:
        model: A language model, such as :class:`~exformer.models.decoder_lm.DecoderLM`; with dropout, in
            evaluation mode.

    Returns:
        A function from texts of one length to the scores of the token after each, without gradients. Its
        ``reorder`` does nothing, because it keeps nothing of a text.
    """

    @torch.no_grad()
    def next_logits(ids: Tensor) -> Tensor:
        check_batch(ids)
        return model(ids)[:, -1]

    next_logits.reorder = lambda rows: None  # type: ignore[attr-defined]
    return next_logits


class Continuation:
    """Score the next token of growing texts with a key-value cache.

    It is called like the function of :func:`next_logits_of`, with all tokens so far, and returns the same
    scores. Each call must extend the texts of the last one; for other texts make a new ``Continuation``.

    When a text exceeds the ``max_len`` of a language model, its last ``max_len // 2`` tokens are kept as the
    context and computed anew from position 0 on. So the model never sees positions that it was not trained
    on, at the cost of one pass per ``max_len // 2`` tokens. With a window and relative positions there is no
    such limit.

    Args:
        model: A language model, or an encoder-decoder with ``src``; in evaluation mode.
        pad_id: The padding before the shorter texts; None if all are equally long.
        src: Source sentences, padded. The translations may have b rows per sentence, as in a beam search:
            rows i · b to (i + 1) · b - 1 translate sentence i.

    Raises:
        ValueError: If the model is in training mode, in which dropout would differ from step to step, the
            source sentences are missing, or a language model was given some.

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
        self._ids: Tensor | None = None  # of the last call
        self._padding: Tensor | None = None  # (batch,), left padding of each text; None without
        self._start = 0  # of the context
        with torch.no_grad():
            self._memory = None if src is None else model.encode(src)

    @torch.no_grad()
    def __call__(self, ids: Int64[Tensor, "batch position"]) -> Float[Tensor, "batch vocab_size"]:
        """Score the token after each text.

        Args:
            ids: Texts: those of the last call, and at least one new token each.

        Raises:
            ValueError: If the texts do not extend the last ones, a translation is too long, the number of
                rows does not fit the source sentences, or a text is only padding.
        """
        return self._model.logits(self._new_states(ids)[:, -1])

    @torch.no_grad()
    def score_last(
        self, ids: Int64[Tensor, "batch position"], n: int
    ) -> Float[Tensor, "batch tgt vocab_size"]:
        """Score the token after each of the last n positions, in one pass.

        Args:
            ids: As for a call; at least ``n`` tokens of each text are new.
            n: For how many positions.

        Raises:
            ValueError: As a call; or if fewer than ``n`` tokens are new.
        """
        states = self._new_states(ids)
        if not 1 <= n <= states.size(1):
            raise ValueError(
                f"can't score after the last {n} tokens: {states.size(1)} of the texts' {ids.size(1)} are new"
            )
        return self._model.logits(states[:, -n:])

    def truncate(self, length: int) -> None:
        """Forget the tokens of the last call from number ``length`` on, so that the next may have others.

        Args:
            length: How many tokens of each text stay; if there are no more, nothing changes.

        Raises:
            ValueError: As :meth:`~exformer.nn.cache.KVCache.truncate`.
        """
        if self._ids is None or length >= self._ids.size(1):
            return
        if length <= self._start:  # the context has moved on: begin anew
            self._cache, self._ids, self._padding, self._start = self._model.new_cache(), None, None, 0
            return
        self._cache.truncate(length - self._start)
        self._ids = self._ids[:, :length]

    def room_after(self, length: int) -> int:
        """Return how many tokens may follow the first ``length`` before the context moves on."""
        padding = 0 if self._padding is None else int(self._padding.min())
        return max(0, self._start + padding + self._model.config.max_len - length)

    def reorder(self, rows: Int64[Tensor, " batch"]) -> None:
        """Let each row continue from another one, as beam search does; its source sentence comes along.

        Args:
            rows: From which row of the last call each row of the next one continues.

        Raises:
            ValueError: If there was no call yet.
        """
        self._cache.reorder(rows)
        self._ids = self._ids[rows]
        self._padding = None if self._padding is None else self._padding[rows]

    def _new_states(self, ids: Tensor) -> Tensor:
        """Return the vectors of the positions that are not in the cache yet."""
        known = self._count_known(ids)
        self._ids = ids.clone()  # the caller may change its own
        if can_translate(self._model):
            return self._model.decoder_states(
                ids[:, known:], memory=self._memory, src=self._src, cache=self._cache
            )
        return self._language_states(ids, known)

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
        padding = self._padding if known == self._start else None  # later the cache remembers it
        return self._model.states(ids[:, known:], cache=self._cache, padding=padding)

    def _count_known(self, ids: Tensor) -> int:
        """Return how many tokens of each text are in the cache."""
        check_batch(ids)
        if self._ids is None:
            return 0
        n = self._ids.size(1)
        if ids.size(1) <= n or not torch.equal(ids[:, :n], self._ids):
            raise ValueError(
                f"the input {tuple(ids.shape)} must extend the cached prefix {tuple(self._ids.shape)} by new "
                "tokens: make a new Continuation for other texts, and call reorder where rows change"
            )
        return n
