"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

from pathlib import Path

import pytest
import torch
from answer_banks import answer_test

from exformer_lessons.training.grader import LISTED, grade_accumulation, grade_clinic
from exformer_lessons.training.mistakes import APART, SIGNS
from exformer_lessons.training.programs import CAUSES


def clip(vector, limit):
    return vector * min(1, limit / vector.norm().item())


def backward(w, windows, loss_sum, limit):
    w.grad = None
    n = sum(loss_sum(w, window)[1] for window in windows)
    for window in windows:
        (loss_sum(w, window)[0] / n).backward()
    torch.nn.utils.clip_grad_norm_([w], limit)
    return w.grad


def sums_then_one_division(w, windows, loss_sum, limit):
    w.grad, n = None, 0
    for window in windows:
        nats, tokens = loss_sum(w, window)
        nats.backward()
        n += tokens
    w.grad /= n
    w.grad *= min(1.0, limit / w.grad.norm())
    return w.grad


def in_one_graph(w, windows, loss_sum, limit):
    parts = [loss_sum(w, window) for window in windows]
    loss = sum(nats for nats, _ in parts) / sum(n for _, n in parts)
    return clip(torch.autograd.grad(loss, w)[0], limit)


def weighted_means(w, windows, loss_sum, limit):
    total, n = torch.zeros_like(w), 0
    for window in reversed(windows):
        nats, tokens = loss_sum(w, window)
        total += tokens * torch.autograd.grad(nats / tokens, w)[0]
        n += tokens
    return clip(total / n, limit)


def on_a_copy(w, windows, loss_sum, limit):
    return backward(w.detach().clone().requires_grad_(), windows, loss_sum, limit).numpy()


def as_lists(*case):
    return in_one_graph(*case).tolist()


def grouped(w, windows, loss_sum, limit):
    return in_one_graph(w, [*windows[1:], windows[0]], loss_sum, limit)


RIGHT = (
    backward,
    sums_then_one_division,
    in_one_graph,
    weighted_means,
    on_a_copy,
    as_lists,
    grouped,
)


def wrong(*, weigh=lambda nats, n, total, k: nats / total, drop=0, each=False, last=True, zero="first"):
    """Accumulate with one mistake."""

    def answer(w, windows, loss_sum, limit):
        windows = windows[: len(windows) - drop]
        total = sum(loss_sum(w, window)[1] for window in windows)
        if zero == "first":
            w.grad = None
        sum_of_clipped = torch.zeros_like(w)
        for window in windows:
            if zero == "each" or each:
                w.grad = None
            nats, n = loss_sum(w, window)
            weigh(nats, n, total, len(windows)).backward()
            if each:
                sum_of_clipped += clip(w.grad, limit)
        found = sum_of_clipped if each else w.grad
        return clip(found, limit) if last else found

    return answer


def longest(w, windows, loss_sum, limit):
    positions = max(loss_sum(w, window)[1] for window in windows) * len(windows)
    return clip(
        torch.autograd.grad(sum(loss_sum(w, window)[0] for window in windows) / positions, w)[0], limit
    )


def tokens_so_far(w, windows, loss_sum, limit):
    w.grad, n = None, 0
    for window in windows:
        nats, count = loss_sum(w, window)
        n += count
        (nats / n).backward()
    return clip(w.grad, limit)


def test_the_causes_are_those_that_the_exercise_lists():
    text = (Path(__file__).parents[2] / "notebooks/14_training.ipynb").read_text(encoding="utf-8")
    assert f"in these words: {', '.join(LISTED)}." in text


