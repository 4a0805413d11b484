"""Wider sweeps of scale: a grid of sizes and data, repeated passes, other tails, rates, and the grammar."""

from functools import partial

import torch

from exformer import DecoderLM, DecoderLMConfig, WordTokenizer, cross_entropy, pad, train
from exformer.corpora import english
from exformer.training.schedules import linear_schedule
from exformer_lessons.trials import sweep

WIDTHS = (6, 8, 12, 16, 24, 48)
AMOUNTS = (8_192, 24_576, 98_304, 294_912)


@sweep("C02")
def grid(FactCorpus, learn):  # noqa: N803
    """Return the loss for each width and number of facts."""
    return _grid(FactCorpus(0), learn, 0)


@sweep("C02")
def second_grid(FactCorpus, learn):  # noqa: N803
    """Return it for another corpus and another initialization."""
    return _grid(FactCorpus(1), learn, 1)


def _grid(facts, learn, seed):
    return {width: {n: learn(facts, width, n, seed) for n in AMOUNTS} for width in WIDTHS}


@sweep("C02")
def passes(FactCorpus, learn):  # noqa: N803
    """Return the loss of three seeds after passes over the same 8,192 facts, and after as many new ones."""
    found = {"the same facts": {}, "new facts": {}}
    for turns in (1, 2, 4, 8, 16, 32):
        for kind, (n, times) in zip(found, ((8_192, turns), (8_192 * turns, 1)), strict=True):
            found[kind][turns] = {
                rate: [learn(FactCorpus(seed), 16, n, seed, rate=rate, passes=times) for seed in range(3)]
                for rate in (0.01, 0.03, 0.08, 0.25)
            }
    return found


@sweep("C02")
def tails(FactCorpus, learn):  # noqa: N803
    """Return the losses of two seeds for each tail, width, number of facts and learning rate."""
    return {
        tail: {
            width: {
                n: {
                    rate: [learn(FactCorpus(seed, tail), width, n, seed, rate=rate) for seed in (0, 1)]
                    for rate in (0.08, 0.25, 0.75)
                }
                for n in AMOUNTS[:3]
            }
            for width in (6, 12, 24, 48)
        }
        for tail in (0.25, 0.5, 1.0, 1.5)
    }


@sweep("C02")
def rates(FactCorpus, learn):  # noqa: N803
    """Return the loss of a seed at other learning rates, multiplied by the width, at the ends of the arms."""
    facts = FactCorpus(5)
    cells = ((6, 8_192), (12, 49_152), (24, 294_912), (48, 8_192), (6, 98_304))
    return {
        f"{width}, {n}": {rate: learn(facts, width, n, 5, rate=rate) for rate in (0.08, 0.25, 0.75)}
        for width, n in cells
    }


@sweep("C02")
def grammar():
    """Return the excess of three seeds over the grammar's entropy, by size, sentences and learning rate."""
    tokenizer = WordTokenizer.from_texts(english.WORDS)
    ends = tokenizer.bos_id, tokenizer.eos_id

    def rows_of(texts):
        return [[ends[0], *tokenizer.encode(text), ends[1]] for text in texts]

    def loss_of(model, ids):
        return cross_entropy(model(ids[:, :-1]), ids[:, 1:], pad_id=tokenizer.pad_id)

    tests = english.sample(1_000, seed=10_000)
    held_out = pad(rows_of(tests), pad_id=tokenizer.pad_id)
    entropy = english.nats_per_token(tests)

    def learn(config, training, rate, seed):
        torch.manual_seed(seed)
        model, peak = DecoderLM(config), rate / config.d_model
        batches = [pad(training[i : i + 48], pad_id=tokenizer.pad_id) for i in range(0, len(training), 48)]
        adam = torch.optim.AdamW(model.parameters(), lr=peak, betas=(0.9, 0.98), fused=True)
        schedule = partial(linear_schedule, peak=peak, warmup=25, total=len(batches))
        train(model, batches, loss_fn=loss_of, optimizer=adam, schedule=schedule, clip_norm=1.0)
        with torch.no_grad():
            return loss_of(model.eval(), held_out).item() - entropy

    training = [rows_of(english.sample(48_000, seed=seed)) for seed in range(3)]
    found = {}
    for width in (12, 24, 48, 96):
        sizes = {"d_model": width, "n_heads": 4, "d_ff": 4 * width, "n_layers": 2}
        config = DecoderLMConfig(tokenizer.vocab_size, **sizes, dropout=0.0, positions="sinusoidal")
        parameters = sum(p.numel() for p in DecoderLM(config).parameters())
        found[parameters] = {
            n: {
                rate: [learn(config, rows[:n], rate, seed) for seed, rows in enumerate(training)]
                for rate in (0.3, 0.6, 1.2)
            }
            for n in (12_000, 48_000)
        }
    return found
