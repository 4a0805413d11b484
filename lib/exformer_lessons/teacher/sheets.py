"""A sheet of questions: what students get, the scheme by which it is marked, and the table of their marks."""

import argparse
import csv
import io
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from exformer_lessons.teacher.answers import MARK, answered
from exformer_lessons.teacher.gradebook import Person, read_roster
from exformer_lessons.teacher.marking import grade_of, new_table, read_table
from exformer_lessons.teacher.questions import Question, asked

#: A point is planned as a minute, and a third more is in reserve.
FACTOR = 4 / 3
#: A sheet that leaves a larger part of its time without points is named.
FULL = 0.8
#: How every scheme is applied, in Markdown.
MARKING = (
    "How to mark, unless a scheme says otherwise:\n\n"
    "- A line may earn half of its points. The smallest step is half a point.\n"
    "- A mistake costs its points once: what follows correctly from it is marked as right, unless it has "
    "become trivial.\n"
    "- Another right way earns the points of the steps that it replaces.\n"
    "- A right result without the reason or computation that its line names earns half of the line; "
    "a mere yes or no earns nothing."
)


@dataclass(frozen=True)
class Sheet:
    """An exam or a test, before its questions are read.

    Args:
        name: What messages call it.
        heading: What it is, and after a colon what it covers.
        minutes: How long it takes.
        rules: What is allowed.
        grades: From how many points on a grade is reached, the best first; a test has none.
        points: Of each question.
        fits: How many points its minutes have room for.
        private: Whether nobody but teachers may read it.
        extra: By how many percent the time is extended.
    """

    name: str
    heading: str
    minutes: int
    rules: str
    grades: dict[str, int]
    points: tuple[int, ...]
    fits: int
    private: bool = False
    extra: float = 0.0

    @property
    def total(self) -> int:
        """How many points it has."""
        return sum(self.points)

    @property
    def time(self) -> str:
        """How long it takes, in words."""
        if not self.extra:
            return f"{self.minutes} minutes"
        longer = math.ceil(self.minutes * (100 + self.extra) / 100)
        return f"{longer} minutes ({self.minutes}, extended by {self.extra:g}%)"

    @property
    def graded(self) -> str:
        """From how many points on there is which grade, in a sentence; nothing for a test."""
        said = ", ".join(f"{grade} from {points}" for grade, points in self.grades.items())
        return f"Grades, as a proposal, by points: {said}." if said else ""

    def without(self, numbers: set[int]) -> "Sheet":
        """Leave out questions, by their numbers, with their minutes; limits of grades fall in proportion.

        Raises:
            ValueError: If it has no question of such a number, or none would be left.
        """
        rest = tuple(points for number, points in enumerate(self.points, 1) if number not in numbers)
        if len(rest) != len(self.points) - len(numbers) or not rest:
            raise ValueError(
                f"{self.name}: expected some of its questions 1 to {len(self.points)}, but not all, "
                f"to leave out; got {', '.join(map(str, sorted(numbers)))}"
            )
        part = sum(rest) / self.total
        grades = {grade: round(least * part) for grade, least in self.grades.items()}
        minutes = self.minutes - saved(self.total - sum(rest))
        return replace(self, points=rest, minutes=minutes, grades=grades)


