"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from answer_banks import answer_test, bank_test

from exformer_lessons.language_model import mistakes as known
from exformer_lessons.language_model.grader import grade_leak, grade_perplexity


def other_than(ids, step=1, vocab_size=6):
    """Copy ids, with another last token."""
    other = ids.clone()
    other[0, -1] = (other[0, -1] + step) % vocab_size
    return other


def leak_by_clone(model, ids):
    return not torch.equal(model(ids)[:, :-1], model(other_than(ids))[:, :-1])


def leak_by_cutting(model, ids):
    """Take it that the text without its last token has the same outputs."""
    return not torch.allclose(model(ids)[:, :-1], model(ids[:, :-1]))


def leak_by_every_token(model, ids):
    """Try all tokens of the vocabulary as the last."""
    [beginning], size = ids[:, :-1].tolist(), model(ids).size(-1)
    found = [model(torch.tensor([[*beginning, token]]))[0, :-1] for token in range(size)]
    return torch.stack(found).std(dim=0).max() > 1e-6


def leak_by_batch(model, ids):
    """Both texts in one batch."""
    one, two = model(torch.cat([ids, other_than(ids, 3)]))[:, :-1].softmax(dim=-1)
    return (one - two).abs().max().item() > 1e-7


def leak_by_lists(model, ids):
    a, b = (model(each)[0, :-1].tolist() for each in (ids, other_than(ids, 2)))
    pairs = ((x, y) for rows in zip(a, b, strict=True) for x, y in zip(*rows, strict=True))
    return any(not math.isclose(x, y, abs_tol=1e-9) for x, y in pairs)


def leak_at_every_cut(model, ids):
    """Change all tokens from each position on."""
    before, found = model(ids), False
    for cut in range(1, ids.size(1)):
        after = model(torch.cat([ids[:, :cut], (ids[:, cut:] + 1) % 6], dim=1))
        found |= bool((before[:, :cut] != after[:, :cut]).any())
    return found


LEAKS = {
    "clone": leak_by_clone,
    "every token": leak_by_every_token,
    "one batch": leak_by_batch,
    "lists": leak_by_lists,
    "every cut": leak_at_every_cut,
    "numpy": lambda f, x: not np.allclose(f(x)[0, :-1].numpy(), f(other_than(x))[0, :-1].numpy()),
    "0 or 1": lambda f, x: int(leak_by_clone(f, x)),
}


def in_place(model, ids):
    """Both names are of the same tensor."""
    other = ids
    other[0, -1] = (other[0, -1] + 1) % 6
    return not torch.equal(model(ids)[:, :-1], model(other)[:, :-1])


def moved(model, ids, at=-1):
    other = ids.clone()
    other[0, at] = (other[0, at] + 1) % 6
    return (model(ids) - model(other)).abs()[0]


def two_changed(model, ids):
    other = ids.clone()
    other[0, -2:] = (other[0, -2:] + 1) % 6
    return not torch.equal(model(ids)[:, :-1], model(other)[:, :-1])


def loss_of_the_text(model, ids):
    def loss(ids):
        return F.cross_entropy(model(ids[:, :-1])[0], ids[0, 1:])

    return loss(ids).item() != loss(other_than(ids)).item()


def always_the_first(model, ids):
    other = ids.clone()
    other[0, -1] = 0
    return not torch.equal(model(ids)[:, :-1], model(other)[:, :-1])


def the_first_again(model, ids):
    other = ids.clone()
    other[0, -1] = ids[0, 0]
    return not torch.equal(model(ids)[:, :-1], model(other)[:, :-1])


WRONG_LEAKS = {
    "True where there is no leak": lambda f, x: torch.allclose(f(x)[:, :-1], f(other_than(x))[:, :-1]),
    "a leak in every model": [
        lambda f, x: not torch.equal(f(x), f(other_than(x))),
        lambda f, x: moved(f, x)[-1].max() > 0,
        lambda f, x: moved(f, x, 0)[1:].max() > 0,
        two_changed,
        loss_of_the_text,
    ],
    "no leak in any model": [in_place, lambda f, x: bool((f(x) != f(x)).any())],
    "may be the old one": [always_the_first, the_first_again],
    "outputs may depend on the length": [
        leak_by_cutting,
        lambda f, x: not torch.allclose(f(torch.cat([x, x[:, :1]], dim=1))[:, :-1], f(x)),
    ],
    "output just before the last alone": lambda f, x: moved(f, x)[-2].max().item() > 1e-6,
    "first output alone": lambda f, x: moved(f, x)[0].max().item() > 1e-6,
    "most probable tokens": lambda f, x: (f(x).argmax(2) != f(other_than(x)).argmax(2))[:, :-1].any(),
    "differences cancel": lambda f, x: abs((f(x) - f(other_than(x)))[:, :-1].mean().item()) > 1e-7,
    "tolerance is too large": [
        lambda f, x: moved(f, x)[:-1].max() > 0.1,
        lambda f, x: not np.allclose(moved(f, x)[:-1], 0, atol=0.1),
    ],
    "should be one number": lambda f, x: (moved(f, x)[:-1] > 0).any(dim=-1),
    "returns nothing": lambda f, x: None,
    "raised IndexError": lambda f, x: bool(f(x + 1).any()),
    "In one hidden case the number should be": lambda f, x: moved(f, x)[:-1].max(),
}

test_leaks = answer_test(grade_leak, right=LEAKS, wrong=WRONG_LEAKS)


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
    "You reshape after a transpose": lambda z, y, p: F.cross_entropy(
        z.transpose(1, 2).reshape(-1, z.size(-1)), y.flatten(), ignore_index=p
    ).exp(),
    "one position off": lambda z, y, p: perplexity_by_torch(z[:, :-1], y[:, 1:], p),
    "returns nothing": lambda z, y, p: None,
    "should be one number": lambda z, y, p: per_sentence(z, y, p).exp(),
    "raised IndexError": lambda z, y, p: z[99],
    "the number should be": lambda z, y, p: perplexity_by_torch(z, y, p) + 1,
}


test_perplexities = answer_test(
    grade_perplexity,
    right=PERPLEXITIES,
    wrong=WRONG_PERPLEXITIES,
    refused={"0 is no word": lambda z, y, p: perplexity_by_torch(z, y.masked_fill(y == 0, p), p)},
)


test_known = bank_test((known.LEAK, WRONG_LEAKS), (known.PERPLEXITY, WRONG_PERPLEXITIES))
