"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import math
from functools import reduce

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exformer_lessons.language_model import mistakes as known
from exformer_lessons.language_model.grader import grade_excess, grade_log_probability, grade_perplexity


def chain(*, words=lambda s: [*s.split(), "</s>"], before=lambda w, n: w[:n], join=None):
    join = join or (lambda steps: sum(math.log(p) for p in steps))

    def answer(next_words, sentence):
        found = words(sentence)
        return join([next_words(" ".join(before(found, n)))[word] for n, word in enumerate(found)])

    return answer


def by_growing(next_words, sentence):
    total, beginning = 0.0, ""
    for word in [*sentence.split(), "</s>"]:
        total += math.log(next_words(beginning)[word])
        beginning = f"{beginning} {word}".strip()
    return total


def by_tensor(next_words, sentence):
    words = sentence.split()
    steps = [next_words(" ".join(words[:n]))[word] for n, word in enumerate(words)]
    return torch.tensor([*steps, next_words(sentence)["</s>"]]).log().sum()


def by_fold(next_words, sentence):
    def read(state, word):
        p, said = state
        return p * next_words(" ".join(said))[word], (*said, word)

    return np.log(reduce(read, [*sentence.split(), "</s>"], (1.0, ()))[0])


CHAINS = {
    "loop": chain(),
    "growing": by_growing,
    "tensor": by_tensor,
    "product first": by_fold,
    "table of one": lambda f, s: by_tensor(f, s)[None],
    "requires a gradient": lambda f, s: by_tensor(f, s).requires_grad_(),
}


@pytest.mark.parametrize("answer", CHAINS.values(), ids=CHAINS)
def test_right_chains(answer):
    assert grade_log_probability(answer), grade_log_probability(answer)


WRONG_CHAINS = {
    "leave the end token out": chain(words=str.split),
    "leave the first word out": chain(join=lambda steps: sum(map(math.log, steps[1:]))),
    "both are predicted": chain(words=str.split, join=lambda steps: sum(map(math.log, steps[1:]))),
    "probability itself": chain(join=math.prod),
    "You add probabilities": chain(join=sum),
    "Yours is the negative log-likelihood": chain(join=lambda steps: -sum(map(math.log, steps))),
    "mean over the tokens": chain(join=lambda steps: float(np.mean(np.log(steps)))),
    "the last step alone": chain(join=lambda steps: math.log(steps[-1])),
    "raised ValueError: next_words takes words with one space between them and none at the ends, got 'a '": (
        chain(before=lambda w, n: [*w[:n], ""] if n else [])
    ),
    "raised ValueError: there is no word 'adog'": lambda f, s: sum(
        math.log(f("".join(s.split()[:n]))[word]) for n, word in enumerate([*s.split(), "</s>"])
    ),
    "to base 2": chain(join=lambda steps: sum(map(math.log2, steps))),
    "to base 10": chain(join=lambda steps: sum(map(math.log10, steps))),
    "the word before alone": chain(before=lambda w, n: w[n - 1 : n] if n else []),
    "to be predicted: stop before it": chain(before=lambda w, n: w[: n + 1]),
    "and the end token is missing": chain(words=str.split, before=lambda w, n: w[: n + 1]),
    "most probable word": lambda f, s: sum(
        math.log(max(f(" ".join(s.split()[:n])).values())) for n in range(len(s.split()) + 1)
    ),
    "raised TypeError: next_words takes the beginning as a text, got a list": lambda f, s: f(s.split()[:1])[
        "dog"
    ],
    "always empty": chain(before=lambda w, n: []),
    "put <s> in front": chain(before=lambda w, n: ["<s>", *w[:n]]),
    "returns nothing yet": lambda f, s: ...,
    "raised KeyError": lambda f, s: f("")["cat"],
    "should be one number": chain(join=lambda steps: np.log(steps)),
    "the number should be": chain(join=lambda steps: sum(map(math.log, steps)) + 1),
}


@pytest.mark.parametrize("hint", WRONG_CHAINS)
def test_wrong_chains_are_named(hint):
    verdict = grade_log_probability(WRONG_CHAINS[hint])
    assert not verdict
    assert hint in verdict.says


