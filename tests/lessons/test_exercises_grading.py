"""What all graders share: results of any kind are compared, and what cannot be compared is said plainly."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exformer.nn.attention import scaled_dot_product_attention
from exformer.nn.positions.rotary import rotate
from exformer_lessons.exercises.grading import (
    NOT_STABLE,
    Verdict,
    and_also,
    first_of,
    grade,
    takes_functions,
    with_large_scores,
)
from exformer_lessons.exercises.results import UnfitError, all_close, as_numbers, in_float32
from exformer_lessons.language_model.grader import grade_leak
from exformer_lessons.language_model.mistakes import finds_leak
from exformer_lessons.multi_head_attention.grader import grade_split
from exformer_lessons.positional_encoding.grader import grade_rotate
from exformer_lessons.recurrence.grader import grade_clip, grade_lstm_step
from exformer_lessons.self_attention.grader import grade_masked_attention
from exformer_lessons.transformer_layer.grader import grade_parameters

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


@pytest.mark.parametrize("change", [lambda numbers: numbers.append(7), lambda numbers: numbers.pop()])
def test_a_list_that_became_longer_or_shorter_is_a_change_too(change):
    def doubled(numbers):
        twice = [2 * number for number in numbers]
        change(numbers)
        return twice

    verdict = grade(
        doubled,
        right=lambda numbers: [2 * number for number in numbers],
        mistakes={},
        cases=[([1, 2],)],
        praise="Twice.",
    )
    assert verdict.says == f"Twice. {TOLD}"


def test_without_cases_no_answer_is_right():
    with pytest.raises(ValueError, match="grade needs cases and a function to call, got 0 cases"):
        grade_doubling(in_place, cases=())


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


@pytest.mark.parametrize("constant", [torch.eye(2), torch.full((2, 2), 2.0)], ids=["wrong", "also wrong"])
def test_a_mistake_with_a_constant_in_float32_is_named_as_such(constant):
    verdict = grade_doubling(lambda x: constant @ x, cases=[(torch.rand(2, dtype=torch.float64),)])
    assert not verdict
    assert "dtype" not in verdict.says


def test_a_constant_in_float32_is_right():
    cases = [(torch.rand(2, dtype=torch.float64),), (torch.rand(2),)]
    assert grade_doubling(lambda x: (2 * torch.eye(2)) @ x, cases=cases).says == "Twice."
    ones = [(torch.ones(2, dtype=torch.float64),)]
    assert grade_doubling(lambda x: (2.00005 * torch.eye(2)) @ x, cases=ones), "rounding is larger"
    assert grade_doubling(lambda x: ((2 * torch.eye(2)) @ x, x), cases=cases, frame=first_of(1))
    assert "raised RuntimeError" in grade_doubling(lambda x: torch.eye(2).int() @ x, cases=cases).says


def test_cases_in_float32_keep_their_gradients():
    w = torch.ones(2, dtype=torch.float64).requires_grad_()
    w.grad = torch.full((2,), 3.0, dtype=torch.float64)
    single = in_float32([{"w": w}, (1, "a")])
    assert single[0]["w"].requires_grad
    assert single[0]["w"].grad.tolist() == [3.0, 3.0]
    assert single[0]["w"].dtype == torch.float32
    assert single[1] == (1, "a")


def test_nan_is_called_nan():
    assert "your result holds NaN" in grade_doubling(lambda x: x * math.nan).says
    assert "your result holds NaN" in grade_doubling(lambda x: 2 * x / (x > 0)).says  # right elsewhere


def test_nan_in_a_right_answer():
    verdict = grade_doubling(
        lambda x: (2 * x).masked_fill(x == 3, math.nan), cases=[(torch.tensor([2.0, 3]),)]
    )
    assert not verdict
    assert "your result holds NaN" in verdict.says  # the square of 2 is right, too


def test_a_mistake_is_known_by_its_numbers_where_the_rest_is_nan():
    cases = ((torch.tensor([3.0, 0.0]),), (torch.tensor([5.0]),))
    assert grade_doubling(lambda x: x**3 / x, cases=cases).says == "You take the square."


def test_nothing_but_nan_agrees_with_no_mistake():
    """A mistake of another shape would agree at all numbers that are there: none."""
    verdict = grade(
        lambda x: x[1:] * math.nan,
        right=lambda x: 2 * x,
        mistakes={"You leave the first out.": lambda x: 2 * x[1:]},
        cases=[(torch.ones(3),)],
        praise="Twice.",
    )
    assert verdict.says == "The result should have 3 numbers, yours has 2."


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
    assert grade_split(abs).says == "The check takes 2 functions, you gave 1."
    assert grade_clip().says == "The check takes 1 function, you gave 0."


def test_a_text_is_no_count():
    assert "must return numbers, got str" in grade_parameters(lambda *case: "44").says


def test_ragged_lists_are_not_called_errors_of_the_reader():
    for check in (grade_clip, grade_lstm_step):
        says = check(lambda *case: [[[1.0], [1.0, 2.0]], [[3.0], [1.0, 2.0]]]).says
        assert says.startswith("Your function must return numbers, got list")


def test_attention_as_a_list_with_its_weights():
    def both(q, k, v, mask):
        return [*scaled_dot_product_attention(q, k, v, mask=mask)]

    assert grade_masked_attention(both), grade_masked_attention(both)


@takes_functions
def check_doubling(answer):
    return grade_doubling(answer)


@takes_functions
def check_sum(answer):
    return grade(answer, right=sum, mistakes={}, cases=[([1, 2, 4],), ([3.5],)], praise="So.")


def one_by_one(x):
    for number in x:
        yield 2 * number


UNUSUAL = {
    "generator": one_by_one,
    "map": lambda x: map(float, 2 * x),
    "values": lambda x: {n: 2 * number for n, number in enumerate(x)}.values(),
    "tensors that require gradients": lambda x: list((2 * x).requires_grad_()),
    "leaf that requires gradients": lambda x: torch.nn.Parameter(2 * x),
    "tensors of several types": lambda x: [
        number * 2 if n else number.double() * 2 for n, number in enumerate(x)
    ],
    "every second of a view": lambda x: torch.stack((x, x), dim=1).mul(2)[:, 0],
    "other names": lambda vector: vector + vector,
}


@pytest.mark.parametrize("answer", UNUSUAL.values(), ids=UNUSUAL)
def test_right_results_of_unusual_form(answer):
    assert check_doubling(answer).says == "Twice."


def test_rows_that_are_yielded_one_by_one_or_within_a_list():
    cases = [(torch.ones(3, 2),), (torch.ones(2, 4),)]
    for answer in (one_by_one, lambda x: [one_by_one(row) for row in x]):
        checked = takes_functions(lambda answer: grade_doubling(answer, cases=cases))
        assert checked(answer), checked(answer)


def test_an_answer_that_yields_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(
        "exformer_lessons.exercises.results._MOST", 100
    )  # types are checked at every call here
    assert not check_doubling(lambda x: itertools.count())


@pytest.mark.parametrize("one", [torch.tensor([7.0]), [7], np.full((1, 1), 7.0)])
def test_one_number_in_a_table_is_a_number(one):
    def answer(numbers):
        return one if len(numbers) > 1 else 3.5

    assert check_sum(answer), check_sum(answer)


SAID_OF_NUMBERS = {
    "In one hidden case the number should be 7, yours is 5.": lambda numbers: 5 if len(numbers) > 1 else 3.5,
    "In one hidden case the number should be 7, yours is inf.": lambda numbers: math.inf,
    "In one hidden case the number should be 3.5, yours is 3.": lambda numbers: int(sum(numbers)),
    "The result should be one number, yours has the shape (3,).": lambda numbers: numbers,
    "Your result is NaN.": lambda numbers: math.nan,
}


@pytest.mark.parametrize("says", SAID_OF_NUMBERS)
def test_a_number_has_no_shape(says):
    assert check_sum(SAID_OF_NUMBERS[says]).says == says


def test_what_is_no_real_number_is_called_what_it_is():
    assert "Your numbers are complex" in check_doubling(lambda x: torch.complex(2 * x, x)).says
    assert "Your numbers are complex" in check_doubling(lambda x: [complex(2 * number) for number in x]).says
    assert "holds None" in check_doubling(lambda x: [None, *x[1:].tolist()]).says


def test_answer_in_place_without_return():
    def doubled(x):
        x *= 2

    says = "Your function changes what it was given, and returns nothing: return the result."
    assert check_doubling(doubled).says == says
    assert check_doubling(lambda x: None).says == "Your function returns nothing."


def test_equal_infinities_are_no_difference():
    wrong = grade(
        lambda x: [math.inf, 1], right=lambda x: [math.inf, 2], mistakes={}, cases=[(0,)], praise=""
    )
    assert wrong.says.endswith("the largest difference is 1.")


def test_a_hint_may_have_several_mistakes():
    mistakes = {"One off.": (lambda x: x + 1, lambda x: x - 1), "Zero.": lambda x: 0 * x}
    for answer, says in (
        (lambda x: x - 1, "One off."),
        (lambda x: x + 1, "One off."),
        (lambda x: x * 0, "Zero."),
    ):
        assert grade(answer, right=lambda x: 2 * x, mistakes=mistakes, cases=CASES, praise="").says == says


@pytest.mark.parametrize(
    ("owner", "check", "answer"),
    [
        ("the library's own rotate", grade_rotate, rotate),
        ("the library's own rotate", grade_rotate, partial(rotate, base=10_000.0)),
        (
            "PyTorch's own scaled_dot_product_attention",
            grade_masked_attention,
            F.scaled_dot_product_attention,
        ),
        ("the library's own finds_leak", grade_leak, finds_leak),
    ],
)
def test_a_function_of_the_library_or_of_pytorch_itself_is_told(owner, check, answer):
    verdict = check(answer)
    assert verdict
    assert verdict.says == f"But {owner} does the work here: write it yourself to learn it."


def test_use_of_the_library_is_not_told():
    assert "library" not in grade_rotate(lambda x, positions: rotate(x, positions)).says
    assert "library" not in grade_rotate(partial(lambda x, p, base: rotate(x, p, base=base), base=1e4)).says


def test_a_wrong_function_of_the_library_is_wrong():
    assert "library" not in grade_rotate(lambda x, p: rotate(x, p) + 1).says
    assert not grade_rotate(torch.mul)


def test_tolerance_by_the_largest_number():
    one, large = np.array([0.0, 0.001]), np.array([0.0, 1000.0, math.inf])
    assert all_close([one + 0.9e-5], [one], 1e-5)
    assert not all_close([one + 1.1e-5], [one], 1e-5)
    assert all_close([large + 0.009], [large], 1e-5)
    assert not all_close([large + 0.011], [large], 1e-5)
    assert not all_close([one, one + 1], [one, one], 1e-5)
    assert not all_close([one, one], [one, one[None]], 1e-5)


def test_nan_is_skipped_where_a_number_is_left():
    nan, one = np.array([math.nan]), np.array([1.0])
    assert all_close([nan, one], [one, one], 1e-5, skip_nan=True)
    assert not all_close([nan, nan], [one, one], 1e-5, skip_nan=True)
    assert not all_close([one], [nan], 1e-5, skip_nan=True)
    assert all_close([nan], [nan], 1e-5)
    assert not all_close([nan], [one], 1e-5)


def test_two_verdicts_are_joined():
    yes, no, worse = Verdict(True, "Yes."), Verdict(False, "No."), Verdict(False, "Worse.")
    assert and_also(yes, yes, "There") is yes
    assert and_also(no, worse, "There") is no
    assert and_also(no, yes, "There") is no
    assert and_also(yes, worse, "There") == Verdict(False, "There: Worse.")
    told = Verdict(True, f"Yes. {NOT_STABLE}")
    for says in (NOT_STABLE, "Your function raised ZeroDivisionError: 0"):
        assert with_large_scores(yes, Verdict(False, says)) == told
        assert with_large_scores(no, Verdict(False, says)) is no
    assert with_large_scores(yes, worse, " and low") == Verdict(
        False, "Where all scores are near -16,384 and low: Worse."
    )
