"""The block of 2017, the switches that lead to today's, and a training that compares them at equal size."""

from collections.abc import Collection
from dataclasses import replace
from functools import cache
from random import Random
from time import process_time
from typing import Any

import torch
from torch import Tensor

from exformer import DecoderLM, DecoderLMConfig, cross_entropy, pad
from exformer.corpora import english
from exformer.nn.eval_mode import evaluating
from exformer_lessons.measured import train_clipped
from exformer_lessons.training import programs
from exformer_lessons.training.programs import encode, tokenizer

#: What changed since 2017, one setting each.
SWITCHES: dict[str, dict[str, Any]] = {
    "pre-norm": {"pre_norm": True},
    "RMSNorm": {"norm": "rms"},
    "no biases": {"bias": False},
    "rotary": {"positions": "rotary"},
    "SwiGLU": {"activation": "swiglu"},
    "grouped queries": {"n_kv_heads": 2},
    "QK-norm": {"qk_norm": True},
    "GELU": {"activation": "gelu"},
    "ReLU²": {"activation": "squared_relu"},
}
#: The switches of Llama's block, in the order of the lesson.
LLAMA = ("pre-norm", "RMSNorm", "no biases", "rotary", "SwiGLU", "grouped queries")
D_MODEL, N_LAYERS, N_SENTENCES, BATCH = 48, 2, 24_000, 40


def training_rows() -> list[list[int]]:
    """Return the sentences of a training; each is read once."""
    return programs.training_rows(N_SENTENCES, seed=0)


@cache
def test_batch() -> tuple[Tensor, float]:
    """Return new sentences, and the loss of the grammar itself on them, which no model beats."""
    sentences = english.sample(2_000, seed=10_000)
    return pad(encode(sentences), pad_id=tokenizer().pad_id), english.nats_per_token(sentences)


def n_parameters(model: torch.nn.Module) -> int:
    """Count the parameters of a model."""
    return sum(p.numel() for p in model.parameters())


def block(switches: Collection[str] = (), **settings: Any) -> DecoderLMConfig:
    """Return a model of the block of 2017 with some switches on.

    The hidden layer of the feed-forward network is as wide as it must be for the number of parameters of
    2017.

    >>> block().activation, block(["SwiGLU"]).activation
    ('relu', 'swiglu')
    >>> block().d_ff, block(["SwiGLU"]).d_ff, block(["grouped queries"]).d_ff
    (192, 128, 216)
    """
    config = DecoderLMConfig(
        tokenizer().vocab_size,
        d_model=D_MODEL,
        n_layers=N_LAYERS,
        n_heads=4,
        d_ff=4 * D_MODEL,
        pre_norm=False,
        activation="relu",
        positions="sinusoidal",
        dropout=0.0,
    )
    if not switches and not settings:
        return config
    changes = {name: value for switch in switches for name, value in SWITCHES[switch].items()}
    changed = replace(config, **changes | settings)
    return changed if "d_ff" in settings else replace(changed, d_ff=_equal_width(changed, config))


def todays(n_symbols: int, **settings: Any) -> DecoderLMConfig:
    """Return a small model of today's block, without grouped queries and without a token for padding.

    Args:
        n_symbols: Size of its vocabulary.
        settings: Its other settings, such as layers and widths.

    >>> config = todays(5, n_layers=1, d_ff=8, max_len=3)
    >>> config.norm, config.activation, config.positions, config.bias, config.d_model
    ('rms', 'swiglu', 'rotary', False, 32)
    """
    return DecoderLMConfig(
        n_symbols,
        d_model=32,
        norm="rms",
        activation="swiglu",
        positions="rotary",
        bias=False,
        dropout=0.0,
        pad_id=None,
        **settings,
    )


def _equal_width(config: DecoderLMConfig, like: DecoderLMConfig) -> int:
    """Return the width of the hidden layer that brings a model closest to another one's size."""
    wanted = n_parameters(DecoderLM(like))
    sizes = {d_ff: n_parameters(DecoderLM(replace(config, d_ff=d_ff))) for d_ff in (8, 9)}
    return 8 + round((wanted - sizes[8]) / (sizes[9] - sizes[8]))


@torch.no_grad()
def excess(model: DecoderLM) -> float:
    """Return the loss on new sentences minus that of the grammar, in nats per token."""
    ids, floor = test_batch()
    with evaluating(model):
        logits = model(ids[:, :-1])
    return cross_entropy(logits, ids[:, 1:], pad_id=tokenizer().pad_id).item() - floor


def _batches(seed: int) -> list[Tensor]:
    """Return the batches of a training in random order; sentences of a batch are of similar length."""
    rows, rng = training_rows()[:], Random(seed)
    rng.shuffle(rows)
    pools = [sorted(rows[i : i + 20 * BATCH], key=len) for i in range(0, len(rows), 20 * BATCH)]
    batches = [pool[i : i + BATCH] for pool in pools for i in range(0, len(pool), BATCH)]
    rng.shuffle(batches)
    return [pad(batch, pad_id=tokenizer().pad_id) for batch in batches]


def learn(
    config: DecoderLMConfig, *, rate: float, seed: int, steps: int | None = None
) -> tuple[DecoderLM, float]:
    """Train a model on 24,000 sentences, or for some steps; return it, and the seconds of a step."""
    torch.manual_seed(seed)
    model, batches = DecoderLM(config), _batches(seed)[:steps]
    start, n = process_time(), len(batches)
    train_clipped(model, batches, DecoderLM.loss, rate=rate, warmup=n // 10, total=n)
    return model, (process_time() - start) / n
