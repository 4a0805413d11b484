"""What all graders share: results of any kind are compared, and what cannot be compared is said plainly."""

import math

import numpy as np
import pytest
import torch

from exformer.lessons.exercises.grading import (
    UnfitError,
    Verdict,
    as_numbers,
    first_of,
    grade,
    takes_functions,
)
from exformer.lessons.exercises.multi_head_attention import check_split
from exformer.lessons.exercises.recurrence import check_clip, check_lstm_step, check_reach
from exformer.lessons.exercises.self_attention import check_attention
from exformer.lessons.exercises.transformer_layer import check_parameters

CASES = ((torch.ones(2),), (torch.zeros(3),))
TOLD = "But it changes what it was given: a caller may still need it."


def grade_doubling(answer, *, cases=CASES, frame=None):
    how = {} if frame is None else {"frame": frame}
    mistakes = {"You take the square.": lambda x: x**2, "You take the root.": lambda x: x**0.5}
    return grade(answer, right=lambda x: 2 * x, mistakes=mistakes, cases=list(cases), praise="Twice.", **how)


def in_place(x):
    x *= 2
    return x


def test_a_change_in_place_is_right_but_told():
    assert grade_doubling(in_place).says == f"Twice. {TOLD}"
    assert grade_doubling(lambda x: 2 * x).says == "Twice."


def test_a_change_in_place_does_not_reach_the_cases():
    cases = [([1, 2], {"a": [3]})]

    def greedy(numbers, table):
        return len(numbers) + len(table.pop("a")) + sum(numbers.pop() for _ in range(2))

    for _ in range(2):
        verdict = grade(greedy, right=lambda *case: 6, mistakes={}, cases=cases, praise="So.")
        assert verdict.says == f"So. {TOLD}"


@pytest.mark.parametrize(
    "answer", [str, lambda x: [str(2 * float(n)) for n in x], lambda x: 10**400, lambda x: {1: 2}]
)
def test_what_is_no_number_is_refused(answer):
    assert "must return numbers, got" in grade_doubling(answer).says


@pytest.mark.parametrize(
    "value",
    [torch.eye(2).to_sparse(), torch.eye(2).bfloat16(), np.eye(2), [[1, 0], [0, 1]], torch.eye(2) == 1],
    ids=["sparse", "bfloat16", "numpy", "list", "bool"],
)
def test_numbers_of_any_kind_are_read(value):
    assert as_numbers(value).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_nan_is_called_nan():
    assert "your result holds NaN" in grade_doubling(lambda x: x * math.nan).says
    assert "your result holds NaN" in grade_doubling(lambda x: 2 * x / (x > 0)).says  # right elsewhere


def test_a_mistake_is_known_by_its_numbers_where_the_rest_is_nan():
    cases = ((torch.tensor([3.0, 0.0]),), (torch.tensor([5.0]),))
    assert grade_doubling(lambda x: x**3 / x, cases=cases).says == "You take the square."


def test_a_row_of_another_length_is_counted():
    assert grade_doubling(lambda x: x[1:]).says == "The result should have 2 numbers, yours has 1."


def test_a_frame_may_refuse():
    def frame(given, *case):
        if len(given) != 2:
            raise UnfitError("Give two.")
        return given[0]

    assert grade_doubling(lambda x: (2 * x, None), frame=lambda given, *case: first_of(1)(given))
    assert grade_doubling(lambda x: [2 * x], cases=[(torch.ones(2),)], frame=frame).says == "Give two."


def test_the_first_of_two_results_counts_and_rows_stay_rows():
    rows = torch.eye(3)
    for given in ((rows, None), [rows, None], rows):
        assert first_of(2)(given) is rows
    parts = list(rows)
    assert first_of(2)(parts) is parts
    assert first_of(2)([]) == []


@takes_functions
def two(first, second):
    return Verdict(True, "Two.")


def test_the_number_of_functions_is_told():
    assert two(abs, abs)
    assert two(abs).says == "The check takes 2 functions, you gave 1."
    assert check_split(abs).says == "The check takes 2 functions, you gave 1."
    assert check_reach().says == "The check takes 1 function, you gave 0."


@pytest.mark.parametrize("check", [check_reach, check_parameters])
def test_a_text_is_no_count(check):
    assert "must return numbers, got str" in check(lambda *case: "44").says


def test_ragged_lists_are_not_called_errors_of_the_reader():
    for check in (check_clip, check_lstm_step):
        says = check(lambda *case: [[[1.0], [1.0, 2.0]], [[3.0], [1.0, 2.0]]]).says
        assert says.startswith("Your function must return numbers, got list")


def test_attention_as_a_list_with_its_weights():
    def both(q, k, v):
        weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(dim=-1)
        return [weights @ v, weights]

    assert check_attention(both), check_attention(both)
