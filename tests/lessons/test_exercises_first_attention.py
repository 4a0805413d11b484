"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import math

import pytest
import torch
from answer_banks import answer_test, bank_test

from exformer.nn.attention import scaled_dot_product_attention
from exformer_lessons.exercises.grading import FINITE_FILL, NOT_STABLE
from exformer_lessons.first_attention import mistakes as known
from exformer_lessons.first_attention.grader import grade_agreement, grade_context


def by_library(h_d, h_e, real):
    return scaled_dot_product_attention(h_d * math.sqrt(h_d.size(-1)), h_e, h_e, mask=real[:, None])[0]


def by_loops(h_d, h_e, real):
    out = torch.zeros_like(h_d)
    for b in range(len(h_d)):
        states = h_e[b][real[b]]  # the real ones only
        for i, state in enumerate(h_d[b]):
            fit = torch.exp(torch.stack([state @ other for other in states]))
            out[b, i] = sum(f * other for f, other in zip(fit, states, strict=True)) / fit.sum()
    return out


def in_place(h_d, h_e, real):
    h_e[~real] = 0  # changes what it was given
    scores = torch.einsum("btd,bsd->bts", h_d, h_e)
    scores[~real[:, None].expand_as(scores)] = -1e30
    return torch.softmax(scores, 2).bmm(h_e)


#: Their exponentials vanish where all scores are low.
VANISHING = {
    "loops": by_loops,
    "weights too": lambda d, e, r: (by_loops(d, e, r), None),
    "float64": lambda d, e, r: by_loops(d.double(), e.double(), r),
}
CONTEXTS = {
    "library": by_library,
    "in place": in_place,
    "numpy": lambda *case: by_library(*case).numpy(),
    "torch": lambda d, e, r: torch.nn.functional.scaled_dot_product_attention(
        d, e, e, attn_mask=r[:, None], scale=1.0
    ),
}


def scores_of(d, e, r, *, hide=-math.inf):
    return torch.where(r.unsqueeze(1), d.bmm(e.transpose(1, 2)), torch.tensor(hide))


def filled(d, e, r, *, hide):
    return scores_of(d, e, r, hide=hide).softmax(-1) @ e


def zeroed(d, e, r):
    states = e.masked_fill(~r[..., None], 0.0)
    return (d @ states.mT).softmax(-1) @ states


def hard(d, e, r):
    best = scores_of(d, e, r).max(dim=2).indices
    return torch.stack([states[places] for states, places in zip(e, best, strict=True)])


def shares(d, e, r):
    plain = scores_of(d, e, r, hide=0.0)
    return (plain / plain.sum(dim=2, keepdim=True)).bmm(e)


