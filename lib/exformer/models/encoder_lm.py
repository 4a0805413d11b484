"""The encoder alone: a model that reads both sides of every symbol, and fills in those that were hidden."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from exformer.models.config import check_config, check_ids
from exformer.nn.dropout import Dropout
from exformer.nn.embedding import TokenEmbedding
from exformer.nn.layers import EncoderLayer
from exformer.nn.masks import padding_mask
from exformer.nn.normalization import LayerNorm
from exformer.nn.positions.absolute import LearnedPositions


@dataclass(frozen=True)
class EncoderLMConfig:
    """What an :class:`EncoderLM` is made of.

    Args:
        vocab_size: Number of symbols, the one that hides others among them.
        d_model: Width of the vectors.
        n_heads: Attention heads a layer.
        d_ff: Width of the feed-forward networks' hidden layer.
        n_layers: Number of layers.
        max_len: Longest text, in symbols.
        dropout: Share set to zero in training, of the embeddings and of each sublayer's output.
        pad_id: The padding symbol.
        n_segments: How many parts of a text are told apart by a vector of their own; BERT has 2, for pairs of
            sentences. With 0 there are no such vectors.

    Raises:
        ValueError: If a size is below 1, dropout outside [0, 1), or the padding is no symbol.

    Source:
        Devlin et al. 2019, section 3: post-norm, gelu and learned positions.
    """

    vocab_size: int
    d_model: int = 128
    n_heads: int = 4
    d_ff: int = 512
    n_layers: int = 2
    max_len: int = 128
    dropout: float = 0.1
    pad_id: int = 0
    n_segments: int = 0

    def __post_init__(self) -> None:
        """Refuse what no model can be built from."""
        check_config(self)
        if self.n_segments < 0:
            raise ValueError(f"n_segments must be 0 or more, got {self.n_segments}")


class EncoderLM(nn.Module):
    r"""A stack of layers in which every position sees the whole text, with a head that names hidden symbols.

    .. math:: p(w_t \mid \text{text}) = \mathrm{softmax}(E\, \mathrm{LayerNorm}(\mathrm{gelu}(W h_t + c)) + b)

    The sum of the embeddings is normalized at once, so that the root of ``d_model`` would cancel: it is left
    out, and all tables start with entries of one size.

    Args:
        config: The sizes and choices.

    Source:
        Devlin et al. 2019, sections 3 and 3.1; the head and the first normalization as in its published code.
    """

    def __init__(self, config: EncoderLMConfig) -> None:
        super().__init__()
        c = self.config = config
        self.embedding = TokenEmbedding(c.vocab_size, d_model=c.d_model, scale=False)
        self.positions = LearnedPositions(c.d_model, max_len=c.max_len)
        self.segments = TokenEmbedding(c.n_segments, d_model=c.d_model, scale=False) if c.n_segments else None
        for part in (self.embedding, self.positions, self.segments):
            if part is not None:
                nn.init.normal_(part.table, std=0.02)
        self.norm_embedding = LayerNorm(c.d_model)
        layer = {name: getattr(c, name) for name in ("n_heads", "d_ff", "dropout")}
        self.layers = nn.ModuleList(
            EncoderLayer(c.d_model, **layer, activation="gelu") for _ in range(c.n_layers)
        )
        self.transform = nn.Linear(c.d_model, c.d_model)
        self.norm_output = LayerNorm(c.d_model)
        self.output_bias = nn.Parameter(torch.zeros(c.vocab_size))
        self.dropout = Dropout(c.dropout)

    def forward(
        self, ids: Int64[Tensor, "batch time"], *, segments: Int64[Tensor, "batch time"] | None = None
    ) -> Float[Tensor, "batch time vocab_size"]:
        """Score the symbols that could stand at each position, hidden or not.

        Args:
            ids: Texts, padded.
            segments: Which part of its text each symbol belongs to, from 0; all to part 0 if None.

        Returns:
            Logits; at position t they speak of symbol t itself.

        Raises:
            ValueError: If there are no symbols, one or a segment is unknown, or a text is too long.
        """
        return self.logits(self.states(ids, segments=segments))

    def logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab_size"]:
        """Turn vectors of :meth:`states` into scores; those of the hidden positions alone will do.

        Args:
            hidden: Vectors.

        Returns:
            One score a symbol of the vocabulary.
        """
        h = self.norm_output(F.gelu(self.transform(hidden)))
        return self.embedding.logits(h) + self.output_bias

    def states(
        self, ids: Int64[Tensor, "batch time"], *, segments: Int64[Tensor, "batch time"] | None = None
    ) -> Float[Tensor, "batch time d_model"]:
        """Give the vector of each position after the last layer; it knows both sides, and no padding.

        Args:
            ids, segments: As in :meth:`forward`.

        Returns:
            One vector a position.
        """
        x, mask = self._start(ids, segments)
        for layer in self.layers:
            x = layer(x, mask=mask)
        return x

    @torch.no_grad()
    def attention_weights(
        self, ids: Int64[Tensor, "batch time"], *, segments: Int64[Tensor, "batch time"] | None = None
    ) -> tuple[Float[Tensor, "batch heads query key"], ...]:
        """Give the weights of every layer and head.

        Args:
            ids, segments: As in :meth:`forward`.

        Returns:
            One tensor a layer.

        Raises:
            ValueError: If the model is in training mode, in which dropout would change what is seen.
        """
        if self.training:
            raise ValueError("attention weights are read in evaluation mode: call model.eval() first")
        x, mask = self._start(ids, segments)
        found = []
        for layer in self.layers:
            found.append(layer.attention_weights(x, mask=mask))
            x = layer(x, mask=mask)
        return tuple(found)

    def _start(self, ids: Tensor, segments: Tensor | None) -> tuple[Tensor, Tensor]:
        check_ids(ids, max_len=self.config.max_len)
        x = self.positions(self.embedding(ids))
        if self.segments is not None:
            x = x + self._segments(ids, segments)
        elif segments is not None:
            raise ValueError("this model has no segments: build it with n_segments=2, or leave them out")
        return self.dropout(self.norm_embedding(x)), padding_mask(ids, pad_id=self.config.pad_id)

    def _segments(self, ids: Tensor, segments: Tensor | None) -> Tensor:
        segments = torch.zeros_like(ids) if segments is None else segments
        if segments.shape != ids.shape:
            raise ValueError(
                f"the segments have the shape {tuple(segments.shape)}, the texts {tuple(ids.shape)}: "
                "give one segment a symbol"
            )
        low, high, n = segments.min().item(), segments.max().item(), self.config.n_segments
        if low < 0 or high >= n:
            raise ValueError(f"segments must lie from 0 to {n - 1}, got {low} to {high}")
        return self.segments(segments)
