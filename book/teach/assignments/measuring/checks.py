"""The hidden cases of *measuring* and its known mistakes. They are public: see the page on assignments."""

import math
from itertools import pairwise

import torch

D = torch.float64


def some(*shape, seed, scale=2.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=D)


# -------------------------------------------------------------------------------- windows


def plan(n_tokens, context, stride):
    """Plan windows rightly, to change it in what follows."""
    stops = [context]
    while stops[-1] < n_tokens - 1:
        stops.append(stops[-1] + stride)
    rows = [(stop - context, min(stop, n_tokens - 1)) for stop in stops] if n_tokens > 1 else []
    return [(*row, 1 + before[1]) for row, before in zip(rows, [(0, 0), *rows], strict=False)]


def scores_all(n_tokens, context, stride):
    return [(start, stop, start + 1) for start, stop, _ in plan(n_tokens, context, stride)]


def reads_the_last(n_tokens, context, stride):
    return plan(n_tokens + 1, context, stride)


def goes_on(n_tokens, context, stride):
    rows, before = [], 0
    for start in range(0, n_tokens - 1, stride):
        stop = min(start + context, n_tokens - 1)
        rows.append((start, stop, before + 1))
        before = stop
    return rows


def drops_the_rest(n_tokens, context, stride):
    return [row for row in plan(n_tokens, context, stride) if row[1] - row[0] == context]


def moves_the_last(n_tokens, context, stride):
    return [(max(0, stop - context), stop, first) for _, stop, first in plan(n_tokens, context, stride)]


def skips_the_beginning(n_tokens, context, stride):
    return [
        (start, stop, first if start else 1 + context - stride)
        for start, stop, first in plan(n_tokens, context, stride)
    ]


def numbers_inputs(n_tokens, context, stride):
    return [(start, stop, first - 1) for start, stop, first in plan(n_tokens, context, stride)]


def fits_the_target(n_tokens, context, stride):
    return plan(n_tokens, max(1, context - 1), min(stride, max(1, context - 1)))


# ----------------------------------------------------------------------------------- bits


def score(logits, ids, plan, pieces, *, row=lambda token, start, first: token - 1 - start, shift=0):
    found = [
        -scores.log_softmax(-1)[row(token, start, first), ids[token - shift]]
        for scores, (start, stop, first) in zip(logits, plan, strict=True)
        for token in range(first, stop + 1)
    ]
    return told(torch.stack(found), pieces)


def told(losses, pieces, per=None):
    per = sum(map(len, pieces[1:])) if per is None else per
    return {"losses": losses, "bits": losses.sum() / math.log(2) / per}


def softmax_first(logits, ids, plan, pieces):
    large = [scores.exp() / scores.exp().sum(-1, keepdim=True) for scores in logits]
    return score([scores.log() for scores in large], ids, plan, pieces)


def counts_twice(logits, ids, plan, pieces):
    return score(logits, ids, [(start, stop, start + 1) for start, stop, _ in plan], pieces)


def with_bits(function):
    """Return a function that returns other bits per character, of the right losses."""

    def wrong(logits, ids, plan, pieces):
        found = score(logits, ids, plan, pieces)
        return found | {"bits": function(found["losses"], plan, pieces)}

    return wrong


def mean_of_windows(losses, plan, pieces):
    found = []
    for _, stop, first in plan:
        characters = sum(map(len, pieces[first : stop + 1]))
        found.append(losses[first - 1 : stop].sum() / math.log(2) / characters)
    return torch.stack(found).mean()


WORDS = ["Who", " is", " it", "?\n", "I", "t", " is", " café", "—", " no", "."]
IDS = [3, 1, 4, 1, 5, 2, 6, 5, 3, 0, 7]
ONE, OVER = [(0, 4, 1)], [(0, 4, 1), (2, 6, 5), (4, 8, 7), (6, 10, 9)]


def text(plan, seed, n=11):
    """Return arguments of `bits`: logits of each window, ids, plan and pieces."""
    logits = [some(stop - start, 8, seed=seed + start) for start, stop, _ in plan]
    return logits, IDS[:n], plan, WORDS[:n]