WRONG_CONTEXTS = {
    "divide the scores by √d_model": lambda d, e, r: scaled_dot_product_attention(d, e, e, mask=r[:, None])[
        0
    ],
    "mask of the first sentence": lambda d, e, r: torch.softmax(scores_of(d, e, r[:1]), dim=2) @ e,
    "a little below the scores": lambda d, e, r: (
        torch.softmax(scores_of(d, e, r, hide=(d @ e.mT).min().item() - 10), dim=2) @ e
    ),
    "Padding gets weight": lambda d, e, r: torch.softmax(d @ e.transpose(1, 2), dim=2) @ e,
    "exp(0) is 1": [lambda d, e, r: filled(d, e, r, hide=0.0), zeroed],
    "out after the softmax": lambda d, e, r: torch.softmax(d @ e.mT, 2).mul(r.unsqueeze(1)) @ e,
    "look at padding only": [  # with -inf instead of a number, these make NaN
        lambda d, e, r: filled(d, e, ~r, hide=-1e9),
        lambda d, e, r: filled(d, e, ~r, hide=-math.inf),
    ],
    "Your mask hides rows": [
        lambda d, e, r: torch.softmax(torch.where(r.unsqueeze(2), d @ e.mT, torch.tensor(-1e9)), 2) @ e,
        lambda d, e, r: (d @ e.mT).masked_fill(~r[..., None], -math.inf).softmax(-1) @ e,
    ],
    "over the Italian positions": [
        lambda d, e, r: torch.softmax(scores_of(d, e, r, hide=-1e9), 1) @ e,
        lambda d, e, r: scores_of(d, e, r).softmax(-2) @ e,
    ],
    "over the sentences of the batch": lambda d, e, r: torch.softmax(scores_of(d, e, r, hide=-1e9), 0) @ e,
    "The softmax is missing: scores": lambda d, e, r: scores_of(d, e, r, hide=0.0) @ e,
    "missing, and padding": lambda d, e, r: d @ (e.mT @ e),
    "divide the scores by their sum": shares,
    "the decoder's own states: the": lambda d, e, r: torch.softmax(scores_of(d, e, r), 2) @ d,
    "compare the decoder's states": lambda d, e, r: torch.softmax(scores_of(d, d, r), 2) @ e,
    "compare the encoder's states": lambda d, e, r: torch.softmax(scores_of(e, e, r), 2) @ e,
    "Queries and keys are exchanged": lambda d, e, r: torch.softmax(scores_of(e, d, r), 2) @ e,
    "scores are h_d @ h_e": lambda d, e, r: torch.softmax(scores_of(d, e.mT, r), 2) @ e,
    "have the same weight": lambda d, e, r: (
        torch.stack([states[real].mean(dim=0) for states, real in zip(e, r, strict=True)])
        .unsqueeze(1)
        .expand_as(d)
    ),
    "state that fits best": hard,
    "return the weights": lambda d, e, r: torch.softmax(scores_of(d, e, r), 2),
    "return the scores": lambda d, e, r: d.bmm(e.transpose(1, 2)),
    "one position late": [
        lambda d, e, r: by_library(torch.nn.functional.pad(d, (0, 0, 1, 0))[:, :-1], e, r),
        lambda d, e, r: by_library(d.roll(1, 1), e, r),
        lambda d, e, r: by_library(torch.cat((d[:, :1], d[:, :-1]), dim=1), e, r),
    ],
    "returns nothing": lambda d, e, r: ...,
    "should have the shape": lambda d, e, r: by_loops(d, e, r)[0],
    "raised IndexError": lambda d, e, r: d[99],
    "largest difference": lambda d, e, r: by_loops(d, e, r) + 1,
    "Where all scores are near -16,384, and padding comes first: The shape": lambda d, e, r: (
        by_library(d, e, r) + 3 * (d[..., :1] < -100)
    ),
}


def padding_by_its_number(d, e, r):
    states = [one[: int(real.sum())] for one, real in zip(e, r, strict=True)]
    return torch.stack([(q @ k.T).softmax(-1) @ k for q, k in zip(d, states, strict=True)])


def right_in_square_cases_only(d, e, r):
    return by_library(d, e, r) if d.shape == e.shape else torch.zeros_like(d)


test_contexts = answer_test(
    grade_context,
    right=CONTEXTS,
    told={NOT_STABLE: [*VANISHING.values(), lambda *case: by_loops(*case).nan_to_num()]},
    wrong=WRONG_CONTEXTS,
    refused=[padding_by_its_number, right_in_square_cases_only],
)


@pytest.mark.parametrize("hide", [-1.0, -10.0, -30.0, -100.0, -1e4])
def test_a_mask_that_fills_with_too_little_is_refused(hide):
    verdict = grade_context(lambda *case: filled(*case, hide=hide))
    assert not verdict
    assert verdict.says.endswith(FINITE_FILL)
    assert verdict.says.startswith("Where all scores are near -16,384") == (hide <= -30.0)


