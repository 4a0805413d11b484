"""The contenders: our EncoderDecoder, PyTorch's nn.Transformer and Hugging Face's Marian, all of one size.

Where a peer does more than ours by default, the surplus is taken away, so that all do the same work:
PyTorch's dropout of attention weights and hidden units, and its normalizations after post-norm stacks.
Marian's loss is `F.cross_entropy`, which is faster than the label smoother of its trainer.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.setting import BOS, EOS, PAD, Contender, Setting, silence_further_dropouts
from exformer.batching import Seq2SeqBatch
from exformer.loss import cross_entropy
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.positional import sinusoidal_encoding


def exformer(setting: Setting) -> Contender:
    """Build ours."""
    s = setting
    sizes = {
        name: getattr(s, name) for name in ("d_model", "n_heads", "d_ff", "n_layers", "max_len", "dropout")
    }
    config = EncoderDecoderConfig(
        src_vocab_size=s.vocab_size, tgt_vocab_size=s.vocab_size, pad_id=PAD, **sizes
    )
    model = EncoderDecoder(config)

    def loss(batch: Seq2SeqBatch) -> Tensor:
        logits = model(batch.src, batch.tgt_in)
        return cross_entropy(logits, batch.tgt_out, pad_id=PAD, label_smoothing=s.label_smoothing)

    return Contender(model, loss)


class TorchTranslator(nn.Module):
    """What users write around nn.Transformer: embeddings, positions, masks, tied output."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        s = setting
        self.src_embedding = nn.Embedding(s.vocab_size, s.d_model)
        self.tgt_embedding = nn.Embedding(s.vocab_size, s.d_model)
        self.register_buffer("positions", sinusoidal_encoding(s.max_len, d_model=s.d_model), persistent=False)
        self.dropout = nn.Dropout(s.dropout)
        self.transformer = nn.Transformer(
            s.d_model,
            nhead=s.n_heads,
            num_encoder_layers=s.n_layers,
            num_decoder_layers=s.n_layers,
            dim_feedforward=s.d_ff,
            dropout=s.dropout,
            batch_first=True,
        )
        self.transformer.encoder.norm = self.transformer.decoder.norm = None
        silence_further_dropouts(self.transformer)

    def embed(self, ids: Tensor, embedding: nn.Embedding) -> Tensor:
        """Scale the vectors and add the positions."""
        x = embedding(ids) * math.sqrt(embedding.embedding_dim)
        return self.dropout(x + self.positions[: ids.size(1)])

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Score the symbol after each target position."""
        n_positions = tgt.size(1)
        hidden = self.transformer(
            self.embed(src, self.src_embedding),
            self.embed(tgt, self.tgt_embedding),
            tgt_mask=torch.ones(n_positions, n_positions, dtype=torch.bool).triu(1),
            src_key_padding_mask=src == PAD,
            tgt_key_padding_mask=tgt == PAD,
            memory_key_padding_mask=src == PAD,
        )
        return F.linear(hidden, self.tgt_embedding.weight)


def torch_transformer(setting: Setting) -> Contender:
    """Build PyTorch's."""
    model = TorchTranslator(setting)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=setting.label_smoothing)

    def loss(batch: Seq2SeqBatch) -> Tensor:
        logits = model(batch.src, batch.tgt_in)
        return criterion(logits.flatten(end_dim=1), batch.tgt_out.flatten())

    return Contender(model, loss)


def marian(setting: Setting, *, attention: str) -> Contender:
    """Build Hugging Face's Marian with one of its ways to attend."""
    from transformers import MarianConfig, MarianMTModel  # the import takes seconds, some processes need none

    s = setting
    sides = ("encoder", "decoder")
    config = MarianConfig(
        d_model=s.d_model,
        **{f"{side}_layers": s.n_layers for side in sides},
        **{f"{side}_attention_heads": s.n_heads for side in sides},
        **{f"{side}_ffn_dim": s.d_ff for side in sides},
        vocab_size=s.vocab_size,
        decoder_vocab_size=s.vocab_size,
        share_encoder_decoder_embeddings=False,
        scale_embedding=True,
        max_position_embeddings=s.max_len,
        activation_function="relu",
        dropout=s.dropout,
        pad_token_id=PAD,
        eos_token_id=EOS,
        forced_eos_token_id=EOS,
        decoder_start_token_id=BOS,
        attn_implementation=attention,
    )
    model = MarianMTModel(config)

    def loss(batch: Seq2SeqBatch) -> Tensor:
        seen = batch.src != PAD
        out = model(batch.src, attention_mask=seen, decoder_input_ids=batch.tgt_in, use_cache=False)
        logits, targets = out.logits.flatten(end_dim=1), batch.tgt_out.flatten()
        return F.cross_entropy(logits, targets, ignore_index=PAD, label_smoothing=s.label_smoothing)

    return Contender(model, loss)


#: Who runs, ours first. A new peer needs a line here and its names in equal_work.py.
CONTENDERS: dict[str, Callable[[Setting], Contender]] = {
    "exformer": exformer,
    "torch nn.Transformer": torch_transformer,
    "Marian, sdpa": partial(marian, attention="sdpa"),
    "Marian, eager": partial(marian, attention="eager"),
}

#: The sizes by the names that the command line takes: sentences like captions, and like news.
SETTINGS = {
    "encoder-decoder-d128": Setting(d_model=128, n_heads=4, d_ff=512, n_layers=2, batch_size=64),
    "encoder-decoder-d512": Setting(
        d_model=512, n_heads=8, d_ff=2048, n_layers=6, batch_size=8, mean_words=25.0, budget_s=34.0
    ),
}

#: In seconds, to see whether everything works.
QUICK = Setting(d_model=32, n_heads=4, d_ff=64, n_layers=1, vocab_size=200, batch_size=4, budget_s=1.0)
