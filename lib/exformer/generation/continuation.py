"""A language model and its key-value cache as what scores the next token, however long the text becomes."""

from jaxtyping import Float, Int64
from torch import Tensor

from exformer.generation.cached import CachedLM
from exformer.models.decoder_lm import DecoderLM


class Continuation:
    """Score the next token of growing texts; a text that outgrows the model's window keeps its last half.

    The second half is then read anew from its own first position on. That costs one pass per half window,
    and the model never reads positions that it was not trained for.
    """

    def __init__(self, model: DecoderLM) -> None:
        self._model, self._start, self._scorer = model, 0, CachedLM(model)

    def __call__(self, ids: Int64[Tensor, "batch time"]) -> Float[Tensor, "batch vocab_size"]:
        """Score the token after each text; the texts are those of the last call, and new tokens."""
        window = self._model.config.max_len
        if ids.size(1) - self._start > window:
            self._start, self._scorer = ids.size(1) - max(1, window // 2), CachedLM(self._model)
        return self._scorer(ids[:, self._start :])

    def reorder(self, rows: Int64[Tensor, " batch"]) -> None:
        """Let each row go on from another one, as a beam search does."""
        self._scorer.reorder(rows)