WRONG = {
    "divide by the number of micro-batches": wrong(weigh=lambda nats, n, total, k: nats / n / k),
    "divide by the number of micro-batches although": wrong(weigh=lambda nats, n, total, k: nats / k),
    "You add the means of the micro-batches": wrong(weigh=lambda nats, n, total, k: nats / n),
    "You drop the last micro-batch": wrong(drop=1),
    "clip before you add": wrong(each=True, last=False),
    "You clip before you add": wrong(each=True, last=False, weigh=lambda nats, n, total, k: nats / n / k),
    "clip the sum and then divide": lambda w, windows, loss_sum, limit: (
        backward(w, windows, lambda w, x: (loss_sum(w, x)[0], 1), limit * 0 + 1e9) * 0
        + clip(sum(torch.autograd.grad(loss_sum(w, x)[0], w)[0] for x in windows), limit)
        / sum(loss_sum(w, x)[1] for x in windows)
    ),
    "You do not divide": wrong(weigh=lambda nats, n, total, k: nats),
    "You do not clip": wrong(last=False),
    "You scale every gradient": lambda w, windows, loss_sum, limit: (
        torch.nn.functional.normalize(backward(w, windows, loss_sum, 1e9).flatten(), dim=0).view_as(w) * limit
    ),
    "You clip each entry": lambda w, windows, loss_sum, limit: backward(w, windows, loss_sum, 1e9).clamp(
        -limit, limit
    ),
    "You keep only the last micro-batch's gradient": wrong(zero="each"),
    "divide by the tokens of the last micro-batch": lambda w, windows, loss_sum, limit: clip(
        sum(torch.autograd.grad(loss_sum(w, x)[0], w)[0] for x in windows) / loss_sum(w, windows[-1])[1],
        limit,
    ),
    "You count the longest micro-batch for each": longest,
    "divide each sum by the tokens so far": tokens_so_far,
    "gradient of an earlier step": wrong(zero="never"),
    "The sign is turned": lambda *case: -backward(*case),
    "returns nothing": lambda *case: None,
    "should have the shape": lambda *case: backward(*case).flatten(),
    "raised TypeError": lambda w, windows, loss_sum: None,
}


test_gradients = answer_test(grade_accumulation, right=RIGHT, wrong=WRONG)


def test_a_gradient_that_is_nearly_right_is_refused():
    assert not grade_accumulation(lambda *case: backward(*case) * (1 + 1e-4))
    assert grade_accumulation(lambda *case: backward(*case) * (1 + 1e-7))


CLINICS = {
    "as asked": CAUSES,
    "other order": dict(reversed(CAUSES.items())),
    "small letters": {letter.lower(): cause for letter, cause in CAUSES.items()},
    "capitals": {letter: cause.upper() for letter, cause in CAUSES.items()},
    "blanks": {f" {letter}": f"{cause}. " for letter, cause in CAUSES.items()},
    "a string that is more": {letter: str.__new__(type("S", (str,), {}), c) for letter, c in CAUSES.items()},
}


@pytest.mark.parametrize("answer", CLINICS.values(), ids=CLINICS)
def test_right_causes(answer):
    assert grade_clinic(answer)


@pytest.mark.parametrize("letter", CAUSES)
@pytest.mark.parametrize("cause", LISTED)
def test_each_wrong_cause_is_told_apart_from_the_right_one(letter, cause):
    if cause == CAUSES[letter]:
        return
    verdict = grade_clinic(CAUSES | {letter: cause})
    assert not verdict
    hint = APART.get(frozenset((cause, CAUSES[letter])), SIGNS[CAUSES[letter]])
    assert verdict.says == f"7 of 8 are right. {letter}: {hint}"
    assert CAUSES[letter] not in hint  # a hint is no answer


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "Give a dictionary"),
        (["overfitting"] * 8, "Give a dictionary"),
        ({}, "no cause yet"),
        (dict.fromkeys(CAUSES, ""), "no cause yet"),
        ({"X": "overfitting"}, "There is no patient X"),
        (CAUSES | {"A": "overfitting"}, "There is no patient A"),
        (CAUSES | {"P": "healthy"}, "P: there is no cause 'healthy'"),
        (CAUSES | {"P": "flu"}, "P: there is no cause 'flu'"),
        (CAUSES | {"P": 3}, "P: there is no cause '3'"),
        (CAUSES | {"P": None}, "7 of 8 are right. P has no cause yet."),
        ({"Q": CAUSES["Q"]}, "1 of 8 are right. P has no cause yet."),
        ({"Q": "overfitting"}, "0 of 8 are right. Q: "),
        (dict(zip(CAUSES, reversed(CAUSES.values()), strict=True)), "0 of 8 are right. P: "),
    ],
)
def test_what_is_no_diagnosis_is_refused(answer, says):
    verdict = grade_clinic(answer)
    assert not verdict
    assert says in verdict.says


def test_pairs_that_are_told_apart_are_causes():
    assert {cause for pair in APART for cause in pair} <= set(LISTED)
    assert set(SIGNS) == set(CAUSES.values())
