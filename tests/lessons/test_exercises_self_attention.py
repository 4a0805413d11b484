"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import math

import pytest
import torch
import torch.nn.functional as F
from answer_banks import answer_test

from exformer.nn.attention import scaled_dot_product_attention
from exformer_lessons.exercises.grading import FINITE_FILL, NOT_STABLE, grade
from exformer_lessons.self_attention.grader import (
    CHARGES,
    grade_diagnosis,
    grade_masked_attention,
    suspect_a,
    suspect_b,
)


def rooted(q, k, d):
    return torch.einsum("qd,kd->qk", q, k) / d**0.5


def masked_loops(q, k, v, mask):
    out = torch.zeros(len(q), v.shape[1])
    for i in range(len(q)):
        shown = [j for j in range(len(k)) if mask[i, j]]
        total = sum(math.exp(q[i] @ k[j] / len(q[i]) ** 0.5) for j in shown)
        for j in shown:
            out[i] += math.exp(q[i] @ k[j] / len(q[i]) ** 0.5) / total * v[j]
    return out


def masked_exp(q, k, v, mask):
    e = torch.exp(q @ k.T / q.size(1) ** 0.5) * mask
    return e / e.sum(1, keepdim=True).clamp(min=1e-9) @ v


def softmax_of(q, k, v, mask, *, change):
    return torch.softmax(change(rooted(q, k, q.shape[1]), mask), dim=-1) @ v


RIGHT = {
    "library": lambda q, k, v, mask: scaled_dot_product_attention(q, k, v, mask=mask),
    "torch": lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
    "loops": masked_loops,
    "by hand": masked_exp,
    "-inf and nan_to_num": lambda q, k, v, mask: (
        torch.nan_to_num(torch.where(mask, rooted(q, k, q.shape[1]), -torch.inf).softmax(-1)) @ v
    ),
    "renormalized after the softmax": lambda q, k, v, mask: (
        F.normalize(rooted(q, k, q.shape[1]).softmax(-1) * mask, p=1, dim=-1) @ v
    ),
    "nested lists": lambda *case: masked_loops(*case).tolist(),
    "float64": lambda q, k, v, mask: masked_exp(q.double(), k.double(), v.double(), mask),
    "scaled before": lambda q, k, v, mask: masked_exp(
        q / q.size(1) ** 0.25, k / k.size(1) ** 0.25 * q.size(1) ** 0.5, v, mask
    ),
}


def changed(change):
    return lambda q, k, v, mask: softmax_of(q, k, v, mask, change=change)


WRONG = {
    "changes nothing": changed(lambda s, m: s),
    "inverted": changed(lambda s, m: s.masked_fill(m, -1e9)),
    "after the softmax": lambda q, k, v, m: (rooted(q, k, q.shape[1]).softmax(1) * m.float()) @ v,
    "exp(0) = 1": changed(lambda s, m: s * m.float()),
    "negative score becomes +inf": changed(lambda s, m: s * torch.ones(m.shape).masked_fill(~m, -torch.inf)),
    "0 times inf": changed(lambda s, m: s + (~m) * -torch.inf),
    "look for +inf": changed(lambda s, m: s.masked_fill(~m, torch.inf)),
    "-inf after the softmax": lambda q, k, v, m: (
        torch.where(m, F.softmax(rooted(q, k, q.shape[1]), 1), -torch.inf) @ v
    ),
    "mask the future": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "divide by d_k": lambda q, k, v, m: F.scaled_dot_product_attention(
        q, k, v, attn_mask=m, scale=1 / q.shape[1]
    ),
    "gains 1": changed(lambda s, m: s + m.float()),
    "mask is transposed": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m.T),
    "scale is missing": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m, scale=1.0),
    "0/0": changed(lambda s, m: s.masked_fill(~m, -torch.inf)),
    "mean of all values": changed(lambda s, m: s.masked_fill(~m, torch.finfo(s.dtype).min)),
    "sees everything": changed(lambda s, m: s - 1000.0 * (~m)),
    "the root of the values' width": lambda q, k, v, m: (
        torch.nan_to_num(torch.where(m, rooted(q, k, v.shape[1]), -torch.inf).softmax(-1)) @ v
    ),
    "the root of the number of keys": lambda q, k, v, m: (
        torch.nan_to_num(torch.where(m, rooted(q, k, len(k)), -torch.inf).softmax(-1)) @ v
    ),
    "5 keys of width 11 and values of width 2: Your function raised": lambda q, k, v, m: softmax_of(
        q.T, k.T, v, m, change=lambda s, m: s.where(m, -torch.inf)
    ),
    "the largest difference": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m) + 1,
    "returns nothing": lambda q, k, v, m: None,
}


