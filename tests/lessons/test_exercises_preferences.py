"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from answer_banks import answer_test

from exformer import dpo_loss, group_advantages
from exformer.training.preferences import completion_mask
from exformer_lessons.preferences.grader import grade_dpo, grade_group
from exformer_lessons.preferences.mistakes import DPO, FAR, GROUP, NOT_STABLE, ROUNDED_GROUP


def margin(w, x, rw, rx):
    return (w.sum() - rw.sum()) - (x.sum() - rx.sum())


def of_python(w, x, rw, rx, beta):
    m = sum(w.tolist()) - sum(rw.tolist()) - sum(x.tolist()) + sum(rx.tolist())
    return math.log1p(math.exp(-beta * m))


def log_of_two_probabilities(w, x, rw, rx, beta):
    ours, theirs = (beta * (a - b).sum() for a, b in ((w, rw), (x, rx)))
    return -torch.stack([ours, theirs]).log_softmax(dim=0)[0]


def binary_cross_entropy(w, x, rw, rx, beta):
    return F.binary_cross_entropy_with_logits(beta * margin(w, x, rw, rx), torch.ones((), dtype=w.dtype))


def signs_in_float32(w, x, rw, rx, b):
    signs = torch.tensor([1.0, -1.0, -1.0, 1.0])
    return -F.logsigmoid(b * signs @ torch.stack([part.sum() for part in (w, x, rw, rx)]))


RIGHT_DPO = {
    "python": of_python,
    "signs in float32": signs_in_float32,
    "softmax": log_of_two_probabilities,
    "binary": binary_cross_entropy,
    "softplus": lambda *c: F.softplus(-c[4] * margin(*c[:4])),
    "numpy": lambda *c: np.logaddexp(0, -c[4] * float(margin(*c[:4]))),
    "one number in a list": lambda *c: [of_python(*c)],
    "library": lambda w, x, rw, rx, b: dpo_loss(
        w.sum()[None],
        x.sum()[None],
        reference_chosen=rw.sum()[None],
        reference_rejected=rx.sum()[None],
        beta=b,
    ),
}


def loss(m, b):
    return -F.logsigmoid(torch.as_tensor(b * m))


WRONG_DPO = {
    "leave the reference out": lambda w, x, rw, rx, b: loss(w.sum() - x.sum(), b),
    "use the preferred text alone": [
        lambda w, x, rw, rx, b: -w.mean(),
        lambda w, x, rw, rx, b: loss(w.sum() - rw.sum(), b),
    ],
    "margin has the wrong sign": lambda w, x, rw, rx, b: F.softplus(b * margin(w, x, rw, rx)),
    "loss has the wrong sign": lambda *c: -of_python(*c),
    "average over the tokens": lambda w, x, rw, rx, b: loss(w.mean() - rw.mean() - x.mean() + rx.mean(), b),
    "outside of the sigmoid": lambda w, x, rw, rx, b: b * F.softplus(-margin(w, x, rw, rx)),
    "Beta is missing": lambda w, x, rw, rx, b: loss(margin(w, x, rw, rx), 1.0),
    "divide by beta": lambda w, x, rw, rx, b: loss(margin(w, x, rw, rx), 1 / b),
    "sigmoid is missing": lambda w, x, rw, rx, b: -b * margin(w, x, rw, rx),
    "logarithm is missing": lambda w, x, rw, rx, b: torch.sigmoid(-b * margin(w, x, rw, rx)),
    "references have the wrong signs": lambda w, x, rw, rx, b: loss(margin(w, x, -rw, -rx), b),
    "Beta multiplies the whole margin": lambda w, x, rw, rx, b: F.softplus(
        x.sum() - rx.sum() - b * (w.sum() - rw.sum())
    ),
    "You cut the margin or the sigmoid off": lambda *c: (
        -(torch.sigmoid(c[4] * margin(*c[:4])).clamp(min=1e-6)).log()
    ),
    "of a pair that is wrong by far": lambda *c: loss(margin(*c[:4]).clamp(-50 / c[4], 50 / c[4]), c[4]),
    "compare probabilities": lambda w, x, rw, rx, b: loss(
        (w.sum() - rw.sum()).exp() - (x.sum() - rx.sum()).exp(), b
    ),
    "returns nothing": lambda *case: None,
    "raised TypeError": lambda w, x: None,
}


NOT_STABLE_DPO = [
    lambda *c: -torch.sigmoid(c[4] * margin(*c[:4])).log(),
    lambda *c: (1 + (-c[4] * margin(*c[:4])).exp()).log(),
]

test_losses_of_a_pair = answer_test(
    grade_dpo,
    right=RIGHT_DPO,
    told={NOT_STABLE: NOT_STABLE_DPO},
    wrong=WRONG_DPO,
    refused={"nearly right": lambda *case: of_python(*case) * 1.001},
)


def rows_of(ids, prompt_length, eos_id):
    """Return the positions that count, row by row."""
    found = []
    for row in ids.tolist():
        end = next((t for t in range(prompt_length, len(row)) if row[t] == eos_id), len(row) - 1)
        found.append(range(prompt_length, end + 1))
    return found


def by_loops(log_p, ids, rewards, prompt_length, eos_id, *, epsilon=0.0):
    r, n = rewards.tolist(), len(rewards)
    mean = sum(r) / n
    s = math.sqrt(sum((x - mean) ** 2 for x in r) / (n - 1))
    total = 0.0
    for x, row, places in zip(r, log_p.tolist(), rows_of(ids, prompt_length, eos_id), strict=True):
        advantage = (x - mean) / (s + epsilon) if max(r) > min(r) else 0.0
        total += advantage * sum(row[t] for t in places)
    return -total / n


