"""A small decoder that reads ever longer pieces of Tiny Shakespeare, character by character, once."""

from functools import cache

import torch
from torch import Tensor

from exformer import DecoderLM, DecoderLMConfig
from exformer.corpora.real import tiny_shakespeare
from exformer.nn.eval_mode import evaluating
from exformer_lessons.measured import train_clipped

LENGTH, BATCH = 64, 16  # characters in a window, windows in a batch
AMOUNTS = tuple(31 * 2**n * LENGTH * BATCH for n in range(6))  # characters; the last is nearly all


@cache
def windows() -> tuple[Tensor, Tensor]:
    """Return the training and the validation text as windows of ids, each a target longer."""
    texts = tiny_shakespeare()
    symbols = {symbol: n for n, symbol in enumerate(sorted(set("".join(texts))))}
    ids = [torch.tensor([symbols[symbol] for symbol in text]) for text in texts]
    training, validation = (each.unfold(0, LENGTH + 1, LENGTH) for each in ids)
    return training, validation


def guess(n_tokens: int) -> float:
    """Guess a learning rate: it falls as there is more to read."""
    return 0.02 if n_tokens < 100_000 else 0.01


def learn(n_tokens: int, *, rate: float, seed: int) -> float:
    """Read so many characters, pieces from all over the text; return the validation loss."""
    training, validation = windows()
    torch.manual_seed(seed)
    model = DecoderLM(
        DecoderLMConfig(65, d_model=32, n_layers=2, n_heads=2, max_len=LENGTH, dropout=0.0, pad_id=None)
    )
    chosen = torch.randperm(len(training))[: n_tokens // LENGTH]
    batches = [training[part] for part in chosen.split(BATCH)]
    n = len(batches)
    train_clipped(model, batches, DecoderLM.loss, rate=rate, warmup=max(1, n // 20), total=n)
    with torch.no_grad(), evaluating(model):
        return model.loss(validation).item()
