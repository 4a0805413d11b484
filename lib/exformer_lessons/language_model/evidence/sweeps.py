"""Wider sweeps: a quarter of the text and four times as much; batches by length."""

import random
from statistics import fmean

import torch

from exformer import pad
from exformer.corpora import english
from exformer.generation.next_token import Continuation
from exformer.generation.sampling import sample
from exformer_lessons.trials import sweep

SENTENCES = (12_000, 48_000, 192_000)


@sweep("D02")
def more_text(NGram, excess_of, learn, new_decoder, new_lstm, prefers, rows_of):  # noqa: N803
    """Return excess and accuracies past 0 to 4 attractors, for each model, amount of text and seed."""
    makers = {"verbs": english.agreement_items, "pronouns": english.coreference_items}
    found = {name: {n: [] for n in SENTENCES} for name in ("4-gram", "LSTM", "decoder")}

    def note(name, n, model, items):
        answer = {kind: [prefers(model, asked) for asked in each] for kind, each in items.items()}
        found[name][n].append({"excess": excess_of(model)[0]} | answer)

    for seed in range(5):
        rows = rows_of(english.sample(max(SENTENCES), seed=seed))
        items = {
            kind: [make(300, attractors=n, seed=seed) for n in range(5)] for kind, make in makers.items()
        }
        for n in SENTENCES:
            batches = [pad(rows[i : i + 48], pad_id=0) for i in range(0, n, 48)]
            note("4-gram", n, NGram(rows[:n], 4), items)
            for name, model in {"LSTM": new_lstm(seed), "decoder": new_decoder(seed)}.items():
                learn(model, batches)
                note(name, n, model, items)
    return found


@sweep("C19")
def many_texts(is_sentence, next_logits_of, ngrams, texts_of):
    """Return the fraction of 3,000 generated sentences that is grammatical, for three n-grams."""
    return {
        name: fmean(map(is_sentence, texts_of(next_logits_of(ngrams[name]), n=3_000)))
        for name in ("trigram", "4-gram", "5-gram")
    }


@sweep("D03")
def batching(
    first, is_sentence, last, learn, n_tokens, nats_of, new_decoder, per_token, rows_of, symbols, truth
):
    """Return, for five seeds, the excess on sentences of 3 or 4 words and on all, and how many are so short.

    The keys say how batches are made. How many: of 20,000 texts that the model generates, without the wrong
    ones, and of 200,000 sentences of the language. Errors: the standard error of the five models' mean
    excess, over the test sentences.
    """
    parts = {"short": n_tokens <= 5, "all": n_tokens > 0}
    found = {
        name: {part: [] for part in (*parts, "share")} for name in ("random batches", "batches by length")
    }
    differences = {name: torch.zeros(len(truth), dtype=torch.float64) for name in found}
    for seed in range(5):
        rows = rows_of(english.sample(48_000, seed=seed))
        ways = {
            "random batches": [rows[i : i + 48] for i in range(0, len(rows), 48)],
            "batches by length": by_length(rows),
        }
        for name, batches in ways.items():
            model = new_decoder(seed)
            learn(model, [pad(batch, pad_id=0) for batch in batches])
            x = nats_of(model) - truth
            differences[name] += x / 5
            for part, chosen in parts.items():
                found[name][part].append((x[chosen].sum() / n_tokens[chosen].sum()).item())
            limits = {"eos_id": last, "max_new_tokens": 5, "generator": torch.Generator().manual_seed(seed)}
            texts = sample(Continuation(model), torch.full((20_000, 1), first), **limits)
            short = [" ".join(symbols[token] for token in text) for text in texts if len(text) < 5]
            found[name]["share"].append(sum(map(is_sentence, short)) / len(texts))
    for name, x in differences.items():
        found[name]["errors"] = {
            part: per_token(x[chosen], n_tokens[chosen])[1] for part, chosen in parts.items()
        }
    short = fmean(len(s.split()) < 5 for s in english.sample(200_000, seed=5))
    return found | {"the language": {"short": [0.0], "all": [0.0], "share": [short]}}


def by_length(rows, *, most=500, piece=1_600):
    """Cut each 1,600 sentences into batches of similar length and at most 500 positions, in random order."""
    batches = []
    for start in range(0, len(rows), piece):
        ranked, cut = sorted(rows[start : start + piece], key=len), []
        while ranked:  # the longest first
            n = max(1, most // len(ranked[-1]))
            cut.append(ranked[-n:])
            del ranked[-n:]
        batches += random.Random(start).sample(cut, len(cut))
    return batches
