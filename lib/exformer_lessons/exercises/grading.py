"""Grading: run an answer on hidden cases, and name the mistake when it is a known one."""

import html
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

import numpy as np

from exformer_lessons.exercises.results import (
    UnfitError,
    all_close,
    as_list,
    as_numbers,
    difference,
    in_float32,
    same,
)

#: A function that makes a mistake, or several that make the same one.
Mistake = Callable[..., Any] | tuple[Callable[..., Any], ...]

#: Said of a mask, where the answer fails with large scores.
FINITE_FILL = "You fill masked scores with a finite number, and real scores may be lower still: use -inf."
#: Said of an answer that is right where its exponentials neither overflow nor vanish.
NOT_STABLE = (
    "But with scores near -16,384 every exponential is 0, and 0/0 is NaN: "
    "subtract the largest score first, as torch.softmax does."
)

_OWNERS = {"exformer": "the library's own", "exformer_lessons": "the library's own", "torch": "PyTorch's own"}
_CHANGES = "But it changes what it was given: a caller may still need it."
#: What PyTorch says where two types meet.
_TWO_TYPES = re.compile(r"raised RuntimeError: .*(dtype|datatype|scalar type)")
_FLOAT32 = 1e-4  # the least tolerance for answers in float32


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
        """Return whether the answer is right."""
        return self.right

    def __repr__(self) -> str:
        """Write the verdict as one line."""
        return f"{'Right' if self.right else 'Not yet'}. {self.says}"

    def _repr_html_(self) -> str:
        kind, word = ("right", "Right.") if self.right else ("not-yet", "Not yet.")
        return f'<p class="verdict {kind}"><strong>{word}</strong> {html.escape(self.says)}</p>'


