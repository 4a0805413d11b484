"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from answer_banks import answer_test
from torch import nn

from exformer import BPETokenizer
from exformer_lessons.adapting.grader import grade_lora, grade_row


def apart(prompt, answer, tokenizer):
    ids = tokenizer.encode(prompt)
    counted = [False for _ in ids]
    for token in [*tokenizer.encode(answer), tokenizer.eos_id]:
        ids.append(token)
        counted.append(True)
    return ids, counted


def as_tensors(*case):
    ids, counted = apart(*case)
    return torch.tensor(ids), torch.tensor(counted)


def as_arrays_of_numbers(*case):
    ids, counted = apart(*case)
    return np.array(ids), np.array(counted, dtype=float)


def by_comparison(prompt, answer, tokenizer):
    asked = tokenizer.encode(prompt)
    ids = [*asked, *tokenizer.encode(answer), tokenizer.eos_id]
    return [ids, (np.arange(len(ids)) >= len(asked)).tolist()]


def in_one_list_of_pairs(prompt, answer, tokenizer):
    pairs = [(token, 0) for token in tokenizer.encode(prompt)]
    pairs += [(token, 1) for token in tokenizer.encode(answer)] + [(tokenizer.eos_id, 1)]
    return tuple(zip(*pairs, strict=True))


def one_after_the_other(*case):
    ids, counted = apart(*case)
    yield ids
    yield counted


RIGHT_ROWS = (
    apart,
    as_tensors,
    as_arrays_of_numbers,
    by_comparison,
    in_one_list_of_pairs,
    one_after_the_other,
)


def joint(start, *, end=True):
    """Encode both as one text; the targets begin where start says."""

    def answer(prompt, said, tokenizer):
        ids = tokenizer.encode(prompt + said) + [tokenizer.eos_id] * end
        first = start(tokenizer.encode(prompt), tokenizer.encode(said), ids, end)
        return ids, [n >= first for n in range(len(ids))]

    return answer


def changed(change):
    """Spoil the right row."""

    def answer(prompt, said, tokenizer):
        ids, counted = apart(prompt, said, tokenizer)
        return change(ids, counted, tokenizer)

    return answer


def common(asked, said, ids, end):
    n = 0
    while n < len(asked) and asked[n] == ids[n]:
        n += 1
    return n


WRONG_ROWS = {
    "a merge carries the first token": joint(lambda asked, said, ids, end: len(asked)),
    "your mask begins one token late. Encode": joint(lambda asked, said, ids, end: len(asked), end=False),
    "in tokens that your text does not contain": joint(common),
    "a merge crosses the border": joint(lambda asked, said, ids, end: len(ids) - len(said) - end),
    "it is no target": changed(lambda ids, counted, tok: (ids, [*counted[:-1], False])),
    "The text has no end token": changed(lambda ids, counted, tok: (ids[:-1], counted[:-1])),
    "You count the prompt as well": changed(lambda ids, counted, tok: (ids, [True] * len(ids))),
    "only what the model is to say": changed(
        lambda ids, counted, tok: (ids, [False] + [True] * (len(ids) - 1))
    ),
    "turn the mask over": changed(lambda ids, counted, tok: (ids, [not each for each in counted])),
    "Your mask is shifted": changed(lambda ids, counted, tok: (ids, [*counted[1:], False])),
    "mark the tokens that are predicted": changed(lambda ids, counted, tok: (ids, [*counted[1:], True])),
    "begins one token late: the first": changed(
        lambda ids, counted, tok: (
            ids,
            [a and b for a, b in zip([False, *counted[:-1]], counted, strict=True)],
        )
    ),
    "Only the end token": changed(lambda ids, counted, tok: (ids, [each == tok.eos_id for each in ids])),
    "You begin the text with a start token": changed(
        lambda ids, counted, tok: ([tok.bos_id, *ids], [False, *counted])
    ),
    "between prompt and answer": lambda prompt, said, tok: (
        [*tok.encode(prompt), tok.eos_id, *tok.encode(said), tok.eos_id],
        [False] * (len(tok.encode(prompt)) + 1) + [True] * (len(tok.encode(said)) + 1),
    ),
    "The answer comes first": changed(
        lambda ids, counted, tok: (
            [n for n, each in zip(ids, counted, strict=True) if each]
            + [n for n, each in zip(ids, counted, strict=True) if not each],
            sorted(counted, reverse=True),
        )
    ),
    "encode the end token as text": lambda prompt, said, tok: (
        tok.encode(prompt) + tok.encode(said + "</s>"),
        [0] * len(tok.encode(prompt)) + [1] * len(tok.encode(said + "</s>")),
    ),
    "Return two things": changed(lambda ids, counted, tok: ids),
    "Give one True or False for each id": changed(lambda ids, counted, tok: (ids, counted[:-1])),
    "says True or False for each id": changed(
        lambda ids, counted, tok: (ids, [n if each else -100 for n, each in zip(ids, counted, strict=True)])
    ),
    "returns nothing": lambda *case: None,
}