def by_index(log_p, ids, rewards, prompt_length, eos_id):
    p, rest = log_p[:, prompt_length:], ids[:, prompt_length:]
    is_end = rest == eos_id
    end = torch.where(is_end.any(dim=1), is_end.int().argmax(dim=1), rest.size(1))
    mask = torch.arange(rest.size(1)) <= end[:, None]
    a = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
    return -torch.einsum("n,nt,nt->", a, p, mask.to(p.dtype)) / len(a)


RIGHT_GROUP = {
    "loops": by_loops,
    "a mask in float32": lambda p, ids, r, n, eos: (
        -(standard(r) @ torch.einsum("nt,nt->n", p, mask_of(ids, n, eos).float())) / len(r)
    ),
    "epsilon 1e-4": lambda *case: by_loops(*case, epsilon=1e-4),
    "index of the end": by_index,
    "numpy": lambda *case: np.array(by_loops(*case)),
    "reversed": lambda p, ids, r, n, eos: by_loops(p.flip(0), ids.flip(0), r.flip(0), n, eos),
}


def standard(r):
    return group_advantages(r[None])[0]


def weighted(p, mask, a):
    return -(a * (p * mask).sum(dim=1)).mean()


def mask_of(ids, n, eos):
    return completion_mask(ids, prompt_length=n, eos_id=eos)


def places(ids):
    return torch.arange(ids.size(1)).expand(ids.shape)


WRONG_GROUP = {
    "count the padding": lambda p, ids, r, n, eos: weighted(p, places(ids) >= n, standard(r)),
    "count the prompt:": lambda p, ids, r, n, eos: weighted(
        p, mask_of(ids, n, eos) | (places(ids) < n), standard(r)
    ),
    "count prompt and padding": lambda p, ids, r, n, eos: weighted(p, ids >= 0, standard(r)),
    "leave the end token out": lambda p, ids, r, n, eos: weighted(
        p, (places(ids) >= n) & (ids != eos) & (ids != 0), standard(r)
    ),
    "An end token in the prompt": lambda p, ids, r, n, eos: weighted(
        p, (((ids == eos).cumsum(1) - (ids == eos).int()) == 0) & (places(ids) >= n), standard(r)
    ),
    "divide by 1 at least": lambda p, ids, r, n, eos: weighted(
        p, mask_of(ids, n, eos), (r - r.mean()) / max(1.0, r.std().item())
    ),
    "cut off large advantages": lambda p, ids, r, n, eos: weighted(
        p, mask_of(ids, n, eos), standard(r).clamp(-2, 2)
    ),
    "begins one token early": lambda p, ids, r, n, eos: by_loops(p, ids, r, n - 1, eos),
    "off by one": lambda p, ids, r, n, eos: weighted(
        p, mask_of(ids, n, eos) & (places(ids) != n), standard(r)
    ),
    "divide 0 by 0": lambda p, ids, r, n, eos: weighted(p, mask_of(ids, n, eos), (r - r.mean()) / r.std()),
    "Equal rewards of 0.1": lambda p, ids, r, n, eos: weighted(
        p, mask_of(ids, n, eos), (r - r.mean()) / r.std() if r.std() > 0 else torch.zeros_like(r)
    ),
    "so compare the rewards": lambda p, ids, r, n, eos: weighted(
        p, mask_of(ids, n, eos), torch.nan_to_num((r - r.mean()) / r.std())
    ),
    "do not subtract the mean": lambda p, ids, r, n, eos: weighted(p, mask_of(ids, n, eos), r),
    "do not divide by the standard": lambda p, ids, r, n, eos: weighted(
        p, mask_of(ids, n, eos), r - r.mean()
    ),
    "divide by the variance": lambda p, ids, r, n, eos: weighted(
        p, mask_of(ids, n, eos), torch.nan_to_num((r - r.mean()) / r.std() ** 2)
    ),
    "divides by n": lambda p, ids, r, n, eos: weighted(
        p, mask_of(ids, n, eos), torch.nan_to_num((r - r.mean()) / r.std(correction=0))
    ),
    "sign is turned": lambda *case: -by_loops(*case),
    "add over the texts": lambda *case: by_loops(*case) * len(case[2]),
    "average over the tokens of each": lambda p, ids, r, n, eos: weighted(
        p / mask_of(ids, n, eos).sum(1, keepdim=True), mask_of(ids, n, eos), standard(r)
    ),
    "number of all tokens": lambda p, ids, r, n, eos: (
        by_loops(p, ids, r, n, eos) * len(r) / mask_of(ids, n, eos).sum()
    ),
    "use probabilities": lambda p, ids, r, n, eos: (
        -(standard(r) * (p * mask_of(ids, n, eos)).sum(1).exp()).mean()
    ),
    "returns nothing": lambda *case: None,
}


test_losses_of_a_group = answer_test(
    grade_group,
    right=RIGHT_GROUP,
    wrong=WRONG_GROUP,
    refused={"nearly right": lambda *case: by_loops(*case) * 1.01},
)


@pytest.mark.parametrize(
    ("grader", "bank"), [(grade_dpo, DPO), (grade_dpo, FAR), (grade_group, GROUP | ROUNDED_GROUP)]
)
def test_each_known_mistake_gets_its_own_hint(grader, bank):
    for hint, mistakes in bank.items():
        for mistake in mistakes if isinstance(mistakes, tuple) else (mistakes,):
            verdict = grader(lambda *case, mistake=mistake: mistake(*case))
            assert bool(verdict) == (hint == NOT_STABLE)
            assert verdict.says.endswith(hint)
