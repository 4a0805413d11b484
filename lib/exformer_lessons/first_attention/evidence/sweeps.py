"""Wider sweeps of the first attention: one vector by width and steps, orders of words, no recurrence.

Those of width and steps write the grammar and the training out here, and depend on no cell of the notebook.
"""

import random
from collections import Counter

import torch

from exformer import WordTokenizer, cross_entropy, train, translate
from exformer.corpora.english_italian.grammar import NounPhrase, Sentence, derive
from exformer.corpora.english_italian.lexicon import ADJECTIVES, ANIMALS, PLACES, VERBS
from exformer.data.translation import encode_pairs, take_rows
from exformer.models.rnn_encoder_decoder import RecurrentConfig, RecurrentEncoderDecoder
from exformer.training.loop import set_seed
from exformer.training.schedules import linear_schedule
from exformer_lessons.first_attention.two_translators import lesson_corpus, place_first
from exformer_lessons.trials import sweep

KNOWN = set(
    "dog cat lion wolf fox tiger frog goose river park lake valley hill island tired hungry happy lazy wide "
    "deep sunny narrow sleep wait eat follow hear find cross reach visit".split()
)

FORMS = [("the", False), ("the", True), ("a", False), ("many", True)]
#: For each width the better of 0.01 and 0.02.
RATES = {8: 0.02, 16: 0.02, 24: 0.01, 32: 0.01}


def noun_phrase(kind):
    """Sample a noun phrase of an animal or a place."""
    noun = random.choice([n for n in ANIMALS + PLACES if n.kind == kind and n.singular in KNOWN])
    adjective = random.choice([a for a in ADJECTIVES if a.kind == kind and a.english in KNOWN])
    determiner, plural = random.choice(FORMS)
    return NounPhrase(determiner, noun, plural, random.choice([None, adjective]))


def random_pair():
    """Sample a sentence with one, two or three noun phrases, and its translation."""
    n = random.choice((1, 2, 3))
    takes = {1: "nothing", 2: random.choice(("animal", "place")), 3: "animal"}[n]
    verb = random.choice([v for v in VERBS if v.takes == takes and v.base in KNOWN])
    parts = {"object": noun_phrase(takes)} if n > 1 else {}
    if n > 2:
        parts |= {"preposition": random.choice(("near", "behind", "beyond")), "place": noun_phrase("place")}
    return derive(Sentence(noun_phrase("animal"), verb, random.random() < 0.5, **parts))


def corpus():
    """Return 20,000 training pairs, and 100 test pairs of each of five lengths."""
    random.seed(0)
    test = [{} for _ in range(5)]  # 3–4, 5–6, …, 11–12 English words
    while any(len(group) < 100 for group in test):
        pair = random_pair()
        group = test[(len(pair.source.split()) - 3) // 2]
        if len(group) < 100:
            group[pair.source] = pair
    held_out = {source for group in test for source in group}
    drawn = [random_pair() for _ in range(30_000)]
    return [p for p in drawn if p.source not in held_out][:20_000], [list(g.values()) for g in test]


def content(pair):
    """Return the Italian nouns, verbs, adjectives and prepositions of the right translation."""
    source, target = pair.source.split(), pair.target.split()
    free = ("the", "a", "an", "many", "didn't")
    return Counter({t: target[t] for s, t in pair.alignment if source[s] not in free}.values())


def share(model, tokenizers, group):
    """Return the fraction of the content words that the translations have."""
    texts = translate(model, tokenizers, [pair.source for pair in group], max_new_tokens=18)
    found = [content(p) & Counter(text.split()) for p, text in zip(group, texts, strict=True)]
    return sum(f.total() for f in found) / sum(content(p).total() for p in group)


class HandsOver(RecurrentEncoderDecoder):
    """A translator whose encoder hands over the first numbers of its last state, and zeros for the others."""

    def __init__(self, config, handed):
        super().__init__(config)
        self.handed = handed

    def encode(self, src):
        return super().encode(src) * (torch.arange(self.config.d_model) < self.handed)


def content_shares(width, steps, seed=0, handed=None):
    """Train a one-vector translator, and return the fraction of content words that arrive, by length."""
    pairs, test = corpus()
    tokenizers = [WordTokenizer.from_texts(getattr(p, side) for p in pairs) for side in ("source", "target")]
    sentences, lengths = encode_pairs(pairs, src_tokenizer=tokenizers[0], tgt_tokenizer=tokenizers[1])
    torch.manual_seed(seed)
    sizes = {"d_model": width, "cell": "lstm", "max_len": 24, "dropout": 0.0}
    config = RecurrentConfig(*(t.vocab_size for t in tokenizers), attention=False, **sizes)
    model = HandsOver(config, width if handed is None else handed)

    def loss_of(model, batch):
        return cross_entropy(model(batch.src, batch.tgt_in), batch.tgt_out, pad_id=tokenizers[1].pad_id)

    def rate(step):
        return linear_schedule(step, peak=RATES[width], warmup=steps // 10, total=steps)

    chosen = torch.randint(len(pairs), (steps, 64)).numpy()
    batches = (take_rows(sentences, rows, lengths=lengths) for rows in chosen)
    adam = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), fused=True)
    train(model, batches, loss_fn=loss_of, optimizer=adam, schedule=rate, clip_norm=1.0)
    return [share(model.eval(), tuple(tokenizers), group) for group in test]