def perplexity_by_loops(logits, targets, pad_id):
    total, count = 0.0, 0
    for rows, ids in zip(logits.tolist(), targets.tolist(), strict=True):
        for row, word in zip(rows, ids, strict=True):
            if word != pad_id:
                total += math.log(sum(math.exp(z) for z in row)) - row[word]
                count += 1
    return math.exp(total / count)


def perplexity_by_torch(logits, targets, pad_id):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id).exp()


def perplexity_by_bits(logits, targets, pad_id):
    p = logits.softmax(2).take_along_dim(targets.unsqueeze(2), dim=2).squeeze(2)
    return 2 ** (-p[targets.ne(pad_id)].log2().mean())


def perplexity_by_mean(logits, targets, pad_id):
    p = logits.double().softmax(2).take_along_dim(targets.unsqueeze(2), dim=2).squeeze(2)
    real = p[targets != pad_id]
    return real.prod() ** (-1 / len(real))


PERPLEXITIES = {
    "loops": perplexity_by_loops,
    "torch's loss": perplexity_by_torch,
    "bits": perplexity_by_bits,
    "geometric mean": perplexity_by_mean,
    "numpy": lambda *case: perplexity_by_torch(*case).numpy(),
    "table of one": lambda *case: perplexity_by_torch(*case)[None, None],
}


@pytest.mark.parametrize("answer", PERPLEXITIES.values(), ids=PERPLEXITIES)
def test_right_perplexities(answer):
    assert grade_perplexity(answer), grade_perplexity(answer)


def nats(z, y, p=None):
    """Surprises, 0 at the padding."""
    return F.cross_entropy(z.transpose(1, 2), y, ignore_index=-1 if p is None else p, reduction="none")


def per_sentence(z, y, p):
    return nats(z, y, p).sum(1) / y.ne(p).sum(1)


WRONG_PERPLEXITIES = {
    "mean loss in nats": lambda z, y, p: perplexity_by_torch(z, y, p).log(),
    "You count the padding": lambda z, y, p: nats(z, y).mean().exp(),
    "use pad_id": lambda z, y, p: perplexity_by_torch(z, y, 0),
    "invert the mean probability": lambda z, y, p: 1 / (-nats(z, y)[y != p]).exp().mean(),
    "add the nats of all tokens": lambda z, y, p: nats(z, y, p).sum().exp(),
    "still divide by its positions": lambda z, y, p: nats(z, y, p).mean().exp(),
    "perplexities of the sentences": lambda z, y, p: per_sentence(z, y, p).exp().mean(),
    "You average over the sentences": lambda z, y, p: per_sentence(z, y, p).mean().exp(),
    "probabilities' inverses": lambda z, y, p: nats(z, y)[y != p].exp().mean(),
    "all nats of a sentence": lambda z, y, p: nats(z, y, p).sum(1).mean().exp(),
    "at least 1": lambda z, y, p: 1 / perplexity_by_torch(z, y, p),
    "raised to base 2": lambda z, y, p: 2 ** perplexity_by_torch(z, y, p).log(),
    "exp belongs to nats": lambda z, y, p: perplexity_by_torch(z, y, p).log2().exp(),
    "runs over the positions": lambda z, y, p: F.nll_loss(
        F.log_softmax(z, 1).flatten(0, 1), y.flatten(), ignore_index=p
    ).exp(),
    "You average logits": lambda z, y, p: F.nll_loss(z.flatten(0, 1), y.flatten(), ignore_index=p).exp(),
    "take the softmax twice": lambda z, y, p: perplexity_by_torch(z.softmax(2), y, p),
    "nll_loss wants log_softmax": lambda z, y, p: (
        (-z.softmax(2).take_along_dim(y.unsqueeze(2), dim=2).squeeze(2)[y != p]).mean().exp()
    ),
    "one position off": lambda z, y, p: perplexity_by_torch(z[:, :-1], y[:, 1:], p),
    "returns nothing yet": lambda z, y, p: None,
    "should be one number": lambda z, y, p: per_sentence(z, y, p).exp(),
    "raised IndexError": lambda z, y, p: z[99],
    "the number should be": lambda z, y, p: perplexity_by_torch(z, y, p) + 1,
}