def saved(points: int) -> int:
    """Return how many minutes less a sheet takes without questions of so many points."""
    return math.floor(FACTOR * points)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let a command leave out questions, extend the time, and write for a printer or a table of marks."""
    parser.add_argument("--without", metavar="7,8", help="leave out these questions, and their minutes")
    parser.add_argument("--extra", metavar="25%", help="state an extended time")
    what = "write it to this file, which a browser prints, with formulas, a cover and room to answer"
    parser.add_argument("--html", type=Path, metavar="FILE", help=what)
    what = "write a new table for marks; if it exists, print it with the sums and grades"
    parser.add_argument("--marks", type=Path, metavar="FILE.csv", help=what)
    what = "who is in the course, as for grade: a new table for marks has a row for each"
    parser.add_argument("--roster", type=Path, metavar="FILE", help=what)


def write(options: argparse.Namespace, sheet: Sheet, solve: Callable[[], list[tuple[Question, str]]]) -> None:
    """Do what :func:`add_options` offers.

    Args:
        options: Those, and whether ``answers`` are wanted.
        sheet: What is written.
        solve: Reads its questions, with their answers if these are wanted.

    Raises:
        ValueError: If an option has no meaning here, or a private sheet would be in a repository.
    """
    if sheet.total < FULL * sheet.fits:
        said = f"{sheet.total} points in {sheet.minutes} minutes, where {sheet.fits} fit"
        print(f"warning: {sheet.name} has {said}", file=sys.stderr)
    out = set() if options.without is None else _numbers(options.without)
    sheet = replace(sheet.without(out), extra=_percent(options.extra))
    if options.roster and not options.marks:
        raise ValueError("expected --marks FILE.csv with --roster: there each student gets a row")
    if options.marks:
        print(_marks(sheet, options.marks, read_roster(options.roster) if options.roster else []), end="")
        return
    if options.html and sheet.private:
        from exformer_lessons.teacher.sealing import refuse_repository

        refuse_repository(options.html)
    tasks = [pair for number, pair in enumerate(solve(), 1) if number not in out]
    if not options.html:
        print(markdown(sheet, tasks, answers=options.answers))
        return
    try:
        from exformer_lessons.teacher.printing import page

        printed = page(sheet, tasks, answers=options.answers)
    except ImportError as error:
        raise ValueError(f"--html needs the environment of the book, requirements.txt: {error}") from None
    options.html.write_text(printed, encoding="utf-8")
    print(f"{options.html}: print it in a browser")


def markdown(sheet: Sheet, tasks: list[tuple[Question, str]], *, answers: bool) -> str:
    """Return a sheet, or its scheme."""
    parts = [f"# {sheet.heading}", f"{sheet.time}, {sheet.total} points. {sheet.rules}"]
    if answers:
        parts += [sheet.graded] * bool(sheet.graded) + [MARKING]
    for number, (question, answer) in enumerate(tasks, 1):
        parts.append(answered(question, number, answer) if answers else asked(number, question, plain=True))
    return f"{MARK}\n" * sheet.private + "\n\n".join(parts) + "\n"


def _numbers(told: str) -> set[int]:
    try:
        return {int(each) for each in told.split(",")}
    except ValueError:
        raise ValueError(f"--without: expected numbers of questions, such as 7,8; got {told!r}") from None


def _percent(told: str | None) -> float:
    try:
        found = 0.0 if told is None else float(told.removesuffix("%"))
    except ValueError:
        found = -1.0
    if not 0 <= found <= 400:
        raise ValueError(f"--extra: expected how much longer, such as 25%; got {told!r}")
    return found


def _marks(sheet: Sheet, path: Path, roster: Sequence[Person]) -> str:
    """Write a new table for marks, or add up a filled one; return what is to be said."""
    most = {str(number): points for number, points in enumerate(sheet.points, 1)}
    if not path.exists():
        path.write_text(new_table(most, roster), encoding="utf-8")
        what = "fill it in" if roster else "add a row for each student"
        return f"{path}: {what}, then run this again for sums and grades\n"
    filled = read_table(path, most, "; was it written with another --without?")
    written = io.StringIO()
    table = csv.writer(written, delimiter=filled.sign, lineterminator="\n")
    table.writerow(["student", *most, "points", *["grade"] * bool(sheet.grades)])
    for row, each in zip(filled.cells, filled.rows, strict=True):
        total = sum(each.points.values())
        points = f"{total:g}".replace(".", "," if filled.sign == ";" else ".")
        if not sheet.grades:
            table.writerow([*row, each.missing or points])
        elif each.missing:
            table.writerow([*row, "", each.missing])
        else:
            table.writerow([*row, points, grade_of(total, sheet.grades)])
    return written.getvalue()
