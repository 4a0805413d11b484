"""The transformer of the paper: an encoder that reads the source, a decoder that generates the target."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from exformer.data.translation import Seq2SeqBatch
from exformer.models.check_inputs import check_batch_type, check_ids, check_step
from exformer.nn.cache import Cache
from exformer.nn.config import TransformerConfig, check_config, check_no_window
from exformer.nn.dropout import Dropout
from exformer.nn.embedding import TokenEmbedding
from exformer.nn.layers import DecoderLayer, EncoderLayer, normalization
from exformer.nn.loss import cross_entropy
from exformer.nn.masks import padding_mask
from exformer.nn.mixture_of_experts import add_balance_loss, record_routing
from exformer.nn.positions.absolute import added_positions


@dataclass(frozen=True)
class EncoderDecoderConfig(TransformerConfig):
    """What an :class:`EncoderDecoder` is made of; sizes and choices of its layers: see ``TransformerConfig``.

    The encoder and the decoder have ``n_layers`` layers each, and ``max_len`` is the limit of both sides.

    Args:
        src_vocab_size: Tokens of the source language.
        tgt_vocab_size: Tokens of the target language.
        tie_output: Use the target embedding as output layer.
        share_embeddings: Use the target embedding for the source too; both have one vocabulary.
        scale_embedding: Multiply the embeddings by the root of ``d_model``.
        output_bias: Add a bias to the scores of the tokens, as Marian does.
        pad_id: The padding token of both languages.

    Raises:
        ValueError: If no model can be built from it.

    Source:
        Vaswani et al. 2017, table 3.

    >>> from exformer import EncoderDecoder
    >>> config = EncoderDecoderConfig(29, 31, d_model=32, n_heads=4, d_ff=64, n_layers=1)
    >>> model = EncoderDecoder(config)
    >>> config.positions, config.norm, config.d_head
    ('sinusoidal', 'layer', 8)
    """

    src_vocab_size: int
    tgt_vocab_size: int
    _: KW_ONLY
    positions: str = "sinusoidal"
    tie_output: bool = True
    share_embeddings: bool = False
    scale_embedding: bool = True
    output_bias: bool = False
    pad_id: int = 0

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        check_no_window(self)
        if self.share_embeddings and self.src_vocab_size != self.tgt_vocab_size:
            raise ValueError(
                "to share embeddings, source and target must have one vocabulary, got "
                f"{self.src_vocab_size} and {self.tgt_vocab_size} tokens"
            )


class EncoderDecoder(nn.Module):
    r"""Encode a source sentence, then score each next token of the target.

    .. math:: p(y_t \mid y_{<t}, x) = \mathrm{softmax}(E \mathrm{Decoder}(y_{<t}, \mathrm{Encoder}(x))_{t-1})

    Args:
        config: The sizes and choices.

    Source:
        Vaswani et al. 2017, figure 1.

    >>> import torch
    >>> from exformer import EncoderDecoderConfig
    >>> model = EncoderDecoder(EncoderDecoderConfig(13, 11, d_model=8, n_heads=2)).eval()
    >>> src, tgt = torch.tensor([[7, 3, 2]]), torch.tensor([[1, 5, 4, 8]])
    >>> model(src, tgt).shape  # (batch, tgt, vocab_size)
    torch.Size([1, 4, 11])
    """

    kind: ClassVar[str] = "encoder-decoder"

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        check_config(config, EncoderDecoderConfig)
        c = self.config = config
        sizes = {"d_model": c.d_model, "scale": c.scale_embedding}
        self.src_embedding = None if c.share_embeddings else TokenEmbedding(c.src_vocab_size, **sizes)
        self.tgt_embedding = TokenEmbedding(c.tgt_vocab_size, **sizes)
        self.src_positions = added_positions(c.positions, c.d_model, max_len=c.max_len)
        self.tgt_positions = added_positions(c.positions, c.d_model, max_len=c.max_len)
        self.encoder = nn.ModuleList(EncoderLayer(c) for _ in range(c.n_layers))
        self.decoder = nn.ModuleList(DecoderLayer(c) for _ in range(c.n_layers))
        # In a pre-norm stack nothing has normalized the last sum yet.
        self.encoder_norm = normalization(c) if c.pre_norm else nn.Identity()
        self.decoder_norm = normalization(c) if c.pre_norm else nn.Identity()
        self.output = None if c.tie_output else nn.Linear(c.d_model, c.tgt_vocab_size, bias=False)
        self.output_bias = nn.Parameter(torch.zeros(c.tgt_vocab_size)) if c.output_bias else None
        self.dropout = Dropout(c.dropout)

    def forward(
        self, src: Int64[Tensor, "batch src"], tgt: Int64[Tensor, "batch tgt"]
    ) -> Float[Tensor, "batch tgt vocab_size"]:
        """Score the next token after each target position, all positions at once.

        Args:
            src: Source sentences, padded.
            tgt: Target sentences so far, from the start token on, padded.

        Returns:
            Logits; at position t they are the scores of the token at t + 1.

        Raises:
            ValueError: If a batch is empty, a sentence too long, an id unknown, or the batches differ.
        """
        return self.decode(tgt, memory=self.encode(src), src=src)

    def encode(self, src: Int64[Tensor, "batch src"]) -> Float[Tensor, "batch src d_model"]:
        """Turn each source token into a vector that depends on its sentence: the memory.

        Args:
            src: Source sentences, padded.
        """
        check_ids(src, max_len=self.config.max_len)
        mask = padding_mask(src, pad_id=self.config.pad_id)
        x = self.dropout(self.src_positions((self.src_embedding or self.tgt_embedding)(src)))
        for layer in self.encoder:
            x = layer(x, mask=mask)
        return self.encoder_norm(x)

    def decode(
        self,
        tgt: Int64[Tensor, "batch tgt"],
        *,
        memory: Float[Tensor, "... src d_model"],
        src: Int64[Tensor, "... src"],
        cache: Cache | None = None,
    ) -> Float[Tensor, "batch tgt vocab_size"]:
        """Score the next token after each target position, given the memory: logits.

        Args:
            tgt: Target sentences so far; with a cache, what follows the positions that it holds.
            memory: What :meth:`encode` made of ``src``.
            src: The source sentences, to know their padding.
            cache: Made by :meth:`new_cache`, then used for these sentences, in evaluation mode. With it the
                targets may have b rows per source sentence: rows i·b to (i+1)·b - 1 translate sentence i.

        Raises:
            ValueError: If the batches do not fit, a sentence is too long, or the cache is that of another
                batch.
        """
        return self.logits(self.decoder_states(tgt, memory=memory, src=src, cache=cache))

    def logits(self, states: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab_size"]:
        """Turn vectors of the decoder into scores of the next target token."""
        scores = self.tgt_embedding.logits(states) if self.output is None else self.output(states)
        return scores if self.output_bias is None else scores + self.output_bias

    def decoder_states(
        self,
        tgt: Int64[Tensor, "batch tgt"],
        *,
        memory: Float[Tensor, "... src d_model"],
        src: Int64[Tensor, "... src"],
        cache: Cache | None = None,
    ) -> Float[Tensor, "batch tgt d_model"]:
        """Return the vector of each target position after the last layer; arguments as for :meth:`decode`."""
        start = check_step(self, tgt, cache)
        check_ids(tgt, max_len=self.config.max_len, start=start)
        n_tgt, n_src = len(tgt), len(src)
        # A cache that holds something knows its rows, which reorder may have moved from sentence to sentence.
        if start == 0 and n_tgt != n_src and (cache is None or n_tgt % n_src):
            raise ValueError(f"there are {n_src} source sentences and {n_tgt} target sentences")
        x = self.dropout(self.tgt_positions(self.tgt_embedding(tgt), start=start))
        mask = self._target_mask(tgt, start=start)
        if cache is None:
            memory_mask = padding_mask(src, pad_id=self.config.pad_id)
            layer_caches = [(None, None)] * len(self.decoder)
        else:
            mask, memory_mask = self._cached_masks(mask, src, cache)
            layer_caches = zip(cache.layers, cache.memories, strict=True)
        for layer, (layer_cache, memory_cache) in zip(self.decoder, layer_caches, strict=True):
            x = layer(
                x,
                memory,
                mask=mask,
                memory_mask=memory_mask,
                causal=True,
                cache=layer_cache,
                memory_cache=memory_cache,
            )
        return self.decoder_norm(x)

    def loss(self, batch: Seq2SeqBatch, *, label_smoothing: float = 0.0) -> Float[Tensor, ""]:
        r"""Compute the loss of each target token given the source and the true target before it.

        .. math:: L = -\frac1N \sum_t \log p(y_t \mid y_{<t}, x)

        That is teacher forcing: the model never reads its own words. Padding does not count.

        Args:
            batch: Sentences and their translations.
            label_smoothing: As in :func:`~exformer.nn.loss.cross_entropy`.

        Returns:
            The mean over the target tokens, in nats; in training, a mixture of experts adds its weighted
            balance loss.

        Raises:
            ValueError: If the batch is of another type, or there is nothing to predict.

        Source:
            Williams and Zipser 1989, for teacher forcing.
        """
        check_batch_type(batch, Seq2SeqBatch, model=self, made_by="translation_batches makes them")
        pad_id = self.config.pad_id
        with record_routing() as routing:
            logits = self(batch.src, batch.tgt_in)  # (batch, tgt, vocab_size)
        loss = cross_entropy(logits, batch.tgt_out, pad_id=pad_id, label_smoothing=label_smoothing)
        target = self._target_mask(batch.tgt_in, start=0).squeeze(1)  # (batch, tgt)
        counts = [batch.src != pad_id] * len(self.encoder) + [target] * len(self.decoder)
        return add_balance_loss(loss, self, logits=routing, counts=counts)

    def new_cache(self) -> Cache:
        """Return an empty key-value cache for this model's decoder."""
        return Cache(len(self.decoder), cross=True)

    def _target_mask(self, tgt: Tensor, *, start: int) -> Bool[Tensor, "batch 1 tgt"]:
        """Hide padding; a target never begins with it, though Marian's start token is the same."""
        mask = padding_mask(tgt, pad_id=self.config.pad_id)
        return mask if start > 0 else mask | (torch.arange(tgt.size(1), device=tgt.device) == 0)

    def _cached_masks(
        self, tgt_mask: Tensor, src: Tensor, cache: Cache
    ) -> tuple[Bool[Tensor, "batch 1 key"] | None, Bool[Tensor, "... 1 src"] | None]:
        """Update the masks of a cache; None stands for a mask that hides nothing and costs nothing."""
        if cache.length == 0:
            memory_mask = padding_mask(src, pad_id=self.config.pad_id)
            cache.memory_mask = None if memory_mask.all() else memory_mask
        if cache.tgt_mask is not None or not tgt_mask.all():
            earlier = cache.tgt_mask
            if earlier is None:
                earlier = tgt_mask.new_ones(len(tgt_mask), 1, cache.length)
            cache.tgt_mask = torch.cat((earlier, tgt_mask), dim=2)
        return cache.tgt_mask, cache.memory_mask
