"""The contenders, all of one size: our EncoderDecoder, nn.Transformer, Hugging Face's Marian, x-transformers.

Where a peer does more than ours by default, the surplus is taken away, so that all do the same work:
PyTorch's dropout of attention weights and hidden units, and its normalizations after post-norm stacks.
Marian's loss is `F.cross_entropy`, which is faster than the label smoother of its trainer.
Where a peer does less, the lack is made up for: x-transformers gets biases, see `XTranslator`.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.setting import BOS, EOS, PAD, Contender, Setting, silence_further_dropouts
from exformer.data.translation import Seq2SeqBatch
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.nn.loss import cross_entropy
from exformer.nn.positions.absolute import sinusoidal_encoding


def exformer(setting: Setting) -> Contender:
    """Build our model."""
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
        """Scale the embeddings and add the positions."""
        x = embedding(ids) * math.sqrt(embedding.embedding_dim)
        return self.dropout(x + self.positions[: ids.size(1)])

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Return the logits of the token after each target position."""
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
    """Build PyTorch's model."""
    model = TorchTranslator(setting)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=setting.label_smoothing)

    def loss(batch: Seq2SeqBatch) -> Tensor:
        logits = model(batch.src, batch.tgt_in)
        return criterion(logits.flatten(end_dim=1), batch.tgt_out.flatten())

    return Contender(model, loss)


def marian(setting: Setting, *, attention: str) -> Contender:
    """Build Hugging Face's Marian with one of its implementations of attention."""
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


class XTranslator(nn.Module):
    """What users write around x-transformers' stacks: its two wrappers, positions, masks, tied output.

    Its XTransformer makes the same two wrappers, but takes no positions and smooths no labels. The stacks
    attend by their fused path. Some things are changed, so that the function and the work are ours:

    - Its attention has no biases, and its LayerNorm none either: `add_biases` gives them both.
    - A tied output of its own multiplies all logits by a number, which takes 14 % of a step of the smaller
      size. So its untied output layer has the table as its weight, and the embeddings are scaled, as in ours.
    - Its sinusoidal positions are computed anew in each step, and a learned number scales them: it adds our
      table instead.
    - Its ``mask`` would hide the padding and also set to zero what attention gives there, which nobody reads;
      ``self_attn_kv_mask`` only hides it. The causal mask hides the target's padding from all that counts;
      XTransformer and Marian hand their decoders no other one either.

    Args:
        setting: The sizes.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        from x_transformers import Decoder, Encoder, TransformerWrapper  # takes seconds, as Marian does

        s = setting
        layers = {
            "dim": s.d_model,
            "depth": s.n_layers,
            "heads": s.n_heads,
            "attn_dim_head": s.d_model // s.n_heads,  # it would be 64
            "attn_flash": True,
            "attn_sublayer_dropout": s.dropout,
            "ff_mult": s.d_ff / s.d_model,
            "ff_custom_activation": nn.ReLU(),
            "ff_sublayer_dropout": s.dropout,
            "pre_norm": False,
        }
        sizes = {"num_tokens": s.vocab_size, "max_seq_len": s.max_len, "emb_dropout": s.dropout}
        embed = {**sizes, "use_abs_pos_emb": False}  # it would learn them
        self.encoder = TransformerWrapper(attn_layers=Encoder(**layers), return_only_embed=True, **embed)
        self.decoder = TransformerWrapper(attn_layers=Decoder(cross_attend=True, **layers), **embed)
        self.decoder.to_logits.weight = self.decoder.token_emb.emb.weight
        self.register_buffer("positions", sinusoidal_encoding(s.max_len, d_model=s.d_model), persistent=False)
        self.root = math.sqrt(s.d_model)
        add_biases(self)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Return the logits of the token after each target position."""
        seen = src != PAD
        memory = self.encoder(src, self_attn_kv_mask=seen, **self.embedding_of(src))
        return self.decoder(tgt, context=memory, context_mask=seen, **self.embedding_of(tgt))

    def embedding_of(self, ids: Tensor) -> dict[str, Any]:
        """Let a wrapper scale the embeddings and add these positions."""
        return {"transform_token_embeds": lambda x: x * self.root, "pos": self.positions[: ids.size(1)]}


def add_biases(model: nn.Module) -> None:
    """Add the biases that x-transformers' attention and normalizations lack, in place.

    Its own code calls the new layers as it called the old ones, and a step takes as long as before: what
    biases cost, `nn.LayerNorm` saves, which scales while it normalizes and not in a pass of its own.

    Args:
        model: Has parts of x-transformers.
    """
    from x_transformers.x_transformers import Attention, LayerNorm

    for name, module in list(model.named_modules()):
        if isinstance(module, LayerNorm):
            model.set_submodule(name, nn.LayerNorm(module.gamma.numel()))
        elif isinstance(module, Attention):
            for part in ("to_q", "to_k", "to_v", "to_out"):
                linear = getattr(module, part)
                setattr(module, part, nn.Linear(linear.in_features, linear.out_features))


def x_transformers(setting: Setting) -> Contender:
    """Build x-transformers' model."""
    model = XTranslator(setting)

    def loss(batch: Seq2SeqBatch) -> Tensor:
        logits, targets = model(batch.src, batch.tgt_in).flatten(end_dim=1), batch.tgt_out.flatten()
        return F.cross_entropy(logits, targets, ignore_index=PAD, label_smoothing=setting.label_smoothing)

    return Contender(model, loss)


#: Who runs, ours first. A new peer needs a line here and its names in equal_work.py.
CONTENDERS: dict[str, Callable[[Setting], Contender]] = {
    "exformer": exformer,
    "torch nn.Transformer": torch_transformer,
    "Marian, sdpa": partial(marian, attention="sdpa"),
    "Marian, eager": partial(marian, attention="eager"),
    "x-transformers": x_transformers,
}

#: The sizes by the names that the command line takes: sentences like captions, and like news.
SETTINGS = {
    "encoder-decoder-d128": Setting(d_model=128, n_heads=4, d_ff=512, n_layers=2, batch_size=64),
    "encoder-decoder-d512": Setting(
        d_model=512, n_heads=8, d_ff=2048, n_layers=6, batch_size=8, mean_words=25.0, budget_s=28.0
    ),
}

#: In seconds, to see whether everything works.
QUICK = Setting(d_model=32, n_heads=4, d_ff=64, n_layers=1, vocab_size=200, batch_size=4, budget_s=0.1)
