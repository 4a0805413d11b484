"""Wider sweeps on heads: one head trained longer, other draws of a control, five more translators."""

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

FORMS = {
    "one head": {},
    "one head, twice as wide": {"d_model": 64},
    "one head, values with places": {"aware": True},
    "one head, both": {"d_model": 64, "aware": True},
}


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


@sweep("C11")
def longer(Reader, learn, share_right):  # noqa: N803
    """Return the fraction of whole answers of one head after 800 steps at a learning rate of 0.02."""

    def new(seed, **form):
        torch.manual_seed(seed)
        return Reader(n_heads=1, **form)

    def share(seed, form):
        return share_right(learn(partial(new, seed, **form), 0.02, 800))

    return {name: [share(seed, form) for seed in range(5)] for name, form in FORMS.items()}


@sweep("C11")
def whole_answers(Reader, share_right, loss_of, truth):  # noqa: N803
    """Return it for the narrow head after 100 steps with the lesson's loss and 600 with another."""

    def loss_of_both(reader, row):
        answers = reader(row).log_softmax(dim=-1)
        right = answers.gather(-1, truth(row, answers)[..., None])[..., 0]
        return 1 - right.sum(dim=-1).exp().mean()

    def share(seed):
        torch.manual_seed(seed)
        reader = Reader(n_heads=1)
        for loss, steps in ((loss_of, 100), (loss_of_both, 600)):
            rows = list(torch.randint(16, (steps, 64, 12)))
            adam = torch.optim.AdamW(reader.parameters(), betas=(0.9, 0.98), fused=True)
            falling = partial(linear_schedule, peak=0.01, warmup=20, total=steps)
            train(reader, rows, loss_fn=loss, optimizer=adam, schedule=falling, clip_norm=1.0)
        return share_right(reader.eval().requires_grad_(False))

    return {"one head, loss of whole answers": [share(seed) for seed in range(5)]}


@sweep("C11")
def six_letters(with_network, learn, share_right):
    """Return the accuracy on six letters of one head and of four, each with an MLP behind, for five seeds."""
    torch.set_num_threads(1)
    tries = [(1, 0.01, 1000), (1, 0.03, 1000), (1, 0.1, 1000), (1, 0.03, 3000), (4, 0.03, 1000)]

    def new(seed, n_heads):
        torch.manual_seed(seed)
        return with_network(n_heads, 6)

    def share(seed, n_heads, rate, steps):
        return share_right(learn(partial(new, seed, n_heads), rate, steps))

    name = "{} of width {}, {} steps at a rate of {}"
    heads = {1: "one head", 4: "four heads"}
    return {
        name.format(heads[n], 32 // n, steps, rate): [share(seed, n, rate, steps) for seed in range(5)]
        for n, rate, steps in tries
    }