test_masked_attention = answer_test(grade_masked_attention, right=RIGHT, wrong=WRONG)


def test_suspects_do_what_they_are_charged_with():
    q, k, v = torch.randn(3, 11), torch.randn(5, 11), torch.randn(5, 2)
    torch.testing.assert_close(suspect_a(q, k, v), F.scaled_dot_product_attention(q, k, v, scale=1 / 11))
    torch.testing.assert_close(suspect_b(q, k, v), F.softmax(rooted(q, k, 11), dim=0) @ v)


def test_only_one_diagnosis_is_right():
    right = [(a, b) for a in CHARGES for b in CHARGES if grade_diagnosis(a=a, b=b)]
    assert right == [("divides by d_k", "softmax over queries")]


@pytest.mark.parametrize(
    ("hint", "a", "b"),
    [
        ("suspect a", None, "softmax over queries"),
        ("suspect b", "divides by d_k", None),
        ("not on the list", "no scale", None),
        ("sharper", "no scaling", "softmax over queries"),
        ("one query only", "softmax over queries", "divides by d_k"),
        ("sharper", "divides by d_k", "divides by d_k"),
        ("change v", "divides by d_k", "keys used as values"),
        ("double q", "softmax left out", "softmax over queries"),
    ],
)
def test_wrong_diagnoses_are_answered(hint, a, b):
    verdict = grade_diagnosis(a=a, b=b)
    assert not verdict
    assert hint in verdict.says


def test_a_refuted_charge_is_refuted_by_its_experiment():
    ones, one_query = torch.ones(5, 2), torch.randn(1, 7)
    q, k, v = torch.randn(3, 7), torch.randn(5, 7), torch.randn(5, 2)
    torch.testing.assert_close(suspect_a(q, k, ones), torch.ones(3, 2))  # so there is a softmax over keys
    torch.testing.assert_close(suspect_b(one_query, k, v)[0], v.sum(0))  # one query: each weight is 1
    for suspect in (suspect_a, suspect_b):
        assert not torch.equal(suspect(q, k, v), suspect(q, k, v + 1))  # so the values are used


def filled_with(fill):
    def answer(q, k, v, mask):
        scores = (q @ k.mT / math.sqrt(q.size(-1))).masked_fill(~mask, fill)
        return (scores.softmax(-1) * mask.any(-1, keepdim=True)) @ v

    return answer


@pytest.mark.parametrize("fill", [-10.0, -20.0, -30.0, -100.0, -1e4])
def test_a_mask_that_fills_with_too_little_is_refused(fill):
    verdict = grade_masked_attention(filled_with(fill))
    assert not verdict
    if fill <= -20:
        assert verdict.says == f"Where all scores are near -16,384: {FINITE_FILL}"


def by_exponentials(q, k, v, mask):
    fit = torch.exp(q @ k.mT / math.sqrt(q.size(-1))) * mask
    return fit / fit.sum(-1, keepdim=True) @ v


@pytest.mark.parametrize(
    "answer",
    [
        lambda *case: by_exponentials(*case).nan_to_num(),
        lambda *case: by_exponentials(*case).where(case[-1].any(-1, keepdim=True), 0.0),
    ],
)
def test_exponentials_that_vanish_are_right_but_told(answer):
    verdict = grade_masked_attention(answer)
    assert verdict
    assert verdict.says.endswith(NOT_STABLE)
    assert NOT_STABLE not in grade_masked_attention(filled_with(-1e9)).says


@pytest.mark.parametrize("charge", [["divides by d_k"], {"divides by d_k"}, torch.ones(2), 3])
def test_a_charge_that_is_no_text_is_not_on_the_list(charge):
    assert "is not on the list" in grade_diagnosis(a=charge, b="softmax over queries").says


def test_a_charge_is_read_whatever_its_case():
    assert grade_diagnosis(a="Divides by d_k ", b=" SOFTMAX over queries.")


def test_a_call_with_other_names_or_without_stars_is_named():
    assert "two stars" in grade_diagnosis({"a": "no scaling", "b": "no scaling"}).says
    assert "no suspect c" in grade_diagnosis(a="no scaling", b="no scaling", c="no scaling").says


def test_a_missing_charge_is_asked_for():
    assert "suspect b" in grade_diagnosis(a="divides by d_k").says


@pytest.mark.parametrize(("size", "right"), [(1.0, False), (1000.0, True)])
def test_a_difference_counts_by_the_size_of_the_numbers(size, right):
    verdict = grade(
        lambda x: size * x + 1e-3,
        right=lambda x: size * x,
        mistakes={},
        cases=[(torch.tensor([0.0, 1.0]),)],
        praise="It is.",
    )
    assert bool(verdict) == right