@pytest.mark.parametrize("hint", WRONG_PERPLEXITIES)
def test_wrong_perplexities_are_named(hint):
    verdict = grade_perplexity(WRONG_PERPLEXITIES[hint])
    assert not verdict
    assert hint in verdict.says


def error_of(nats, n):
    """Standard error of all nats by all tokens, in numpy."""
    nats, n = np.asarray(nats, dtype=float), np.asarray(n, dtype=float)
    return float(np.sqrt(((nats - n * nats.sum() / n.sum()) ** 2).sum()) / n.sum())


def both(of_excess):
    """Give a way to compute the excess the right standard error."""
    return lambda m, t, n: (of_excess(m, t, n), error_of(m - t, n))


def excess_by_loops(m, t, n):
    gaps, total = [a - b for a, b in zip(m.tolist(), t.tolist(), strict=True)], sum(n.tolist())
    mean = sum(gaps) / total
    return [mean, math.hypot(*(d - mean * k for d, k in zip(gaps, n.tolist(), strict=True))) / total]


def excess_by_norm(m, t, n):
    d = (m - t).double()
    mean = d.sum() / n.sum()
    return torch.stack((mean, torch.linalg.vector_norm(d - mean * n) / n.sum()))


def plain(m, t, n):
    return (m - t).sum() / n.sum()


EXCESSES = {
    "torch": both(plain),
    "two losses": both(lambda m, t, n: m.sum() / n.sum() - t.sum() / n.sum()),
    "weighted mean": both(lambda m, t, n: ((m - t) / n * (n / n.sum())).sum()),
    "two means": both(lambda m, t, n: (m.mean() - t.mean()) / n.float().mean()),
    "loops": excess_by_loops,
    "norm": excess_by_norm,
    "numpy": lambda m, t, n: excess_by_norm(m, t, n).numpy(),
    "one by one": lambda m, t, n: (number for number in excess_by_loops(m, t, n)),
    "tables of one": lambda m, t, n: tuple(excess_by_norm(m, t, n).split(1)),
    "requires gradients": lambda m, t, n: list(excess_by_norm(m.requires_grad_(), t, n)),
}


@pytest.mark.parametrize("answer", EXCESSES.values(), ids=EXCESSES)
def test_right_excesses(answer):
    assert grade_excess(answer), grade_excess(answer)