@sweep("A01")
def widths():
    """Return the fractions after 16,000 steps, for each width and two seeds."""
    torch.set_num_threads(1)
    return {str(width): [content_shares(width, 16_000, seed) for seed in range(2)] for width in RATES}


@sweep("A01")
def budgets():
    """Return the fractions after fewer steps and after as many, for three seeds."""
    torch.set_num_threads(1)
    return {
        str(width): {
            str(steps): [content_shares(width, steps, seed) for seed in range(3)]
            for steps in (1000, 2000, 4000, 8000, 16_000)
        }
        for width in (16, 32)
    }


@sweep("A01")
def half_a_vector():
    """Return the fractions of translators of width 32 that hand over 16 numbers, by steps, for each seed."""
    torch.set_num_threads(1)
    return {
        str(steps): [content_shares(32, steps, seed, handed=16) for seed in range(3)]
        for steps in (1000, 2000, 4000, 8000, 16_000)
    }


@sweep("A01")
def zero_context(translator, learn, by_length, in_all):
    """Return the fractions that arrive with attention's wiring and a context of zeros, for three seeds."""

    class Zeros(torch.nn.Module):
        def forward(self, h, memory, *, mask):
            return torch.zeros_like(h)

    found = []
    for seed in range(3):
        torch.manual_seed(seed)
        model = translator(attention=True)
        model.attention = Zeros()
        learn(model, steps=4000)
        found.append([a / b for a, b in zip(by_length(model), in_all, strict=True)])
    return found


@sweep("E04")
def weights_of_articles(NOUNS, encode_pairs, learn, record_attention, test, tokenizers, translator):  # noqa: N803
    """Return how often an article's largest weight is on it, on its noun or just after, for 20 seeds."""
    things = {noun.english(plural=n) for noun in NOUNS for n in (False, True)}
    found = []
    for seed in range(20):
        set_seed(seed)
        model = translator(attention=True)
        learn(model, steps=1000)
        hits = []
        for some in list(test.values())[1:]:  # of 5 words or more
            batch, _ = encode_pairs(some, **tokenizers)
            with torch.no_grad(), record_attention(model) as seen:
                model(batch.src, batch.tgt_in)
            largest = seen["attention"].argmax(dim=-1).tolist()
            for pair, best in zip(some, largest, strict=True):
                words = pair.source.split()
                for s, t in pair.alignment:
                    if words[s] in ("the", "a"):
                        noun = next(j for j in range(s, len(words)) if words[j] in things)
                        hits.append([best[t] == s, best[t] == noun, best[t] == noun + 1])
        found.append(torch.tensor(hits).double().mean(dim=0).tolist())
    return found


@sweep("E04")
def two_orders(encoded_mixed, first, longest, right_share, ways, with_context):
    """Return the fraction of right translations after training on two orders, for three seeds.

    The fractions are by kind of weights and steps, for the longest sentences with the place last, and with it
    first. Under "table" are the weights by position that the first seed has learned in the end.
    """
    found = {}
    for way, budgets in (("by fit", (1000, 4000)), ("by position", (1000, 4000, 16_000))):
        found[way] = {str(steps): [] for steps in budgets}
        for steps in budgets:
            for seed in range(3):
                set_seed(seed)
                model = with_context(ways[way](), steps, encoded_mixed)
                found[way][str(steps)].append([right_share(model, some) for some in (longest, first)])
                if (way, steps, seed) == ("by position", 16_000, 0):
                    weights = model.attention.table[:13, :13].softmax(dim=-1)  # 12 words and the end token
                    found["table"] = [[round(w, 4) for w in row] for row in weights.tolist()]
    return found


