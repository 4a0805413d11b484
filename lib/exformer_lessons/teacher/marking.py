"""Tables that a marker fills in: a head, a row of maxima, and a row for each student.

A cell holds points, or nothing yet, or a word that says why there are none, such as *ill*.
"""

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from exformer_lessons.teacher.gradebook import UNKNOWN, Person, cells_of, harmless

#: What Python reads as a number, and a program writes for a missing one.
_NO_WORDS = {"nan", "inf", "infinity"}


@dataclass(frozen=True)
class Row:
    """What a table says of a student.

    Args:
        student: The first cell.
        points: By column, those that are there.
        words: By column, why there are none, such as *ill*.
        blank: The columns with nothing.
    """

    student: str
    points: dict[str, float | int]
    words: dict[str, str]
    blank: tuple[str, ...] = ()

    @property
    def missing(self) -> str:
        """Why there is no sum: a word, *absent* if nothing is filled in, or which columns are blank."""
        if self.words or not self.blank:
            return next(iter(self.words.values()), "")
        return f"incomplete: {', '.join(self.blank)}" if self.points else "absent"


@dataclass(frozen=True)
class Table:
    """A table as it is read.

    Args:
        sign: What separates its cells.
        most: The most points of each column.
        cells: Of each student, as they are written.
        rows: What they say.
    """

    sign: str
    most: dict[str, float | int]
    cells: list[list[str]]
    rows: list[Row]


def new_table(most: Mapping[str, float | int], roster: Sequence[Person] = ()) -> str:
    """Return a new table.

    Args:
        most: The columns, with the most points of each.
        roster: Of the course: each student gets a row.
    """
    names = Counter(each.name for each in roster)
    students = [
        each.name if names[each.name] == 1 or each.email == UNKNOWN else each.email for each in roster
    ]
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(["student", *most])
    table.writerow(["maximum", *(f"{points:g}" for points in most.values())])
    table.writerows([harmless(student), *[""] * len(most)] for student in students)
    return written.getvalue()


def read_table(path: Path, most: Mapping[str, float | int] | None = None, hint: str = "") -> Table:
    """Read a table.

    Args:
        path: Where it is.
        most: The columns that are expected, with the most points of each; None for any.
        hint: What is added to the message about other columns.

    Raises:
        ValueError: If the table is another one, or a cell is neither points within range nor a word.
    """
    sign, rows = cells_of(path)
    head, highest = [*rows, [], []][:2]
    wanted = head if most is None else ["student", *most]
    maxima = highest if most is None else ["maximum", *(f"{points:g}" for points in most.values())]
    try:
        found = {name: float(points) for name, points in zip(head[1:], highest[1:], strict=True)}
    except ValueError:
        found = {}
    if (head, highest) != (wanted, maxima) or not found or (head[0], highest[0]) != ("student", "maximum"):
        first = "student,… and maximum,…" if most is None else f"{sign.join(wanted)} and {sign.join(maxima)}"
        raise ValueError(f"{path}: expected the first rows {first}{hint}")
    cells = [[*row, *[""] * len(head)][: len(head)] for row in rows[2:]]
    return Table(sign, found, cells, [_row(row, found) for row in cells])


def _row(cells: list[str], most: Mapping[str, float | int]) -> Row:
    student, *told = cells
    there = {name: cell for name, cell in zip(most, told, strict=True) if cell}
    words = {name: cell for name, cell in there.items() if cell.isalpha() and cell.lower() not in _NO_WORDS}
    points = {name: _points(student, name, there[name], most[name]) for name in there if name not in words}
    return Row(student, points, words, tuple(name for name in most if name not in there))


def _points(student: str, name: str, told: str, most: float | int) -> float:
    try:
        found = float(told.replace(",", "."))
    except ValueError:
        found = -1.0
    if not 0 <= found <= most:
        column = f"question {name}" if name.isdecimal() else name
        raise ValueError(
            f"{student}, {column}: expected 0 to {most:g} points, a word such as ill, or nothing; got {told}"
        )
    return found


def grade_of(points: float | int, grades: Mapping[str, float | int]) -> str:
    """Return the first grade that is reached.

    >>> grade_of(74.5, {"good": 75, "pass": 50}), grade_of(49, {"good": 75, "pass": 50})
    ('pass', 'fail')
    """
    return next((name for name, least in grades.items() if points >= least), "fail")