WRONG_EXCESSES = {
    "the model's loss: subtract": both(lambda m, t, n: m.sum() / n.sum()),
    "sign is wrong": both(lambda m, t, n: (t - m).sum() / n.sum()),
    "average over the sentences": both(lambda m, t, n: (m / n - t / n).mean()),
    "nats per sentence: divide by the number": both(lambda m, t, n: m.mean() - t.mean()),
    "You do not divide": both(lambda m, t, n: m.sum() - t.sum()),
    "absolute differences": both(lambda m, t, n: (m - t).abs().sum() / n.sum()),
    "absolute value of the excess": both(lambda m, t, n: abs(plain(m, t, n))),
    "cut off what is negative": both(lambda m, t, n: F.relu(m - t).sum() / n.sum()),
    "count in bits": lambda m, t, n: excess_by_norm(m, t, n) / math.log(2),
    "end tokens out of the count": both(lambda m, t, n: (m - t).sum() / (n - 1).sum()),
    "divide by the true nats": both(lambda m, t, n: m.sum() / t.sum() - 1),
    "ratio of losses": both(lambda m, t, n: m.sum() / t.sum()),
    "ratio of perplexities": both(lambda m, t, n: (m.sum() / n.sum()).exp() / (t.sum() / n.sum()).exp()),
    "difference of perplexities": both(lambda m, t, n: (m.sum() / n.sum()).exp() - (t.sum() / n.sum()).exp()),
    "once is enough": both(lambda m, t, n: (m - t).sum() / n.sum() ** 2),
    "that of the model's loss": lambda m, t, n: (plain(m, t, n), error_of(m, n)),
    "as if the sample were not the same": lambda m, t, n: (
        plain(m, t, n),
        math.hypot(error_of(m, n), error_of(t, n)),
    ),
    "subtract the errors of both": lambda m, t, n: (plain(m, t, n), error_of(m, n) - error_of(t, n)),
    "take its root": lambda m, t, n: (plain(m, t, n), error_of(m - t, n) ** 2),
    "divide it by the number of tokens": lambda m, t, n: (plain(m, t, n), error_of(m - t, n) * n.sum()),
    "its share of the mean first": lambda m, t, n: (plain(m, t, n), (m - t).norm() / n.sum()),
    "because it is long": lambda m, t, n: (plain(m, t, n), ((m - t) - (m - t).mean()).norm() / n.sum()),
    "from a whole sentence": lambda m, t, n: (plain(m, t, n), (m - t - plain(m, t, n)).norm() / n.sum()),
    "divide by n - 1 sentences": lambda m, t, n: (
        plain(m, t, n),
        error_of(m - t, n) * math.sqrt(len(n) / (len(n) - 1)),
    ),
    "error of a mean of ratios": lambda m, t, n: (plain(m, t, n), ((m - t) / n).std() / len(n) ** 0.5),
    "sentences scatter": lambda m, t, n: (plain(m, t, n), error_of(m - t, n) * len(n) ** 0.5),
    "The excess comes first": lambda m, t, n: (error_of(m - t, n), plain(m, t, n)),
    "error in nats per sentence": lambda m, t, n: (plain(m, t, n), error_of(m - t, n) * n.sum() / len(n)),
    "The excess is right, its standard error is not": lambda m, t, n: (plain(m, t, n), 1.0),
    "returns nothing yet": lambda m, t, n: None,
    "should have 2 numbers": lambda m, t, n: plain(m, t, n),
    "raised TypeError": lambda m, t: 0.0,
    "excess, is wrong. In one hidden case": both(lambda m, t, n: (m - t).sum() / n.sum() + 1),
}


@pytest.mark.parametrize("hint", WRONG_EXCESSES)
def test_wrong_excesses_are_named(hint):
    verdict = grade_excess(WRONG_EXCESSES[hint])
    assert not verdict
    assert hint in verdict.says


@pytest.mark.parametrize(
    ("hint", "answer"),
    [
        ("cut off what is negative", both(lambda m, t, n: max(plain(m, t, n), 0.0))),
        (
            "because it is long",
            lambda m, t, n: (plain(m, t, n), (m - t).std() / len(n) ** 0.5 / n.float().mean()),
        ),
        (
            "error of a mean of ratios",
            lambda m, t, n: (plain(m, t, n), np.std(((m - t) / n).numpy()) / len(n) ** 0.5),
        ),
        (
            "sentences scatter",
            lambda m, t, n: (plain(m, t, n), (m - t - plain(m, t, n) * n).std() / n.float().mean() * 1.0),
        ),
    ],
)
def test_other_ways_to_make_one_mistake_in_an_excess(hint, answer):
    assert hint in grade_excess(answer).says


def test_a_mean_over_words_is_a_mean_too():
    answer = chain(join=lambda steps: sum(map(math.log, steps)) / (len(steps) - 1))
    assert "mean over the tokens" in grade_log_probability(answer).says


@pytest.mark.parametrize(
    ("bank", "tried"),
    [
        (known.LOG_PROBABILITY, WRONG_CHAINS),
        (known.PERPLEXITY, WRONG_PERPLEXITIES),
        (known.EXCESS | known.ERROR, WRONG_EXCESSES),
    ],
    ids=["log-probability", "perplexity", "excess"],
)
def test_each_known_mistake_is_tried_here(bank, tried):
    for hint in bank:
        assert sum(part in hint for part in tried) == 1, hint


def test_zero_is_a_word_where_it_is_not_the_padding():
    def perplexity(z, y, p):
        return F.cross_entropy(z.transpose(1, 2), y, ignore_index=p).exp()

    assert grade_perplexity(perplexity)
    assert not grade_perplexity(lambda z, y, p: perplexity(z, y.masked_fill(y == 0, p), p))
