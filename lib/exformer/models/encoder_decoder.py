"""The transformer of the paper: an encoder that reads, a decoder that writes."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from exformer.models.config import added_positions, apply_switches, check_config, relative_positions
from exformer.nn.dropout import Dropout
from exformer.nn.embedding import TokenEmbedding
from exformer.nn.layers import DecoderLayer, EncoderLayer
from exformer.nn.masks import causal_mask, padding_mask
from exformer.nn.normalization import LayerNorm


@dataclass(frozen=True)
class EncoderDecoderConfig:
    """What an :class:`EncoderDecoder` is made of.

    Args:
        src_vocab_size: Symbols of the source language.
        tgt_vocab_size: Symbols of the target language.
        d_model: Width of the vectors.
        n_heads: Attention heads a layer.
        d_ff: Width of the feed-forward networks' hidden layer.
        n_layers: Layers of the encoder, and as many of the decoder.
        max_len: Longest sentence, source or target, in symbols.
        dropout: Share set to zero in training, of the embeddings and of each sublayer's output.
        pre_norm: Normalize before each sublayer, and once at the end of each stack.
        activation: Of the feed-forward networks.
        positions: ``"sinusoidal"``, ``"learned"``, ``"rotary"``, ``"alibi"`` or ``"none"``.
        tie_output: Use the target embedding as output layer.
        pad_id: The padding symbol of both languages.
        qk_norm, zero_init: See :func:`~exformer.models.config.apply_switches`.
        share_embeddings: Use the target embedding for the source too; both have one vocabulary.

    Source:
        Vaswani et al. 2017, table 3.
    """

    src_vocab_size: int
    tgt_vocab_size: int
    d_model: int = 128
    n_heads: int = 4
    d_ff: int = 512
    n_layers: int = 2
    max_len: int = 128
    dropout: float = 0.1
    pre_norm: bool = False
    activation: str = "relu"
    positions: str = "sinusoidal"
    tie_output: bool = True
    pad_id: int = 0
    qk_norm: bool = False
    zero_init: bool = False
    share_embeddings: bool = False

    def __post_init__(self) -> None:
        """Refuse what no model can be built from."""
        check_config(self)


@dataclass(frozen=True)
class AttentionWeights:
    """All attention weights of one pass: one tensor (batch, heads, query, key) a layer.

    Args:
        encoder: Self-attention of the encoder: source positions see source positions.
        decoder: Self-attention of the decoder: target positions see earlier ones.
        cross: Target positions see source positions.
    """

    encoder: tuple[Tensor, ...]
    decoder: tuple[Tensor, ...]
    cross: tuple[Tensor, ...]


class EncoderDecoder(nn.Module):
    r"""Encode a source sentence, then score each next symbol of the target.

    .. math:: p(y_t \mid y_{<t}, x) = \mathrm{softmax}(E \mathrm{Decoder}(y_{<t}, \mathrm{Encoder}(x))_{t-1})

    Args:
        config: The sizes and choices.

    Source:
        Vaswani et al. 2017, figure 1.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        c = self.config = config
        layer = {name: getattr(c, name) for name in ("n_heads", "d_ff", "dropout", "pre_norm", "activation")}
        shared = c.share_embeddings
        self.src_embedding = None if shared else TokenEmbedding(c.src_vocab_size, d_model=c.d_model)
        self.tgt_embedding = TokenEmbedding(c.tgt_vocab_size, d_model=c.d_model)
        self.src_positions, self.tgt_positions = added_positions(c), added_positions(c)
        self.encoder, self.decoder = (
            nn.ModuleList(
                kind(c.d_model, **layer, positions=relative_positions(c)) for _ in range(c.n_layers)
            )
            for kind in (EncoderLayer, DecoderLayer)
        )
        apply_switches(c, self.encoder, self.decoder)
        # In a pre-norm stack nothing has normalized the last sum yet.
        self.encoder_norm = LayerNorm(c.d_model) if c.pre_norm else nn.Identity()
        self.decoder_norm = LayerNorm(c.d_model) if c.pre_norm else nn.Identity()
        self.output = None if c.tie_output else nn.Linear(c.d_model, c.tgt_vocab_size, bias=False)
        self.dropout = Dropout(c.dropout)

    def forward(
        self, src: Int64[Tensor, "batch src"], tgt: Int64[Tensor, "batch tgt"]
    ) -> Float[Tensor, "batch tgt vocab_size"]:
        """Score the symbol after each target position, all positions at once.

        Args:
            src: Source sentences, padded.
            tgt: Target sentences so far, from the start symbol on, padded.

        Returns:
            Logits; at position t they speak of symbol t + 1.

        Raises:
            ValueError: If a batch is empty, a sentence too long, an id unknown, or the batches differ.
        """
        return self.decode(tgt, memory=self.encode(src), src=src)

    def encode(self, src: Int64[Tensor, "batch src"]) -> Float[Tensor, "batch src d_model"]:
        """Turn each source symbol into a vector that knows its sentence.

        Args:
            src: Source sentences, padded.

        Returns:
            The memory, one vector a source position.
        """
        mask = padding_mask(src, pad_id=self.config.pad_id)
        x = self.dropout(self.src_positions((self.src_embedding or self.tgt_embedding)(src)))
        for layer in self.encoder:
            x = layer(x, mask=mask)
        return self.encoder_norm(x)

    def decode(
        self,
        tgt: Int64[Tensor, "batch tgt"],
        *,
        memory: Float[Tensor, "batch src d_model"],
        src: Int64[Tensor, "batch src"],
    ) -> Float[Tensor, "batch tgt vocab_size"]:
        """Score the symbol after each target position, given the memory: logits.

        Args:
            tgt: Target sentences so far.
            memory: What :meth:`encode` made of ``src``.
            src: The source sentences, to know their padding.
        """
        x, masks = self._start_decoder(tgt, src=src)
        for layer in self.decoder:
            x = layer(x, memory, **masks)
        x = self.decoder_norm(x)
        return self.tgt_embedding.logits(x) if self.output is None else self.output(x)

    @torch.no_grad()
    def attention_weights(
        self, src: Int64[Tensor, "batch src"], tgt: Int64[Tensor, "batch tgt"]
    ) -> AttentionWeights:
        """Give the weights of every layer and head.

        Args:
            src, tgt: As in :meth:`forward`.

        Returns:
            The weights of the three kinds of attention.

        Raises:
            ValueError: If the model is in training mode, in which dropout would change what is seen.
        """
        if self.training:
            raise ValueError("attention weights are read in evaluation mode: call model.eval() first")
        encoder, own_and_cross = [], []
        mask = padding_mask(src, pad_id=self.config.pad_id)
        x = self.src_positions((self.src_embedding or self.tgt_embedding)(src))
        for layer in self.encoder:
            encoder.append(layer.attention_weights(x, mask=mask))
            x = layer(x, mask=mask)
        memory = self.encoder_norm(x)
        x, masks = self._start_decoder(tgt, src=src)
        for layer in self.decoder:
            own_and_cross.append(layer.attention_weights(x, memory, **masks))
            x = layer(x, memory, **masks)
        return AttentionWeights(tuple(encoder), *zip(*own_and_cross, strict=True))

    def _start_decoder(self, tgt: Tensor, *, src: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        if tgt.size(0) != src.size(0):
            raise ValueError(f"there are {src.size(0)} source sentences and {tgt.size(0)} target sentences")
        pad_id = self.config.pad_id
        x = self.dropout(self.tgt_positions(self.tgt_embedding(tgt)))
        mask = causal_mask(tgt.size(1), device=tgt.device) & padding_mask(tgt, pad_id=pad_id)
        return x, {"mask": mask, "memory_mask": padding_mask(src, pad_id=pad_id)}
