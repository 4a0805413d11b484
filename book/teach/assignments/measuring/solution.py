"""A solution of *measuring*. It is public: see the page on assignments."""

import math

import torch


def windows(n_tokens, context, stride):
    """Plan which tokens each window reads and scores."""
    plan, start, scored = [], 0, 0
    while scored < n_tokens - 1:
        stop = min(start + context, n_tokens - 1)
        plan.append((start, stop, scored + 1))
        start, scored = start + stride, stop
    return plan


def bits(logits, ids, plan, pieces):
    """Score each token once, and return bits per character."""
    losses = []
    for scores, (start, stop, first) in zip(logits, plan, strict=True):
        log_p = scores.log_softmax(dim=-1)
        losses += [-log_p[token - 1 - start, ids[token]] for token in range(first, stop + 1)]
    losses = torch.stack(losses)
    characters = sum(len(piece) for piece in pieces[1:])
    return {"losses": losses, "bits": losses.sum() / math.log(2) / characters}


def calibration(logits, targets, n_bins):
    """Compare the confidence of predictions with their accuracy."""
    confidence, guess = logits.softmax(dim=-1).max(dim=-1)
    right = (guess == targets).double()
    number = (confidence * n_bins).long().clamp(max=n_bins - 1)
    rows, error = [], 0.0
    for each in range(n_bins):
        here = number == each
        if count := int(here.sum()):
            rows.append((count, float(confidence[here].mean()), float(right[here].mean())))
            error += count / len(targets) * abs(rows[-1][1] - rows[-1][2])
    return {"bins": rows, "ece": error}


def best_temperature(logits, targets):
    """Find the temperature with the least loss, by bisection in its inverse."""
    logits = logits - logits.amax(dim=-1, keepdim=True)
    wanted = logits.gather(1, targets[:, None]).squeeze(1)

    def slope(inverse):  # of the loss, which is convex in the inverse
        mean = ((inverse * logits).softmax(dim=-1) * logits).sum(dim=-1)
        return float((mean - wanted).mean())

    low, high = 0.1, 10.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    loss = torch.logsumexp(low * logits, dim=-1) - low * wanted
    return {"temperature": 1 / low, "loss": float(loss.mean())}


def changed(losses, references, width):
    """Test whether a text has a passage that is too improbable."""

    def worst(text):
        size = min(width, len(text))
        means = [sum(text[i : i + size]) / size for i in range(len(text) - size + 1)]
        return max(means), means.index(max(means)) + 1

    statistic, first = worst(losses)
    above = sum(worst(each)[0] >= statistic for each in references)
    return {"statistic": statistic, "first": first, "p": (above + 1) / (len(references) + 1)}


WRITTEN = """
Question 1. Per token and per character, with strides 64 and 32:

    shakespeare-bpe    3.875 and 3.823 nats per token    2.150 and 2.122 bits per character
    shakespeare-char   1.559 and 1.527 nats per token    2.250 and 2.203 bits per character

The byte-pair model predicts the sonnets better, by 0.08 bits per character with stride 32. Its tokens have
2.6 characters on average, so each is harder to predict; per token, the models do not predict the same
things. Part of its lead may be context, since 64 of its tokens are more text than 64 characters. Stride 32
is fairer. With stride 64, the first tokens of each window are predicted from almost nothing; with stride
32, all but the first 64 tokens of the text have at least 32 before them.

Question 2. Error 0.115 and temperature 1.287 on the sonnets, 0.007 and 1.004 on 8,820 predictions of the
model's own texts. There, the targets were sampled from the very distribution that is judged, so the loss is
expected to be its entropy, and every other temperature to lose more; what differs from 1 is chance. On text
that it has not seen, the model is too certain: its card reports a loss of 2.80 nats in training and 3.53 on
held-out plays, and it is as certain as training has made it. So its best temperature is above 1. The first
462 of its own predictions have an error of 0.046, although the model is calibrated there by construction.
With few predictions in a bin, their accuracy differs from their confidence by chance, and absolute
differences do not cancel. In 19 such parts the error is 0.033 to 0.064, so about half of the sonnets' 0.115
may be chance. The temperature shows their excess more clearly: in the same parts it is 0.94 to 1.07.

Question 3. Of the 40 texts, p is at most 0.05

    at width 2      in 3 before the change and in 34 after it
    at width 63     in 0 before the change and in 4 after it

Before the change, that happens by chance in one text of 20, so 2 are expected. A random token has a large
loss. In a mean of two tokens this shows; in a mean of 63 it drowns in what texts differ by anyhow. Of the 7
pieces of the sonnets, all have p at most 0.03. Nobody changed them: p says how rarely the model's own texts
are as improbable, and the sonnets are not of that kind. To find changes in a sonnet, the references must be
sonnets.
"""


def measure(read, texts, model, text):
    """Return the numbers of the written part, of what the notebook defines there."""

    def instruments(logits, targets):
        return calibration(logits, targets, 10)["ece"], best_temperature(logits, targets)["temperature"]

    found = {}
    for name in ("shakespeare-bpe", "shakespeare-char"):
        for stride in (64, 32):
            logits, ids, plan, pieces = read(name, text, stride)
            result = bits(logits, ids, plan, pieces)
            found[name, stride] = float(result["losses"].mean()), float(result["bits"])
    logits, ids, plan, _ = read("shakespeare-bpe", text, 32)
    rows = [scores[first - 1 - start :] for scores, (start, _, first) in zip(logits, plan, strict=True)]
    with torch.no_grad():
        own, targets = model(texts[:, :-1]).double().flatten(end_dim=1), texts[:, 1:].flatten()
    predictions = {
        "sonnets": (torch.cat(rows), torch.tensor(ids[1:])),
        "own": (own, targets),
        "few": (own[: len(ids) - 1], targets[: len(ids) - 1]),
    }
    for name, pair in predictions.items():
        found[name] = instruments(*pair)
    parts = zip(own.split(len(ids) - 1), targets.split(len(ids) - 1), strict=True)
    found["parts"] = [instruments(*pair) for pair in parts if len(pair[0]) == len(ids) - 1]

    def losses(rows):
        with torch.no_grad():
            log_p = model(rows[:, :-1]).double().log_softmax(dim=-1)
        return (-log_p.gather(2, rows[:, 1:, None]).squeeze(2)).tolist()

    generator = torch.Generator().manual_seed(0)
    other, lines = texts[100:].clone(), torch.arange(40)
    where = torch.randint(1, 64, (40,), generator=generator)
    other[lines, where] = torch.randint(259, 1259, (40,), generator=generator)  # a token that is no byte
    pieces = torch.tensor(ids[: len(ids) // 64 * 64]).reshape(-1, 64)
    references = losses(texts[:99])
    for width in (2, 63):
        for name, rows in (("before", texts[100:]), ("after", other), ("sonnets", pieces)):
            found[name, width] = [changed(each, references, width)["p"] for each in losses(rows)]
    return found