def lesson_trainer():
    """Return a function that trains a translator as the lesson does, and measures it by length."""
    torch.set_num_threads(1)
    set_seed(0)
    pairs, test = lesson_corpus()
    mixed = [place_first(pair) if random.random() < 0.5 else pair for pair in pairs]
    english = WordTokenizer.from_texts(pair.source for pair in pairs)
    italian = WordTokenizer.from_texts(pair.target for pair in pairs)
    groups = [*test.values(), [place_first(pair) for pair in [*test.values()][-1]]]

    def loss_of(model, batch):
        return cross_entropy(model(batch.src, batch.tgt_in), batch.tgt_out, pad_id=italian.pad_id)

    def right(steps, seed, *, peak=0.01, width=32, attention=True, part=None, two_orders=False):
        encoded = encode_pairs(mixed if two_orders else pairs, src_tokenizer=english, tgt_tokenizer=italian)
        sentences, lengths = encoded
        torch.manual_seed(seed)
        sizes = {"d_model": width, "cell": "lstm", "max_len": 24, "dropout": 0.0}
        config = RecurrentConfig(english.vocab_size, italian.vocab_size, attention=attention, **sizes)
        model = RecurrentEncoderDecoder(config)
        if part:
            model.attention = part()
        chosen = torch.randint(len(pairs), (steps, 64)).numpy()
        batches = (take_rows(sentences, rows, lengths=lengths) for rows in chosen)
        adam = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), fused=True)

        def rate(step):
            return linear_schedule(step, peak=peak, warmup=steps // 10, total=steps)

        train(model, batches, loss_fn=loss_of, optimizer=adam, schedule=rate, clip_norm=1.0)
        model.eval()
        found = []
        for group in groups:
            sources = [pair.source for pair in group]
            texts = translate(model, (english, italian), sources, max_new_tokens=18)
            found.append(sum(t == p.target for t, p in zip(texts, group, strict=True)) / len(group))
        return found

    return right


class ByPosition(torch.nn.Module):
    """Attention whose weights depend on the two positions alone."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.zeros(24, 24))  # (tgt, src)

    def forward(self, h, memory, *, mask):
        """Return the context of each target position."""
        scores = self.table[: h.size(1), : memory.size(1)]
        return scores.masked_fill(~mask, float("-inf")).softmax(dim=-1) @ memory


@sweep("E04")
def two_orders_by_steps():
    """Return the fractions right, by weights, steps and seed: with the place last, and with it first."""
    right, found = lesson_trainer(), {}
    for name, part, peak in (("content", None, 0.01), ("position", ByPosition, 0.02)):
        how = {"peak": peak, "part": part, "two_orders": True}
        found[name] = {str(n): [right(n, seed, **how)[-2:] for seed in range(5)] for n in (500, 2000)}
    return found


@sweep("A01")
def right_by_steps():
    """Return the fractions of translations without a mistake, by model, steps, seed and length.

    Each width has the best of three learning rates.
    """
    right = lesson_trainer()
    tries = {
        "attention, 32": ({}, (125, 250, 500, 1000)),
        "one vector, 64": ({"attention": False, "width": 64, "peak": 0.005}, (500, 1000, 2000, 4000)),
        "one vector, 32": ({"attention": False}, (1000, 2000, 4000, 8000)),
    }
    return {
        name: {str(n): [right(n, seed, **how)[:5] for seed in range(3)] for n in steps}
        for name, (how, steps) in tries.items()
    }


def shares(right_after, make, seeds, **how):
    """Return the fraction of new sentences that are right, for some seeds."""
    found = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        found.append(right_after(model=make(), **how))
    return found


@sweep("C03")
def rates_and_budgets(right_after, with_lstm, transformer):
    """Return the fractions after 800 steps by rate, after longer trainings, and with 12,000 sentences."""
    torch.set_num_threads(1)
    tries = {
        "LSTM, forward only, no dropout": (with_lstm, {"both": False, "dropout": 0.0}, (0.005, 0.01, 0.02)),
        "LSTM, forward only, dropout": (with_lstm, {"both": False}, (0.01,)),
        "LSTM, both directions, no dropout": (with_lstm, {"dropout": 0.0}, (0.01,)),
        "LSTM, both directions, dropout": (with_lstm, {}, (0.005, 0.01, 0.02)),
        "the same without attention": (with_lstm, {"attention": False}, (0.01,)),
        "LSTM, forward only, dropout, without attention": (
            with_lstm,
            {"both": False, "attention": False},
            (0.01,),
        ),
        "transformer, no dropout": (transformer, {"dropout": 0.0}, (0.008,)),
        "transformer, dropout": (transformer, {}, (0.004, 0.008, 0.016)),
    }
    by_rate = {
        name: {
            str(peak): shares(right_after, lambda: make(**how), 2, steps=800, peak=peak)  # noqa: B023
            for peak in rates
        }
        for name, (make, how, rates) in tries.items()
    }
    makers = {
        "LSTM": (lambda: with_lstm(dropout=0.3), 0.01),
        "transformer": (lambda: transformer(dropout=0.2), 0.008),
    }
    until_flat = {
        name: {
            str(steps): shares(right_after, make, 3, steps=steps, peak=peak)
            for steps in (800, 1600, 2400, 4800)
        }
        for name, (make, peak) in makers.items()
    }
    makers = {
        "LSTM": (lambda: with_lstm(dropout=0.0), {240: 0.02, 800: 0.01}),
        "transformer": (lambda: transformer(dropout=0.0), {240: 0.008, 800: 0.004}),
    }
    all_sentences = {
        name: {
            str(steps): shares(right_after, make, 2, steps=steps, peak=peak, n_train=12_000)
            for steps, peak in peaks.items()
        }
        for name, (make, peaks) in makers.items()
    }
    return {"by rate": by_rate, "until flat": until_flat, "all sentences": all_sentences}
