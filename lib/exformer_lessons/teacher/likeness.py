"""Pairs of students whose code is nearly the same: whom to ask first, and no proof.

The sandbox makes a list of words of an answer's tree, without names and comments, so another name or a new
comment changes nothing. Compared is how many runs of words two answers share, without the runs that most of
the class writes or that the notebook has as it is handed out. Short answers count only together, over all
exercises that both have handed in.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from exformer_lessons.teacher.gradebook import Person, owner_of
from exformer_lessons.teacher.inside import choose, shape

if TYPE_CHECKING:
    from exformer_lessons.teacher.grade import Result

#: Words of a run, the fewest runs that are compared, and from which fraction on two answers are alike.
RUN, LEAST, ALIKE = 8, 60, 0.8
#: What more than this fraction of the class writes, and more than two, is how one writes it.
COMMON = 0.5
#: How many pairs are told.
MOST = 40
#: The name of all exercises of a pair together.
TOGETHER = "together"


def handed_out(notebook: Path, wanted: list[str]) -> tuple[str, ...]:
    """Return the shape of an answer that nobody has touched.

    Args:
        notebook: As it is handed out, or with solutions, which are in no cell of code.
        wanted: The names that the exercise asks for.
    """
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return tuple(shape(choose(code, wanted)[0]))


def alike(
    results: Sequence["Result"], roster: Sequence[Person] = ()
) -> dict[tuple[str, str], dict[str, float]]:
    """Return the pairs of students with the exercises whose code is alike, and the fraction that is.

    Args:
        results: Of the grader; of several files of a student the last counts.
        roster: Of the course.
    """
    answers: dict[str, dict[Person, Counter[tuple[str, ...]]]] = defaultdict(dict)
    for each in results:
        given = {*_runs(each.given)}
        own = Counter(run for run in _runs(each.shape) if run not in given)
        answers[each.column][owner_of(each.student, roster)] = own
    compared: dict[tuple[Person, Person], dict[str, tuple[int, int]]] = defaultdict(dict)
    for exercise, written in answers.items():
        rare = _without_common(written)
        for one, other in combinations(rare, 2):
            both = rare[one].total() + rare[other].total()
            compared[one, other][exercise] = 2 * (rare[one] & rare[other]).total(), both
    found = {
        (_name(one), _name(other)): parts
        for (one, other), counts in compared.items()
        if (parts := _alike(counts))
    }
    return dict(sorted(found.items(), key=lambda pair: -max(pair[1].values())))


def _runs(shape: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(shape[n:] for n in range(RUN)), strict=False)


def _without_common(
    written: dict[Person, Counter[tuple[str, ...]]],
) -> dict[Person, Counter[tuple[str, ...]]]:
    having = Counter(run for runs in written.values() for run in runs)
    most = max(2, COMMON * len(written))
    return {
        who: Counter({run: n for run, n in runs.items() if having[run] <= most})
        for who, runs in written.items()
    }


def _alike(counts: dict[str, tuple[int, int]]) -> dict[str, float]:
    if len(counts) > 1:
        shared, both = (sum(each[n] for each in counts.values()) for n in (0, 1))
        counts = counts | {TOGETHER: (shared, both)}
    return {
        name: shared / both
        for name, (shared, both) in counts.items()
        if both >= 2 * LEAST and shared >= ALIKE * both
    }


def _name(who: Person) -> str:
    return f"{who.name} ({who.number})" if who.number else who.name


def told(pairs: dict[tuple[str, str], dict[str, float]]) -> str:
    """Return what the teacher reads: the pairs, and that they prove nothing; nothing if there is none."""
    if not pairs:
        return ""
    lines = [
        f"  {one} and {other}: " + ", ".join(f"{name} {shared:.0%}" for name, shared in parts.items())
        for (one, other), parts in pairs.items()
    ]
    more = [f"  and {len(lines) - MOST} more pairs"] if len(lines) > MOST else []
    head = "Nearly the same code, names aside. This proves nothing: ask both how they came to it."
    return "\n".join([head, *lines[:MOST], *more])
