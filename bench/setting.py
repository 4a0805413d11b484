"""What is the same for every contender of a race: sizes, batches, optimizer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exformer.data.padding import pad
from exformer.data.translation import Seq2SeqBatch

PAD, BOS, EOS = 0, 1, 2
OPTIMIZER = "AdamW (fused)"
BATCHES_SORTED_TOGETHER = 50  # as exformer.data.translation does


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Sizes and learning rates.

    Args:
        d_model: Width of the vectors.
        n_heads: Attention heads a layer.
        d_ff: Width of the feed-forward networks' hidden layer.
        n_layers: Layers of the encoder, and as many of the decoder.
        vocab_size: Symbols of the source language, and as many of the target language.
        max_len: Longest sentence, in symbols.
        dropout: Of the embeddings and of each sublayer's output.
        label_smoothing: Share of the target that is spread over the vocabulary.
        batch_size: Sentences in a batch.
        n_batches: How many batches take turns.
        mean_words: Words in a sentence, on average.
        budget_s: For how long the steps are timed, all contenders together.
    """

    d_model: int
    n_heads: int
    d_ff: int
    n_layers: int
    vocab_size: int = 8000
    max_len: int = 128
    dropout: float = 0.1
    label_smoothing: float = 0.1
    batch_size: int = 64
    n_batches: int = 4
    mean_words: float = 13.0
    budget_s: float = 18.0

    def __str__(self) -> str:
        """Return the sizes in one line."""
        return (
            f"d_model {self.d_model}, {self.n_layers}+{self.n_layers} layers, {self.n_heads} heads, "
            f"d_ff {self.d_ff}, vocabulary {self.vocab_size}, dropout {self.dropout:g}"
        )


@dataclass(frozen=True)
class Contender:
    """A model with the way in which its users compute the loss.

    Args:
        model: The model.
        loss: Gives its loss on a batch, in nats a token.
        precision: ``"float32"``, or ``"bfloat16"`` for autocast.
        factors: By what our numbers are multiplied in this model, for those parameters where it isn't 1.
        tolerance: Share by which its loss and gradient may differ from ours where it approximates something.
    """

    model: nn.Module
    loss: Callable[[Any], Tensor]
    precision: str = "float32"
    factors: Mapping[str, float] = field(default_factory=dict)
    tolerance: float = 0.0

    def compute(self, batch: Any) -> Tensor:
        """Return the loss on a batch, in the contender's precision."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bfloat16"):
            return self.loss(batch)

    def n_parameters(self) -> int:
        """Count the parameters; a shared embedding counts once."""
        return sum(p.numel() for p in self.model.parameters() if p.requires_grad)


def silence_further_dropouts(model: nn.Module) -> None:
    """Switch off the dropout that our layers lack: on attention weights and hidden units."""
    for module in model.modules():
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0  # of the attention weights
        if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
            module.dropout.p = 0.0  # of the hidden units


def make_batches(setting: Setting, *, seed: int = 0) -> list[Seq2SeqBatch]:
    """Make batches of random tokens with the lengths of real sentences, similar lengths together.

    Lengths spread as in real text (log-normal, a target about as long as its source), and so do words (the
    n-th most frequent has a share of about 1/n).

    Args:
        setting: Sizes.
        seed: Of all that is random.

    Returns:
        Some of the batches that a large text would be cut into.
    """
    rng = np.random.default_rng(seed)
    shape = (BATCHES_SORTED_TOGETHER, setting.batch_size)
    src_words = setting.mean_words * np.exp(rng.normal(-0.06, 0.35, shape))
    tgt_words = src_words * np.exp(rng.normal(0.0, 0.12, shape))
    lengths = np.stack([src_words, tgt_words], axis=-1).round().astype(int).clip(3, setting.max_len - 1)
    pairs = lengths.reshape(-1, 2)
    in_order = pairs[np.lexsort(pairs.T)].reshape(lengths.shape)
    chosen = rng.choice(in_order, setting.n_batches, replace=False)  # (batch, sentence, 2)
    return [_batch(rows, rng=rng, vocab_size=setting.vocab_size) for rows in chosen]


def _batch(lengths: np.ndarray, *, rng: np.random.Generator, vocab_size: int) -> Seq2SeqBatch:
    words = np.arange(EOS + 1, vocab_size)
    share = 1 / np.arange(1, len(words) + 1)
    share /= share.sum()
    sources, targets = ([rng.choice(words, n, p=share).tolist() for n in column] for column in lengths.T)
    return Seq2SeqBatch(
        src=pad([[*ids, EOS] for ids in sources], pad_id=PAD),
        tgt_in=pad([[BOS, *ids] for ids in targets], pad_id=PAD),
        tgt_out=pad([[*ids, EOS] for ids in targets], pad_id=PAD),
    )


def make_step(contender: Contender) -> Callable[[Any], float]:
    """Return the function that is timed: forward, loss, backward, optimizer."""
    contender.model.train()
    optimizer = torch.optim.AdamW(contender.model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)

    def step(batch: Any) -> float:
        loss = contender.compute(batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
