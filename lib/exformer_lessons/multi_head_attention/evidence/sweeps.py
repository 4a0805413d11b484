"""Wider sweeps of the evidence on heads: other draws of the control, and five more translators."""

from functools import partial

import torch

from exformer import (
    EncoderDecoder,
    EncoderDecoderConfig,
    WordTokenizer,
    cross_entropy,
    train,
    translation_batches,
)
from exformer.corpora import english_italian
from exformer.training.loop import set_seed
from exformer.training.schedules import linear_schedule
from exformer_lessons.trials import sweep


def figures(found):
    """Return the figures, trained and shuffled, of the three kinds of attention, then of cross-attention."""
    alike, mixed = torch.stack(list(found.values())).mean(dim=0).tolist()
    return [alike, mixed, *found["cross"].tolist()]


@sweep("B09")
def draws(model, shared_by_heads, src, tgt):
    """Return what two heads share, trained and with shuffled weights, for five random shuffles."""
    torch.set_num_threads(1)
    found = {}
    for seed in range(5):
        set_seed(seed)
        found[f"draw {seed}"] = figures(shared_by_heads(model, src, tgt))
    return found


@sweep("B09")
def translators(shared_by_heads):
    """Return it for five translators of the evidence on the encoder–decoder, with the usual start token."""
    torch.set_num_threads(1)
    return {f"seed {seed}": of_translator(shared_by_heads, seed) for seed in range(5)}


def of_translator(shared_by_heads, seed, steps=800):
    """Train a translator, and compute its figures on 64 test sentences with their translations."""
    set_seed(seed)
    data = english_italian.split(20_000, n_test=200, seed=seed)
    english = WordTokenizer.from_texts(english_italian.ENGLISH_WORDS)
    italian = WordTokenizer.from_texts(pair.target for pair in data.train)
    both = {"src_tokenizer": english, "tgt_tokenizer": italian, "seed": seed}
    sizes = {"d_model": 64, "n_heads": 4, "d_ff": 256, "n_layers": 2, "dropout": 0.0}
    n_tokens = english.vocab_size, italian.vocab_size
    model = EncoderDecoder(EncoderDecoderConfig(*n_tokens, max_len=32, pre_norm=True, **sizes))

    def loss_of(model, batch):
        logits = model(batch.src, batch.tgt_in)
        return cross_entropy(logits, batch.tgt_out, pad_id=italian.pad_id)

    adam = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), fused=True)
    rate = partial(linear_schedule, peak=3e-3, warmup=steps // 6, total=steps)
    shown = translation_batches(data.train, batch_size=32, steps=steps, **both)
    train(model, shown, loss_fn=loss_of, optimizer=adam, schedule=rate, clip_norm=1.0)
    test = translation_batches(data.test[:64], batch_size=64, **both).sentences
    return figures(shared_by_heads(model, test.src, test.tgt_in))