# ---------------------------------------------------------------------------- calibration


def table(logits, targets, n_bins, *, confidence=None, guess=None, edges=None, empty=False, center=False):
    best, top = logits.softmax(-1).max(-1)
    confidence = best if confidence is None else confidence
    right = ((top if guess is None else guess) == targets).double()
    edges = torch.arange(n_bins + 1, dtype=D) / n_bins if edges is None else edges
    rows = []
    for n, (low, high) in enumerate(pairwise(edges)):
        here = (confidence >= low) & ((confidence < high) | ((n == n_bins - 1) & (confidence <= high)))
        mean = (low + high) / 2 if center else confidence[here].mean()
        rows += [(int(here.sum()), float(mean), float(right[here].mean()))] if here.any() else []
        rows += [(0, 0.0, 0.0)] if empty and not here.any() else []
    return rows


def error(rows, gap=abs, over=None):
    total = sum(count for count, _, _ in rows) if over is None else over
    return sum(count / total * gap(mean - accuracy) for count, mean, accuracy in rows)


def by(how=error, **settings):
    """Return a calibration with another table or another error."""

    def wrong(logits, targets, n_bins):
        rows = table(logits, targets, n_bins, **settings)
        return {"bins": rows, "ece": how(rows)}

    return wrong


def of_targets(logits, targets, n_bins):
    seen = logits.softmax(-1).gather(1, targets[:, None]).squeeze(1)
    rows = table(logits, targets, n_bins, confidence=seen)
    return {"bins": rows, "ece": error(rows)}


def equal_counts(logits, targets, n_bins):
    confidence, top = logits.softmax(-1).max(-1)
    right, order, rows = (top == targets).double(), confidence.argsort(), []
    for part in order.tensor_split(n_bins):
        rows += [(len(part), float(confidence[part].mean()), float(right[part].mean()))] if len(part) else []
    return {"bins": rows, "ece": error(rows)}


def every_entry(logits, targets, n_bins):
    p = logits.softmax(-1)
    hit = torch.nn.functional.one_hot(targets, p.shape[1])
    rows = table(logits, hit.flatten(), n_bins, confidence=p.flatten(), guess=torch.ones(p.numel()))
    return {"bins": rows, "ece": error(rows)}


def of_logits(logits, targets, n_bins):
    rows = table(logits, targets, n_bins, confidence=logits.amax(-1))
    return {"bins": rows, "ece": error(rows) if rows else 0.0}


def without_one(logits, targets, n_bins):
    kept = logits.softmax(-1).amax(-1) < 1
    rows = table(logits[kept], targets[kept], n_bins)
    return {"bins": rows, "ece": error(rows, over=len(targets)) if rows else 0.0}


# ------------------------------------------------------------------------------ temperature


def tempered(logits, targets, temperature):
    return torch.nn.functional.cross_entropy(logits / temperature, targets)


def least(how, low=0.1, high=10.0):
    """Return the number between two bounds with the least value, by golden sections of its logarithm."""
    low, high, ratio = math.log(low), math.log(high), (5**0.5 - 1) / 2
    for _ in range(80):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if how(math.exp(left)) < how(math.exp(right)) else (left, high)
    return math.exp((low + high) / 2)


def at(temperature, logits, targets):
    return {"temperature": temperature, "loss": tempered(logits, targets, temperature)}


def inverted(logits, targets):
    best = least(lambda t: tempered(logits, targets, t))
    return {"temperature": 1 / best, "loss": tempered(logits, targets, best)}


def of_probabilities(logits, targets):
    p = logits.softmax(-1)
    return at(least(lambda t: tempered(p, targets, t)), p, targets)


def of_top(logits, targets):
    top = logits.argmax(-1)
    return at(least(lambda t: tempered(logits, top, t)), logits, top)


def coarse(step):
    """Return a search through a grid."""

    def wrong(logits, targets):
        grid = torch.arange(round(0.1 / step), round(10 / step) + 1, dtype=D) * step
        log_p = (logits / grid[:, None, None]).log_softmax(-1)
        best = log_p[:, torch.arange(len(targets)), targets].mean(-1).argmax()
        return at(float(grid[best]), logits, targets)

    return wrong


