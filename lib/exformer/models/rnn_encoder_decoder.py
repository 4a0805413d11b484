"""Translation by recurrent networks: an encoder, a decoder, and one vector or attention between them."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from exformer.data.padding import check_batch
from exformer.data.translation import Seq2SeqBatch
from exformer.models.check_inputs import check_batch_type
from exformer.models.rnn_lm import recurrent_layers
from exformer.nn.attention import scaled_dot_product_attention
from exformer.nn.config import check_config, check_sizes
from exformer.nn.embedding import TokenEmbedding
from exformer.nn.loss import cross_entropy
from exformer.nn.masks import padding_mask
from exformer.nn.record_attention import recorder


@dataclass(frozen=True)
class RecurrentConfig:
    """What a :class:`RecurrentEncoderDecoder` is made of.

    Args:
        src_vocab_size: Tokens of the source language.
        tgt_vocab_size: Tokens of the target language.
        d_model: Width of the vectors and of the states.
        n_layers: Recurrent layers of the encoder, and as many of the decoder.
        cell: ``"rnn"``, ``"lstm"`` or ``"gru"``.
        attention: Whether the decoder attends to all states of the encoder, or sees only the last.
        max_len: Longest sentence that is translated, in tokens; the network itself has no limit.
        dropout: Fraction of embeddings and states set to zero in training.
        pad_id: The padding token of both languages; it comes after a sentence.

    Raises:
        ValueError: If a size is below 1, dropout outside [0, 1), or the padding not in a vocabulary.
    """

    src_vocab_size: int
    tgt_vocab_size: int
    d_model: int = 128
    n_layers: int = 1
    cell: str = "gru"
    attention: bool = True
    max_len: int = 128
    dropout: float = 0.1
    pad_id: int = 0

    def __post_init__(self) -> None:
        """Check the settings."""
        check_sizes(self)


class RecurrentEncoderDecoder(nn.Module):
    r"""Encode a sentence into states, then decode its translation, with or without attention to these states.

    .. math::
        c_i &= \sum_j \alpha_{ij}\, h^e_j, \qquad
        \alpha_{ij} = \mathrm{softmax}_j\left(h^d_{i-1} \cdot h^e_j\right) \\
        p(y_i \mid y_{<i}, x) &= \mathrm{softmax}\left(E \tanh(W [c_i; h^d_{i-1}])\right)

    The state :math:`h^d_{i-1}` has read the start token and i - 1 words, and predicts word i. The decoder
    starts from the encoder's last state :math:`h^e`: each of its layers, and an LSTM's cell state too.
    Without attention that one vector is all it gets, and :math:`p = \mathrm{softmax}(E\, h^d_{i-1})`.

    Args:
        config: The sizes and choices.

    Raises:
        ValueError: If the cell is unknown.

    Source:
        Sutskever, Vinyals and Le 2014; with attention Luong, Pham and Manning 2015, equations 5 to 8, "dot".
    """

    kind: ClassVar[str] = "encoder-decoder"

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        check_config(config, RecurrentConfig)
        c = self.config = config
        layers = {"cell": c.cell, "n_layers": c.n_layers, "dropout": c.dropout}
        self.src_embedding = TokenEmbedding(c.src_vocab_size, d_model=c.d_model)
        self.tgt_embedding = TokenEmbedding(c.tgt_vocab_size, d_model=c.d_model)
        self.encoder = recurrent_layers(c.d_model, **layers)
        self.decoder = recurrent_layers(c.d_model, **layers)
        self.attention = DotAttention() if c.attention else None
        self.combine = nn.Linear(2 * c.d_model, c.d_model, bias=False) if c.attention else None
        self.dropout = nn.Dropout(c.dropout)

    def forward(
        self, src: Int64[Tensor, "batch src"], tgt: Int64[Tensor, "batch tgt"]
    ) -> Float[Tensor, "batch tgt vocab_size"]:
        """Score the next token after each target position, as ``EncoderDecoder.forward`` does."""
        return self.decode(tgt, memory=self.encode(src), src=src)

    def encode(self, src: Int64[Tensor, "batch src"]) -> Float[Tensor, "batch src d_model"]:
        """Read the source sentences, and return the state after each token: the memory; zero at padding."""
        check_batch(src)
        states, _ = self.encoder(self.dropout(self.src_embedding(src)))
        return states * (src != self.config.pad_id)[..., None]

    def decode(
        self,
        tgt: Int64[Tensor, "batch tgt"],
        *,
        memory: Float[Tensor, "batch src d_model"],
        src: Int64[Tensor, "batch src"],
    ) -> Float[Tensor, "batch tgt vocab_size"]:
        """Score the next token after each target position, as ``EncoderDecoder.decode`` does."""
        h = self._states(tgt, memory=memory, src=src)  # (batch, tgt, d_model)
        if self.attention is not None:
            context = self.attention(h, memory, mask=padding_mask(src, pad_id=self.config.pad_id))
            h = torch.tanh(self.combine(torch.cat((context, h), dim=-1)))
        return self.tgt_embedding.logits(self.dropout(h))

    def loss(self, batch: Seq2SeqBatch, *, label_smoothing: float = 0.0) -> Float[Tensor, ""]:
        """Compute the loss of each target token, as ``EncoderDecoder.loss`` does."""
        check_batch_type(batch, Seq2SeqBatch, model=self, made_by="translation_batches makes them")
        logits = self(batch.src, batch.tgt_in)  # (batch, tgt, vocab_size)
        return cross_entropy(
            logits, batch.tgt_out, pad_id=self.config.pad_id, label_smoothing=label_smoothing
        )

    def _states(self, tgt: Tensor, *, memory: Tensor, src: Tensor) -> Tensor:
        check_batch(tgt)
        if tgt.size(0) != src.size(0):
            raise ValueError(f"there are {src.size(0)} source sentences and {tgt.size(0)} target sentences")
        positions = torch.arange(src.size(1), device=src.device)
        last = ((src != self.config.pad_id) * positions).argmax(dim=1)  # (batch,), 0 in an empty sentence
        start = memory[torch.arange(len(src), device=src.device), last]  # (batch, d_model)
        start = start.expand(self.config.n_layers, -1, -1).contiguous()  # every layer starts from it
        state = (start, start) if self.config.cell == "lstm" else start
        return self.decoder(self.dropout(self.tgt_embedding(tgt)), state)[0]


class DotAttention(nn.Module):
    r"""Luong's attention: the decoder's states are the queries, the encoder's both keys and values.

    .. math:: c_i = \sum_j \alpha_{ij}\, h^e_j, \qquad \alpha_{ij} = \mathrm{softmax}_j(h^d_i \cdot h^e_j)

    Source:
        Luong, Pham and Manning 2015, equations 7 and 8, "dot".
    """

    def forward(
        self,
        h: Float[Tensor, "batch tgt d_model"],
        memory: Float[Tensor, "batch src d_model"],
        *,
        mask: Bool[Tensor, "batch 1 src"],
    ) -> Float[Tensor, "batch tgt d_model"]:
        """Return the context of each target position.

        Args:
            h: States of the decoder.
            memory: States of the encoder.
            mask: Which source positions are no padding.
        """
        # The factor takes back the division by √d_model: these dot products are not scaled.
        context, weights = scaled_dot_product_attention(h * math.sqrt(h.size(-1)), memory, memory, mask=mask)
        if record := recorder(self):
            record(weights)
        return context