@pytest.mark.parametrize("hide", [-1e9, torch.finfo(torch.float32).min, -math.inf])
def test_a_mask_that_fills_with_enough_is_right(hide):
    assert grade_context(lambda *case: filled(*case, hide=hide)).says == grade_context(by_float64).says


def by_float64(d, e, r):
    return filled(d.double(), e.double(), r, hide=-math.inf)


def by_matrix(weights, alignment):
    truth = torch.zeros_like(weights, dtype=torch.bool)
    for source, target in alignment:
        truth[target, source] = True
    hit = truth.gather(1, weights.max(dim=1).indices[:, None])[:, 0]
    return hit[truth.any(dim=1)].float().mean()


def by_words(weights, alignment):
    mine = {}
    for source, target in alignment:
        mine.setdefault(target, []).append(source)
    right = [max(range(weights.size(1)), key=lambda j: weights[t][j]) in of_t for t, of_t in mine.items()]
    return sum(right) / len(right)


AGREEMENTS = {
    "matrix": by_matrix,
    "words": by_words,
    "item": lambda *case: by_matrix(*case).item(),
    "numpy": lambda *case: by_matrix(*case).numpy(),
    "one number in a table": lambda *case: by_matrix(*case)[None],
}


def hits(weights, alignment):
    best = weights.argmax(dim=1)
    return sum(best[target].item() == source for source, target in alignment)


def mass(weights, alignment):
    return sum(weights[target, source] for source, target in alignment)


def of_sources(weights, alignment):
    best = weights.argmax(dim=0).tolist()
    sources = {x for x, _ in alignment}
    return sum(best[x] in {y for z, y in alignment if z == x} for x in sources) / len(sources)


def by_a_square_table(weights, alignment):
    linked = torch.zeros(len(weights), len(weights))
    for source, target in alignment:
        linked[target, source] = 1
    return linked.gather(1, weights.argmax(1, keepdim=True)).sum() / linked.any(1).sum()


WRONG_AGREEMENTS = {
    "mix up the pair": lambda w, a: by_words(w, [(y, x) for x, y in a]),
    "of a column": [lambda w, a: by_words(w.T, a), of_sources],
    "number of links": lambda w, a: hits(w, a) / len(a),
    "number of all rows": lambda w, a: hits(w, a) / w.shape[0],
    "return a fraction": hits,
    "add up the weights": lambda w, a: mass(w, a) / len({y for _, y in a}),
    "mean weight on a link": lambda w, a: mass(w, a) / len(a),
    "one position late": lambda w, a: by_words(torch.cat((w[1:], w[:1])), a),
    "one position early": lambda w, a: by_words(torch.cat((w[-1:], w[:-1])), a),
    "only on the last": lambda w, a: (
        sum(w[y].argmax().item() == x for y, x in {y: x for x, y in a}.items()) / len({y for _, y in a})
    ),
    "only on the first": lambda w, a: (
        sum(w[y].argmax().item() == x for y, x in {y: x for x, y in a[::-1]}.items()) / len({y for _, y in a})
    ),
    "it cannot be on both": lambda w, a: (
        sum({x for x, z in a if z == y} == {w[y].argmax().item()} for y in {y for _, y in a})
        / len({y for _, y in a})
    ),
    "look elsewhere": lambda w, a: 1 - by_words(w, a),
    "returns nothing": lambda w, a: None,
    "should be one number, yours has the shape (8,)": lambda w, a: w.argmax(dim=1),
    "raised TypeError": lambda w: w,
    "the number should be": lambda w, a: by_words(w, a) + 2,
    "In one hidden case": lambda w, a: hits(w, a) / len({x for x, _ in a}),
    "With 5 target words and 9 source words": by_a_square_table,
}


test_agreements = answer_test(grade_agreement, right=AGREEMENTS, wrong=WRONG_AGREEMENTS)


test_known = bank_test((known.CONTEXT, WRONG_CONTEXTS), (known.AGREEMENT, WRONG_AGREEMENTS))