def between(low, high):
    return lambda logits, targets: at(
        least(lambda t: tempered(logits, targets, t), low, high), logits, targets
    )


def loss_before(logits, targets):
    best = least(lambda t: tempered(logits, targets, t))
    return {"temperature": best, "loss": tempered(logits, targets, 1.0)}


def loss_in_bits(logits, targets):
    best = least(lambda t: tempered(logits, targets, t))
    return {"temperature": best, "loss": tempered(logits, targets, best) / math.log(2)}


def loss_summed(logits, targets):
    best = least(lambda t: tempered(logits, targets, t))
    return {"temperature": best, "loss": tempered(logits, targets, best) * len(targets)}


def sampled(n, vocab, seed, temperature):
    """Return logits, and targets that are sampled from them at a temperature, which is then the best."""
    logits = some(n, vocab, seed=seed)
    generator = torch.Generator().manual_seed(seed + 1)
    return logits, (logits / temperature).softmax(-1).multinomial(1, generator=generator).squeeze(1)


# ---------------------------------------------------------------------------------- changed


def means(text, width, last=1):
    size = min(width, len(text))
    return [sum(text[i : i + size]) / size for i in range(max(1, len(text) - size + last))]


def examined(losses, references, width, *, of=means, most=max, above=lambda a, b: a >= b, add=1, begin=1):
    rows = of(losses, width)
    worst = most(rows)
    count = sum(above(most(of(each, width)), worst) for each in references)
    first = rows.index(worst) + begin if worst in rows else 1
    return {"statistic": worst, "first": first, "p": (count + add) / (len(references) + add)}


def changing(**settings):
    return lambda losses, references, width: examined(losses, references, width, **settings)


def place_of_end(losses, references, width):
    found = examined(losses, references, width)
    return found | {"first": found["first"] + min(width, len(losses)) - 1}


def last_place(losses, references, width):
    rows = means(losses, width)
    return examined(losses, references, width) | {"first": len(rows) - rows[::-1].index(max(rows))}


def pooled(losses, references, width):
    rows, all_rows = means(losses, width), [row for each in references for row in means(each, width)]
    count = sum(row >= max(rows) for row in all_rows)
    return examined(losses, references, width) | {"p": (count + 1) / (len(all_rows) + 1)}


def two_sided(losses, references, width):
    found = examined(losses, references, width)
    below = sum(max(means(each, width)) <= found["statistic"] for each in references)
    p = min(found["p"], (below + 1) / (len(references) + 1))
    return found | {"p": min(1.0, 2 * p)}


def only_long(text, width):
    """Return the means of whole windows: 0 for a text that is shorter."""
    return means(text, width) if len(text) >= width else [0.0]


def fixed_width(text, width):
    """Divide by the width, also where a text is shorter."""
    size = min(width, len(text))
    return [each * size / width for each in means(text, width)]


PLAIN = [1.0, 2.0, 0.5, 3.0, 0.25, 1.5]
ODD = [1.0, 0.5, 6.0, 5.0, 1.0, 0.5, 2.0]
LATE = [1.0, 0.5, 1.0, 2.0, 7.0]
OTHERS = [
    [2.0, 2.5, 1.0, 0.5, 3.0],
    [7.0, 4.0, 0.5, 0.5],
    [0.5, 1.0, 1.5, 4.0, 4.5, 2.0],
    [1.0, 6.0, 5.0, 1.0, 2.0],
    [5.0, 0.0, 0.5, 1.0, 2.5, 3.0],
]

# ---------------------------------------------------------------------------------- the checks

WITHOUT = {}