test_rows = answer_test(grade_row, right=RIGHT_ROWS, wrong=WRONG_ROWS)


def test_right_rows_change_nothing():
    assert not any("changes what it was given" in grade_row(answer).says for answer in RIGHT_ROWS)


def test_a_merge_crosses_the_border_of_the_lesson() -> None:
    """lattice#1545, trl PR#2209: encoded together, no token of the answer would be a target."""
    tokenizer = BPETokenizer.from_texts(["to be or not to be"] * 3, n_merges=9)
    prompt, answer = "to be or not to ", "be"
    together = tokenizer.encode(prompt + answer)
    assert len(together) == len(tokenizer.encode(prompt))
    ids, counted = apart(prompt, answer, tokenizer)
    assert ids != [*together, tokenizer.eos_id]
    assert sum(counted) == len(tokenizer.encode(answer)) + 1


def start(w, rank):
    return torch.randn(rank, w.shape[1]), torch.zeros(w.shape[0], rank)


def lora(x, w, a, b, alpha):
    return x @ w.T + alpha / a.shape[0] * (x @ a.T) @ b.T


def merge(w, a, b, alpha):
    return w + alpha / b.shape[1] * (b @ a)


def start_as_parameters(w, rank):
    a, b = nn.Parameter(torch.empty(rank, w.shape[1])), nn.Parameter(torch.zeros(len(w), rank))
    nn.init.kaiming_uniform_(a, a=5**0.5)
    return [a, b]


def start_in_numpy(w, rank):
    rng = np.random.default_rng(0)
    return rng.normal(size=(rank, w.shape[1])) / 100, np.zeros((w.shape[0], rank))


def start_in_half_precision(w, rank):
    return tuple(part.half() for part in start(w, rank))


def merge_entry_by_entry(w, a, b, alpha):
    new = w.clone()
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            new[i, j] += alpha / len(a) * sum(b[i, k] * a[k, j] for k in range(len(a)))
    return new


def merge_outer_products(w, a, b, alpha):
    return w + sum(torch.outer(b[:, k], a[k]) for k in range(len(a))) * alpha / len(a)


def merge_as_lists(*case):
    return merge(*case).tolist()


def lora_with_linear(x, w, a, b, alpha):
    return F.linear(x, w) + F.linear(F.linear(x, a), b) * (alpha / len(a))


def lora_merged(x, w, a, b, alpha):
    return x @ merge(w, a, b, alpha).T


def lora_row_by_row(x, w, a, b, alpha):
    return torch.stack([w @ each + alpha / len(a) * b @ (a @ each) for each in x])


RIGHT = (
    (start, lora, merge),
    (start_as_parameters, lora_with_linear, merge_entry_by_entry),
    (start_in_numpy, lora_merged, merge_outer_products),
    (start_in_half_precision, lora_row_by_row, merge_as_lists),
    (lambda w, rank: (part for part in start(w, rank)), lora, merge),
    (start, lambda *case: lora(*case).numpy(), lambda *case: merge(*case).numpy()),
)


test_right_lora = answer_test(lambda answers: grade_lora(*answers), right=dict(enumerate(RIGHT)))


def merge_in_place(w, a, b, alpha):
    w += alpha / len(a) * b @ a
    return w


