"""Grading: run an answer on hidden cases, and name the mistake when it is a known one."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True)
class Verdict:
    """What a grader says; true if the answer is right.

    Args:
        right: Whether the answer is right.
        says: One sentence for the reader: what was seen, or which mistake it is.
    """

    right: bool
    says: str

    def __bool__(self) -> bool:
        """Tell whether the answer is right."""
        return self.right

    def __repr__(self) -> str:
        """Write the verdict as one line."""
        return f"{'Right' if self.right else 'Not yet'}. {self.says}"

    def _repr_html_(self) -> str:
        kind, word = ("right", "Right.") if self.right else ("not-yet", "Not yet.")
        return f'<p class="verdict {kind}"><strong>{word}</strong> {html.escape(self.says)}</p>'


def takes_functions(grader: Callable[..., Verdict]) -> Callable[..., Verdict]:
    """Let a grader say what is wrong where it gets a result in place of a function.

    Args:
        grader: Grades one or more functions.

    Returns:
        The grader that does so.
    """

    @wraps(grader)
    def careful(*answers: object) -> Verdict:
        if not all(map(callable, answers)):
            return Verdict(False, "Give the function itself, without calling it.")
        return grader(*answers)

    return careful


def grade(
    answer: Callable[..., Any],
    *,
    right: Callable[..., Any],
    mistakes: Mapping[str, Callable[..., Any]],
    cases: Sequence[tuple[Any, ...]],
    praise: str,
    tolerance: float = 1e-5,
) -> Verdict:
    """Compare a reader's function with the right one, on every case.

    An answer counts as a known mistake only if it agrees with that mistake on *all* cases; so the cases must
    tell the mistakes apart, and a right answer is right however it is written.

    Args:
        answer: The reader's function.
        right: A function that gives the right answer.
        mistakes: For each hint a function that makes that mistake.
        cases: Arguments of the hidden calls.
        praise: What is said of a right answer, after the word "Right".
        tolerance: Largest difference that counts as equal, for numbers up to 1; for larger ones it grows with
            the largest, as rounding does.

    Returns:
        The verdict.

    Raises:
        ValueError: If there are no cases, or the answer is not a function.
    """
    if not cases or not callable(answer):
        raise ValueError(f"grade needs cases and a function to call, got {len(cases)} cases and {answer!r}")
    expected = [right(*case) for case in cases]
    given = []
    for case, wanted in zip(cases, expected, strict=True):
        try:
            given.append(answer(*_copies(case)))
        except Exception as error:  # whatever a reader's code raises is shown to the reader
            return Verdict(False, f"Your function raised {type(error).__name__}: {error}")
        complaint = _misfit(given[-1], wanted)
        if complaint:
            return Verdict(False, complaint)
    if _all_close(given, expected, tolerance):
        return Verdict(True, praise)
    for hint, mistake in mistakes.items():
        if _all_close(given, [mistake(*case) for case in cases], tolerance):
            return Verdict(False, hint)
    worst = max(_distance(g, e) for g, e in zip(given, expected, strict=True))
    return Verdict(False, f"The shape is right, the numbers are not: the largest difference is {worst:.3g}.")


def _copies(case: tuple[Any, ...]) -> list[Any]:
    """Give the reader's code tensors of its own, so that a change in place cannot touch the cases."""
    return [value.clone() if isinstance(value, torch.Tensor) else value for value in case]


def _array(value: Any) -> np.ndarray:
    return np.asarray(value.detach() if isinstance(value, torch.Tensor) else value, dtype=np.float64)


def _misfit(given: Any, wanted: Any) -> str:
    """Say what is wrong with the kind or shape of an answer; nothing if it fits."""
    if given is None or given is Ellipsis:
        return "Your function returns nothing yet."
    try:
        got = _array(given)
    except (TypeError, ValueError, RuntimeError):
        return f"Your function must return numbers, got {type(given).__name__}."
    if got.shape != _array(wanted).shape:
        return f"The result should have the shape {_array(wanted).shape}, yours has {got.shape}."
    return ""


def _distance(a: Any, b: Any) -> float:
    difference = np.abs(_array(a) - _array(b))
    return float("inf") if np.isnan(difference).any() else float(difference.max(initial=0.0))


def _all_close(given: Sequence[Any], others: Sequence[Any], tolerance: float) -> bool:
    """Tell whether two lists of results agree; results of another shape, or NaN against a number, do not."""
    return all(
        np.shape(_array(a)) == np.shape(_array(b))
        and np.allclose(_array(a), _array(b), rtol=0.0, atol=tolerance * _scale(_array(b)), equal_nan=True)
        for a, b in zip(given, others, strict=True)
    )


def _scale(values: np.ndarray) -> float:
    """Give the largest finite size among some numbers, at least 1."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=1.0))