CHECKS = {
    "windows": [
        ("Windows side by side", 2, [(9, 4, 4), (12, 4, 4), (15, 4, 4), (21, 5, 5)]),
        ("Windows that overlap", 3, [(9, 4, 2), (12, 5, 2), (14, 6, 3), (14, 4, 1), (16, 8, 3)]),
        ("Texts of one window", 1, [(1, 4, 4), (3, 4, 4), (4, 4, 4), (5, 4, 4)]),
    ],
    "bits": [
        ("The losses of one window", 1, [text(ONE, 1, 5), text([(0, 3, 1)], 2, 4)], ["losses"]),
        ("The losses of windows that overlap", 2, [text(OVER, 3), text(OVER, 4)], ["losses"]),
        (
            "Large logits",
            1,
            [([9000 * torch.eye(3, dtype=D)], [0, 1, 1, 2], [(0, 3, 1)], ["a", "b", "b", "c"])],
            ["losses"],
        ),
        ("Bits per character", 2, [text(OVER, 5), text(ONE, 6, 5), text(OVER, 7)], ["bits"]),
    ],
    "calibration": [
        ("The bins", 3, [(*sampled(30, 4, 1, 2.0), 5), (*sampled(40, 6, 3, 1.0), 8)], ["bins"]),
        ("The error", 3, [(*sampled(30, 4, 5, 2.0), 5), (*sampled(40, 6, 7, 0.5), 10)], ["ece"]),
        (
            "Certain predictions",
            1,
            [(torch.tensor([[900.0, 0.0], [0.0, 900.0], [0.5, 0.0]], dtype=D), torch.tensor([0, 0, 1]), 10)],
        ),
    ],
    "best_temperature": [
        (
            "A model that is too certain",
            2,
            [sampled(60, 5, 11, 2.5), sampled(50, 7, 13, 1.7)],
            ["temperature"],
        ),
        (
            "A model that is too uncertain",
            1,
            [sampled(60, 5, 15, 0.6), sampled(50, 7, 17, 0.45)],
            ["temperature"],
        ),
        ("The loss", 2, [sampled(60, 5, 19, 2.2), sampled(40, 5, 21, 0.5)], ["loss"]),
        (
            "The bounds",
            1,
            [
                (torch.tensor([[3.0, 0.0], [0.0, 2.0]], dtype=D), torch.tensor([0, 1])),
                (torch.tensor([[3.0, 0.0], [0.0, 2.0]], dtype=D), torch.tensor([1, 0])),
            ],
            ["temperature"],
        ),
    ],
    "changed": [
        ("The statistic", 2, [(ODD, OTHERS, 2), (PLAIN, OTHERS, 4), (LATE, OTHERS, 2)], ["statistic"]),
        ("Where it is", 1, [(ODD, OTHERS, 2), ([3.0, 1.0, 3.0, 1.0, 0.0], OTHERS, 2)], ["first"]),
        (
            "The p-value",
            3,
            [([1.0, 4.5, 4.25, 0.5], OTHERS, 2), ([9.0, 9.0], OTHERS, 2), (ODD, OTHERS, 2)],
            ["p"],
        ),
        (
            "Texts shorter than the width",
            1,
            [([4.0, 2.0], [[5.0], [2.0, 2.5, 3.0], [1.0, 4.0, 4.0, 2.0, 1.0]], 4)],
        ),
    ],
}