WRONG_START = {
    "Both are zero": lambda w, r: tuple(torch.zeros_like(part) for part in start(w, r)),
    "A is zero and B is not": lambda w, r: (torch.zeros(r, w.shape[1]), torch.randn(len(w), r)),
    "B is not zero": lambda w, r: (torch.randn(r, w.shape[1]), torch.randn(len(w), r)),
    "B is not zero: the model": lambda w, r: (torch.randn(r, w.shape[1]), torch.full((len(w), r), 1e-6)),
    "All rows of A are alike": lambda w, r: (torch.ones(r, w.shape[1]), torch.zeros(len(w), r)),
    "Return A first": lambda w, r: start(w, r)[::-1],
    "A must be 2 × 3 and B 5 × 2; yours are 3 × 2": lambda w, r: tuple(part.T for part in start(w, r)),
    "must return two matrices": lambda w, r: start(w, r)[0],
    "two matrices of numbers": lambda w, r: (start(w, r)[0], None),
    "matrices of numbers, A and B": lambda w, r: ("A", "B"),
    "of numbers, A and B": lambda w, r: ([[1.0], [1.0, 2.0]], start(w, r)[1]),
    "raised NameError": lambda w, r: undefined,  # noqa: F821
    "not finite": lambda w, r: (torch.full((r, w.shape[1]), torch.nan), torch.zeros(len(w), r)),
    "You change W": lambda w, r: (w.mul_(2), start(w, r))[1],
    "returns nothing": lambda w, r: None,
}


test_wrong_starts = answer_test(lambda answer: grade_lora(answer, lora, merge), wrong=WRONG_START)


WRONG_MERGE = {
    "forget the scale": lambda w, a, b, alpha: w + b @ a,
    "do not divide by the rank": lambda w, a, b, alpha: w + alpha * b @ a,
    "do not multiply by α": lambda w, a, b, alpha: w + b @ a / len(a),
    "multiply by r/α": lambda w, a, b, alpha: w + len(a) / alpha * b @ a,
    "by a width of the layer": lambda w, a, b, alpha: w + alpha / a.shape[1] * b @ a,
    "the root of the rank": lambda w, a, b, alpha: w + alpha * len(a) ** -0.5 * b @ a,
    "subtract the product": lambda w, a, b, alpha: w - alpha / len(a) * b @ a,
    "leave W out": lambda w, a, b, alpha: alpha / len(a) * b @ a,
    "leave out what was learned": lambda w, a, b, alpha: w,
    "scale W, too": lambda w, a, b, alpha: (w + b @ a) * alpha / len(a),
    "add the product twice": lambda w, a, b, alpha: merge(merge(w, a, b, alpha), a, b, alpha),
    "merging twice adds the product twice": merge_in_place,
    "transposed": lambda w, a, b, alpha: (
        w + alpha / len(a) * a.T @ b.T if w.shape[0] == w.shape[1] else w * torch.nan
    ),
}


@pytest.mark.parametrize("hint", WRONG_MERGE)
def test_wrong_merges(hint):
    verdict = grade_lora(start, lora, WRONG_MERGE[hint])
    assert not verdict
    assert hint in verdict.says
    assert verdict.says.startswith("Merged: ")


@pytest.mark.parametrize("hint", [hint for hint in WRONG_MERGE if "merging twice" not in hint])
def test_wrong_outputs(hint):
    def outputs(x, *rest):
        return x @ WRONG_MERGE[hint](*rest).T

    verdict = grade_lora(start, outputs, merge)
    assert not verdict
    assert hint in verdict.says
    assert verdict.says.startswith("Outputs: ")


def test_a_weight_used_the_wrong_way_round():
    def outputs(x, w, a, b, alpha):
        return x @ merge(w, a, b, alpha) if len(w) == w.shape[1] else torch.full((len(x), len(w)), torch.nan)

    assert "must meet its transpose" in grade_lora(start, outputs, merge).says


def test_an_answer_that_raises():
    says = grade_lora(start, lambda x, w, a, b, alpha: x @ w, merge).says
    assert says.startswith("Outputs: Your function raised RuntimeError")


def test_the_weight_is_not_changed_by_grading():
    w = torch.randn(3, 3)
    before = copy.deepcopy(w)
    grade_lora(start, lora, merge_in_place)
    assert torch.equal(w, before)
