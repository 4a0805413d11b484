"""The encoder alone: a model that reads both sides of every token, and predicts those that were masked."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from exformer.check_settings import check_integer
from exformer.data.masking import MaskedBatch
from exformer.models.check_inputs import check_batch_type, check_ids
from exformer.nn.config import TransformerConfig, check_config, check_no_window
from exformer.nn.dropout import Dropout
from exformer.nn.embedding import TokenEmbedding
from exformer.nn.layers import EncoderLayer, normalization
from exformer.nn.loss import cross_entropy
from exformer.nn.masks import padding_mask
from exformer.nn.mixture_of_experts import add_balance_loss, record_routing
from exformer.nn.positions.absolute import LearnedPositions, added_positions


@dataclass(frozen=True)
class EncoderLMConfig(TransformerConfig):
    """What an :class:`EncoderLM` is made of; sizes and choices of the layers as in ``TransformerConfig``.

    Args:
        vocab_size: Number of tokens, the mask among them.
        pad_id: The padding token.
        tie_output: Use the embedding as output layer.
        head: Whether there is an output layer at all. A model without one has :meth:`EncoderLM.states` only,
            as those that turn texts into vectors.
        n_segments: How many parts of a text are distinguished by a vector of their own; BERT has 2, for pairs
            of sentences. With 0 there are no such vectors.

    Raises:
        ValueError: If no model can be built from it.

    Source:
        Devlin et al. 2019, section 3: post-norm, gelu and learned positions.

    >>> EncoderLMConfig(103, d_model=32, n_heads=4, n_segments=2).activation
    'gelu'
    """

    vocab_size: int
    _: KW_ONLY
    activation: str = "gelu"
    positions: str = "learned"
    tie_output: bool = True
    pad_id: int = 0
    n_segments: int = 0
    head: bool = True

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        check_no_window(self)
        object.__setattr__(self, "n_segments", check_integer("n_segments", self.n_segments, least=0))


class EncoderLM(nn.Module):
    r"""A stack of layers in which every position sees the whole text, and a head that predicts masked tokens.

    .. math:: p(w_t \mid \text{text}) = \mathrm{softmax}(E\, \mathrm{LayerNorm}(\mathrm{gelu}(W h_t + c)) + b)

    The sum of the embeddings is normalized at once, so that the root of ``d_model`` would cancel: it is left
    out, and all tables start with entries of one size.

    Args:
        config: The sizes and choices.

    Source:
        Devlin et al. 2019, sections 3 and 3.1; the head and the first normalization as in its published code.

    >>> import torch
    >>> from exformer import EncoderLMConfig
    >>> model = EncoderLM(EncoderLMConfig(vocab_size=11, d_model=8, n_heads=2)).eval()
    >>> model(torch.tensor([[3, 1, 4, 0, 0]])).shape  # (batch, position, vocab_size); 0 is padding
    torch.Size([1, 5, 11])
    """

    kind: ClassVar[str] = "masked language model"

    def __init__(self, config: EncoderLMConfig) -> None:
        super().__init__()
        check_config(config, EncoderLMConfig)
        c = self.config = config
        self.embedding = TokenEmbedding(c.vocab_size, d_model=c.d_model, scale=False)
        self.positions = added_positions(c.positions, c.d_model, max_len=c.max_len)
        self.segments = TokenEmbedding(c.n_segments, d_model=c.d_model, scale=False) if c.n_segments else None
        for part in (self.embedding, self.positions, self.segments):
            if isinstance(part, TokenEmbedding | LearnedPositions):
                nn.init.normal_(part.weight, std=0.02)
        self.norm_embedding = normalization(c)
        self.layers = nn.ModuleList(EncoderLayer(c) for _ in range(c.n_layers))
        # In a pre-norm stack nothing has normalized the last sum yet.
        self.norm = normalization(c) if c.pre_norm else nn.Identity()
        if c.head:
            self.transform = nn.Linear(c.d_model, c.d_model, bias=c.bias)
            self.norm_output = normalization(c)
            self.output = None if c.tie_output else nn.Linear(c.d_model, c.vocab_size, bias=False)
            self.output_bias = nn.Parameter(torch.zeros(c.vocab_size)) if c.bias else None
        self.dropout = Dropout(c.dropout)

    def forward(
        self, ids: Int64[Tensor, "batch position"], *, segments: Int64[Tensor, "batch position"] | None = None
    ) -> Float[Tensor, "batch position vocab_size"]:
        """Score the tokens that could be at each position, masked or not.

        Args:
            ids: Texts, padded.
            segments: Which part of its text each token belongs to, from 0; all to part 0 if None.

        Returns:
            Logits; at position t they are scores of the token at t itself.

        Raises:
            ValueError: If there are no tokens, one or a segment is unknown, a text is too long, or the model
                has no head.
        """
        return self.logits(self.states(ids, segments=segments))

    def logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab_size"]:
        """Turn vectors of :meth:`states` into scores; those of the masked positions alone will do.

        Raises:
            ValueError: If the model has no head.
        """
        if not self.config.head:
            raise ValueError("this model has no head and predicts no tokens: ask for model.states(ids)")
        h = self.norm_output(F.gelu(self.transform(hidden)))
        scores = self.embedding.logits(h) if self.output is None else self.output(h)
        return scores if self.output_bias is None else scores + self.output_bias

    def states(
        self, ids: Int64[Tensor, "batch position"], *, segments: Int64[Tensor, "batch position"] | None = None
    ) -> Float[Tensor, "batch position d_model"]:
        """Return the vector of each position after the last layer; it depends on both sides, but no padding.

        Args:
            ids, segments: As in :meth:`forward`.

        Returns:
            One vector per position.
        """
        check_ids(ids, max_len=self.config.max_len)
        x = self.positions(self.embedding(ids))
        if self.segments is not None:
            x = x + self._segments(ids, segments)
        elif segments is not None:
            raise ValueError("this model has no segments: build it with n_segments=2, or leave them out")
        x, mask = self.dropout(self.norm_embedding(x)), padding_mask(ids, pad_id=self.config.pad_id)
        for layer in self.layers:
            x = layer(x, mask=mask)
        return self.norm(x)

    def loss(self, batch: MaskedBatch, *, label_smoothing: float = 0.0) -> Float[Tensor, ""]:
        r"""Compute the loss of each chosen token given the text in which it is masked.

        .. math:: L = -\frac1N \sum_{t\ \mathrm{chosen}} \log p(w_t \mid \text{masked text})

        Args:
            batch: Texts with masked tokens, and the tokens to predict.
            label_smoothing: As in :func:`~exformer.nn.loss.cross_entropy`.

        Returns:
            The mean over the chosen tokens, in nats; in training, a mixture of experts adds its weighted
            balance loss.

        Raises:
            ValueError: If the batch is of another type, or there is nothing to predict.

        Source:
            Devlin et al. 2019, section 3.1, task 1.
        """
        check_batch_type(batch, MaskedBatch, model=self, made_by="mask_tokens makes them")
        pad_id = self.config.pad_id
        with record_routing() as routing:
            logits = self(batch.inputs)
        loss = cross_entropy(logits, batch.targets, pad_id=pad_id, label_smoothing=label_smoothing)
        return add_balance_loss(loss, self, logits=routing, counts=[batch.inputs != pad_id] * len(routing))

    def _segments(self, ids: Tensor, segments: Tensor | None) -> Tensor:
        segments = torch.zeros_like(ids) if segments is None else segments
        if segments.shape != ids.shape:
            raise ValueError(
                f"the segments have the shape {tuple(segments.shape)}, the texts {tuple(ids.shape)}: "
                "give each token one segment"
            )
        low, high, n = segments.min().item(), segments.max().item(), self.config.n_segments
        if low < 0 or high >= n:
            raise ValueError(f"segments must lie from 0 to {n - 1}, got {low} to {high}")
        return self.segments(segments)