MISTAKES = {
    "windows": {
        "A window scores all that it predicts, so tokens in an overlap count twice.": scores_all,
        "A window reads the last token, after which nothing is left to predict.": reads_the_last,
        "Windows go on after one has reached the end, and score nothing.": goes_on,
        "Tokens after the last full window are lost.": drops_the_rest,
        "You move the last window back until it is full; it begins at the next multiple of the stride.": (
            moves_the_last
        ),
        "The first window scores the end alone, so the text's beginning is lost.": skips_the_beginning,
        "You number the input from which a token is predicted, not the token.": numbers_inputs,
        "Your windows are a token too short: the target of the last input needs no room.": fits_the_target,
        "Your windows do not overlap: each begins a stride after the last.": (
            lambda n_tokens, context, stride: plan(n_tokens, context, context)
        ),
    },
    "bits": {
        "You score the token that a position reads, not the one that it predicts.": (
            lambda *case: score(*case, shift=1)
        ),
        "You take a window's first logits, but its first tokens were scored before.": (
            lambda *case: score(*case, row=lambda token, start, first: token - first)
        ),
        "Tokens in an overlap count twice.": counts_twice,
        "The exponential of large logits overflows: use log_softmax.": softmax_first,
        "That is bits per token.": with_bits(lambda losses, plan, pieces: losses.mean() / math.log(2)),
        "That is nats per character: divide by ln 2.": with_bits(
            lambda losses, plan, pieces: losses.sum() / sum(map(len, pieces[1:]))
        ),
        "You multiply by ln 2 instead of dividing.": with_bits(
            lambda losses, plan, pieces: losses.sum() * math.log(2) / sum(map(len, pieces[1:]))
        ),
        "You count the characters of the first token, which no window scores.": with_bits(
            lambda losses, plan, pieces: told(losses, pieces, sum(map(len, pieces)))["bits"]
        ),
        "That is bits per byte: some characters have several.": with_bits(
            lambda losses, plan, pieces: told(losses, pieces, len("".join(pieces[1:]).encode()))["bits"]
        ),
        "You average over windows, though they score different numbers of characters.": with_bits(
            mean_of_windows
        ),
    },
    "calibration": {
        "Every bin counts alike: weight it by its number of predictions.": by(
            lambda rows: sum(abs(mean - accuracy) for _, mean, accuracy in rows) / len(rows)
        ),
        "Gaps cancel: take their absolute values.": [
            by(lambda rows: error(rows, gap=float)),
            by(lambda rows: error(rows, gap=lambda gap: -gap)),
            by(lambda rows: abs(error(rows, gap=float))),
        ],
        "You square the gaps.": [
            by(lambda rows: error(rows, gap=lambda gap: gap**2)),
            by(lambda rows: error(rows, gap=lambda gap: gap**2) ** 0.5),
        ],
        "That is the largest gap, not the expected one.": by(
            lambda rows: max(abs(mean - accuracy) for _, mean, accuracy in rows)
        ),
        "You do not divide by the number of predictions.": by(lambda rows: error(rows, over=1)),
        "You take the probability of the target, not that of the model's first choice.": of_targets,
        "Your bins have equal counts, not equal widths.": equal_counts,
        "You take every token's probability, not only that of the first choice.": every_entry,
        "You take logits for probabilities.": of_logits,
        "You take the middle of a bin for its mean confidence.": by(center=True),
        "Bins without a prediction are left out.": by(empty=True),
        "A confidence of exactly 1 falls out of your bins.": without_one,
    },
    "best_temperature": {
        "That is the inverse of the temperature.": inverted,
        "You divide probabilities by the temperature, not logits.": of_probabilities,
        "You take the model's first choices for the targets.": of_top,
        "Your temperatures are too far apart.": [coarse(0.1), coarse(0.05), coarse(0.01), coarse(0.001)],
        "You search above 1 alone, but a model can be too uncertain.": between(1.0, 10.0),
        "You search below 1 alone, but a model can be too certain.": between(0.1, 1.0),
        "That is the loss before you changed the temperature.": loss_before,
        "Your loss is in bits.": loss_in_bits,
        "Your loss is a sum, not a mean.": loss_summed,
        "You search beyond the bounds.": between(0.01, 100.0),
    },
    "changed": {
        "You miss the last window.": changing(of=lambda text, width: means(text, width, last=0)),
        "That is a sum, not a mean.": changing(
            of=lambda text, width: [each * min(width, len(text)) for each in means(text, width)]
        ),
        "That is the mean of the whole text.": changing(of=lambda text, width: [sum(text) / len(text)]),
        "That is the largest single loss.": changing(of=lambda text, width: text),
        "You take the most probable window, not the least probable one.": changing(most=min),
        "The first loss belongs to token 1, since nothing predicts token 0.": changing(begin=0),
        "You return where the window ends.": place_of_end,
        "Of equal windows, take the first.": last_place,
        "The text itself is one of those that can be as extreme: add 1 above and below.": changing(add=0),
        "A reference that is as improbable counts too.": changing(above=lambda a, b: a > b),
        "You count the references that are more probable.": changing(above=lambda a, b: a <= b),
        "Compare with the largest mean of each reference, not with all its windows.": pooled,
        "Only a passage that is too improbable counts, so the test has one side.": two_sided,
        "A shorter text is one window.": changing(of=only_long),
        "Divide a shorter text's sum by its own length.": changing(of=fixed_width),
    },
}