def runs_inside(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function of a case through which an answer differentiates.

    A sandbox imports it by its name, since the values that it would get from outside have no gradients.
    """
    vars(function)["runs_inside"] = True
    return function


def takes_functions(grader: Callable[..., Verdict]) -> Callable[..., Verdict]:
    """Let a grader say what is wrong where it gets a result in place of a function, or too few of them.

    What an answer yields one by one becomes a list. A function of the library or of PyTorch is right, but the
    reader is told to write one.
    """
    n = len(inspect.signature(grader).parameters)

    @wraps(grader)
    def careful(*answers: object) -> Verdict:
        if len(answers) != n:
            return Verdict(False, f"The check takes {n} function{'s' * (n > 1)}, you gave {len(answers)}.")
        if not all(map(callable, answers)):
            return Verdict(False, "Give the function itself, without calling it.")
        verdict = grader(*map(_listing, answers))
        owners = [owner for answer in answers if (owner := _owner(answer))]
        if not verdict or not owners:
            return verdict
        return Verdict(True, f"But {owners[0]} does the work here: write it yourself to learn it.")

    return careful


def _listing(function: Any) -> Callable[..., Any]:
    return lambda *case: as_list(function(*case))


def _owner(function: Any) -> str | None:
    """Name a function that is not the reader's own."""
    while isinstance(function, partial):
        function = function.func
    owner = _OWNERS.get(str(function.__module__).partition(".")[0])
    return f"{owner} {getattr(function, '__name__', type(function).__name__)}" if owner else None


def and_also(first: Verdict, second: Verdict, where: str) -> Verdict:
    """Join the verdict on the usual cases with that on unusual ones.

    Args:
        first: On cases that tell known mistakes apart.
        second: On cases for which a mistake may fail.
        where: What is unusual in them, as the beginning of a sentence.

    Returns:
        The first, unless the second alone refuses.
    """
    return first if second or not first else Verdict(False, f"{where}: {second.says}")


def with_large_scores(usual: Verdict, large: Verdict, where: str = "") -> Verdict:
    """Join the verdict on usual scores with that on scores near -16,384: the second refuses a finite fill.

    Exponentials that vanish there are no mistake of the equation: the answer is right, but it is told.

    Args:
        usual: On scores of usual size.
        large: On large ones.
        where: What else is unusual in them.
    """
    if usual and (large.says == NOT_STABLE or "raised ZeroDivisionError" in large.says):
        return Verdict(True, f"{usual.says} {NOT_STABLE}")
    return and_also(usual, large, f"Where all scores are near -16,384{where}")


def first_of(n_axes: int) -> Callable[..., Any]:
    """Let an answer return (output, weights), as the library does: its output counts.

    Args:
        n_axes: How many axes the output has; by them a list of two results is told from a list of rows.

    Returns:
        A frame for :func:`grade`.
    """

    def frame(given: Any, *case: Any) -> Any:
        if not isinstance(given, tuple | list) or not given:
            return given
        return given[0] if isinstance(given, tuple) or np.ndim(given[0]) == n_axes else given

    return frame


def grade(
    answer: Callable[..., Any],
    *,
    right: Callable[..., Any],
    mistakes: Mapping[str, Mistake],
    cases: Sequence[tuple[Any, ...]],
    praise: str,
    tolerance: float = 1e-5,
    frame: Callable[..., Any] = lambda given, *case: given,
) -> Verdict:
    """Compare a reader's function with the right one, on every case.

    An answer counts as a known mistake only if it agrees with that mistake on *all* cases; so the cases must
    tell the mistakes apart, and a right answer is right however it is written. Where an answer is NaN, it
    counts as the mistake that it agrees with elsewhere. An answer that makes tensors of its own, in float32,
    may not fit to cases in float64: it is graded again on the same cases in float32.

    Args:
        answer: The reader's function.
        right: A function that gives the right answer.
        mistakes: For each hint a function that makes that mistake, or a tuple of several that do.
        cases: Arguments of the hidden calls.
        praise: What is said of a right answer, after the word "Right".
        tolerance: Largest difference that counts as equal, for numbers up to 1; for larger ones it grows with
            the largest, as rounding does.
        frame: Makes numbers of any result, the reader's or ours, given the result and the case; raises
            :class:`UnfitError` where it cannot.

    Returns:
        The verdict.

    Raises:
        ValueError: If there are no cases, or the answer is not a function.
    """
    if not cases or not callable(answer):
        raise ValueError(f"grade needs cases and a function to call, got {len(cases)} cases and {answer!r}")

    def numbers(function: Callable[..., Any]) -> Iterator[np.ndarray]:
        return (as_numbers(frame(function(*case), *case)) for case in cases)

    try:
        results = [_result(answer, case, frame) for case in cases]
    except UnfitError as error:
        single = in_float32(cases)
        if _TWO_TYPES.search(str(error)) and not same(single, cases):
            options = {"right": right, "mistakes": mistakes, "praise": praise, "frame": frame}
            return grade(answer, cases=single, tolerance=max(tolerance, _FLOAT32), **options)
        return Verdict(False, str(error))
    expected = list(numbers(right))
    given = [_alone(found, wanted) for (_, found, _), wanted in zip(results, expected, strict=True)]
    if all_close(given, expected, tolerance):
        kept = all(unchanged for *_, unchanged in results)
        return Verdict(True, praise if kept else f"{praise} {_CHANGES}")
    wrong = [
        (hint, each)
        for hint, mistake in mistakes.items()
        for each in (mistake if isinstance(mistake, tuple) else (mistake,))
    ]
    some_nan = any(np.isnan(each).any() for each in given)
    right_but_for_nan = all_close(given, expected, tolerance, skip_nan=True)
    for skip_nan in (False, True) if some_nan and not right_but_for_nan else (False,):
        for hint, each in wrong:
            if all_close(given, numbers(each), tolerance, skip_nan=skip_nan):
                return Verdict(False, hint)
    for (result, found, _), wanted, case in zip(results, expected, cases, strict=True):
        if isinstance(result, str) and not all_close([found], [wanted], tolerance):
            return Verdict(False, f"The text should be {right(*case)!r}, yours is {result!r}.")
    return Verdict(False, difference(given, expected))


def _alone(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Take one number out of its table where one number is wanted."""
    return found.reshape(()) if wanted.ndim == 0 and found.size == 1 else found


def _result(
    answer: Callable[..., Any], case: tuple[Any, ...], frame: Callable[..., Any]
) -> tuple[Any, np.ndarray, bool]:
    """Call a reader's function on a copy of a case: its result, the numbers in it, is the copy unchanged."""
    own = deepcopy(case)
    try:
        result = answer(*own)
    except UnfitError:  # a case may refuse what an answer does with it
        raise
    except Exception as error:  # whatever a reader's code raises is shown to the reader
        raise UnfitError(f"Your function raised {type(error).__name__}: {error}") from error
    if result is None or result is Ellipsis:
        if same(own, case):
            raise UnfitError("Your function returns nothing.")
        raise UnfitError("Your function changes what it was given, and returns nothing: return the result.")
    try:
        return result, as_numbers(frame(result, *case)), same(own, case)
    except (TypeError, ValueError, IndexError, OverflowError, RuntimeError) as error:
        raise UnfitError(f"Your function must return numbers, got {type(result).__name__}.") from error
