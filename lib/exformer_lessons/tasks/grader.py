"""Graders: the row of a task, invented words."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from exformer_lessons.exercises.grading import Verdict, grade, takes_functions
from exformer_lessons.exercises.results import UnfitError
from exformer_lessons.tasks import mistakes as known

_ROWS = (
    ([11, 12, 13, 14], [7], [12, 14, 15], 1, 2, 0),
    ([21, 22], [8, 9], [22], 3, 5, 4),
    ([31, 32, 33], [6], [33, 31], 2, 1, 9),
    ([21, 9, 8, 22], [8, 9], [9, 22, 8], 3, 5, 4),  # the separator's ids are words, too
    ([31, 6, 33], [6], [33, 6], 2, 1, 7),
)
_SUMMARIES = (
    (
        "Ada Ricci sold it in Oslo",
        "Ada Conti sold the mill . Oslo is near",
        ["Ada", "Conti", "Ricci", "Oslo"],
    ),
    (
        "Bruno and Bruno went to Rome",
        "Ada was in Pisa . she met Hugo",
        ["Ada", "Bruno", "Hugo", "Pisa", "Rome"],
    ),
    (
        "20 people met Ada on Monday",
        "Ada came on Friday with 200 people",
        ["20", "200", "Ada", "Monday", "Friday"],
    ),
    ("nobody new was there", "Ada slept", ["Ada", "Bruno"]),
    ("in 2020 there were 20 people", "people came", ["20", "2020", "Ada"]),
    ("Ada met Ada", "Ada slept", ["Ada", "Bruno"]),
    ("Ada left in May , they say", "ada may come and they may not", ["Ada", "May"]),
    ("she met Ada, who slept", "he slept", ["Ada"]),
    ("the mark may fade and may not", "Ada slept", ["Ada", "Mark", "May"]),
    ("Mark may come", "the mark is here", ["Mark", "Ada"]),
    ("she slept on it", "Ada slept", ["Ada", "Conti"]),
)


@takes_functions
def grade_row(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_row(article, separator, summary, bos_id, eos_id, pad_id)``.

    Args:
        answer: Takes three lists of ids and three ids; returns the model's input and its targets, with
            ``pad_id`` where nothing is to be predicted.

    Examples:
        >>> grade_row(lambda a, sep, s, bos, eos, pad: ([bos, *a, *sep, *s], [*a, *sep, *s, eos]))
        Not yet. Your targets hold the article too: before the summary, each target is pad_id.
    """
    named = _wrong_length(answer)
    if named is not None:  # a verdict that refuses is false
        return named
    return grade(
        answer,
        right=known.row,
        mistakes=known.ROW,
        cases=list(_ROWS),
        praise="The first target is at the position of the separator.",
        tolerance=1e-9,  # ids are right to the last digit
        frame=_flat,
    )


def _flat(given: Any, *case: object) -> object:
    if any(isinstance(word, list) for part in given for word in part):
        raise UnfitError("The separator is a list: put its ids into the row one by one, *separator.")
    return given


def _wrong_length(answer: Callable[..., object]) -> Verdict | None:
    """Name a mistake that makes a row of another length; None if there is none, or the answer fails."""
    try:
        rows = [[[int(word) for word in part] for part in answer(*deepcopy(case))] for case in _ROWS]
    except Exception:  # grade tells the reader what the code raised
        return None
    for hint, mistake in known.ROW_LENGTHS.items():
        if rows == [[*mistake(*case)] for case in _ROWS]:
            return Verdict(False, hint)
    lengths = [len(part) for part in rows[0]]
    if len(lengths) == 2 and lengths[0] != lengths[1]:
        says = f"Both lists must be equally long, yours have {lengths[0]} and {lengths[1]} ids."
        return Verdict(False, says)
    return None


@takes_functions
def grade_invented(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_invented(summary, article, names)``.

    Args:
        answer: Takes two texts and a list of words; returns how many words of the summary are in the list
            and not in the article.
    """
    return grade(
        answer,
        right=known.invented,
        mistakes=known.INVENTED,
        cases=list(_SUMMARIES),
        praise="Whole words, each as often as the summary has it.",
        tolerance=1e-9,
    )
