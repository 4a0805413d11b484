"""The marks of a course: what ``grade`` and ``exam`` wrote and what a teacher types, weighed and graded."""

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exformer_lessons.command import add_command
from exformer_lessons.teacher.course_rules import Assignment, Exam, Rules, read_rules
from exformer_lessons.teacher.days_late import days_late
from exformer_lessons.teacher.gradebook import (
    NOTHING,
    UNKNOWN,
    Person,
    harmless,
    person_named,
    person_of,
    read_roster,
    rows_of,
)
from exformer_lessons.teacher.marking import Row, grade_of, new_table, read_table
from exformer_lessons.teacher.questions import add_folder

#: Of a part with this word another one takes over the weight; any other word leaves it open.
EXCUSED = "excused"
#: Why there is no result of an exam: nothing is filled in, or too few exercises were passed.
ABSENT, REFUSED = "absent", "not admitted"
#: What a gradebook has beside exercises.
_COLUMNS = {"name", "participant", "email", "id", "sum", "feedback"}


@dataclass(frozen=True)
class Mark:
    """What a student has in a part.

    Args:
        points: Of the part.
        most: What they are out of.
        missing: Why there are none.
        told: How they came about.
    """

    points: float | int
    most: float | int
    missing: str = ""
    told: str = ""


class Marker:
    """Reads what each student has in each part.

    Args:
        rules: What counts.
        roster: Who is in the course.
    """

    def __init__(self, rules: Rules, roster: Sequence[Person]) -> None:
        self.rules, self.roster = rules, roster
        self.lost: set[str] = set()
        self.refused = self._not_admitted() if rules.admission else {}
        self.typed = self._by_student(read_table(rules.typed, rules.typed_columns).rows)

    def marks(self) -> dict[str, dict[Person, Mark]]:
        """Return the marks of each part."""
        found = {}
        for name, part in self.rules.parts.items():
            if isinstance(part, Assignment):
                found[name] = self._assignment(name, part)
            elif isinstance(part, Exam):
                found[name] = self._exam(part.marks)
            else:
                found[name] = {who: _typed(self.typed.get(who), name, part.points) for who in self.roster}
        return found

    def resits(self) -> dict[str, dict[Person, Mark]]:
        """Return the marks of who sat an exam again."""
        found = {}
        for name, part in self.rules.parts.items():
            if isinstance(part, Exam) and part.resit:
                marks = self._exam(part.resit)
                found[name] = {
                    who: mark for who, mark in marks.items() if mark.missing not in (ABSENT, REFUSED)
                }
        return found

    def _not_admitted(self) -> dict[Person, str]:
        """Return who has passed too few exercises, and how many of how many."""
        passed: dict[Person, set[str]] = defaultdict(set)
        all_of_them: set[str] = set()
        for path in self.rules.admission["exercises"]:
            for who, row in self._named(path).items():
                exercises = {name: told for name, told in row.items() if name not in _COLUMNS}
                if not exercises or {*exercises.values()} - {"0", "1"}:
                    raise ValueError(
                        f"{path}: expected 0 or 1 for each exercise, as grade --gradebook writes"
                    )
                all_of_them |= exercises.keys()
                passed[who] |= {name for name, told in exercises.items() if told == "1"}
        if not (most := len(all_of_them)):
            raise ValueError("admission: expected exercises of students in the roster, got none")
        few = [who for who in self.roster if 100 * len(passed[who]) < self.rules.admission["least"] * most]
        return {who: f"{len(passed[who])} of {most} exercises" for who in few}

    def _by_student(self, rows: Iterable[Row]) -> dict[Person, Row]:
        found: dict[Person, Row] = {}
        for row in rows:
            who = person_named([row.student], self.roster)
            if who is None:
                self.lost.add(row.student)
            elif who in found:
                raise ValueError(f"expected a row for each student, got two for {row.student}")
            else:
                found[who] = row
        return found

    def _named(self, path: Path, *columns: str) -> dict[Person, dict[str, str]]:
        found: dict[Person, dict[str, str]] = {}
        for row in rows_of(path):
            if not row.keys() >= {*columns}:
                raise ValueError(f"{path}: expected what grade --gradebook wrote, with {', '.join(columns)}")
            one = person_of(row)
            names = [name for name in (one.email, one.name, one.id) if name != UNKNOWN]
            if who := person_named(names, self.roster):
                found[who] = row
            else:
                self.lost.add(one.name)
        return found

    def _exam(self, path: Path) -> dict[Person, Mark]:
        """Return what a table of marks says of each student."""
        table = read_table(path)
        rows, most = self._by_student(table.rows), sum(table.most.values())
        found = {}
        for who in self.roster:
            if who in self.refused:
                found[who] = Mark(0, most, REFUSED, self.refused[who])
            elif who not in rows:
                found[who] = Mark(0, most, ABSENT)
            else:
                found[who] = Mark(sum(rows[who].points.values()), most, rows[who].missing)
        return found

    def _assignment(self, name: str, part: Assignment) -> dict[Person, Mark]:
        graded = self._named(part.gradebook, "sum", "feedback")
        replaced = self._named(part.instead, "sum", "feedback") if part.instead else {}
        times = self._named(part.worksheet) if part.worksheet else {}
        columns = {what: f"{name} {what}" for what in ("written", "unanswered", "days late")}
        found = {}
        for who in self.roster:
            late = days_late(times[who], part.due) if who in times else 0
            row = self.typed.get(who, Row(who.name, {}, {}))
            typed = {what: row.points.get(column) for what, column in columns.items()}
            word = next((row.words[each] for each in columns.values() if each in row.words), "")
            code = graded.get(who, {})
            if replaced.get(who, {}).get("feedback", NOTHING) != NOTHING:
                code, late = replaced[who], 0
            nothing = not code or code["feedback"] == NOTHING
            found[who] = self._earned(part, None if nothing else float(code["sum"]), typed, late, word)
        return found

    def _earned(
        self,
        part: Assignment,
        code: float | int | None,
        typed: dict[str, float | int | None],
        late: int,
        word: str,
    ) -> Mark:
        most, written, unanswered = part.points, typed["written"], typed["unanswered"]
        days = late if typed["days late"] is None else typed["days late"]
        if word:
            return Mark(0, most, word)
        if code is None and written is None:
            return Mark(0, most, told="nothing handed in")
        if written is None or unanswered is None:
            blank = [what for what in ("written", "unanswered") if typed[what] is None]
            return Mark(0, most, f"{' and '.join(blank)} blank")
        if (code or 0) + part.written > most:
            raise ValueError(f"{part.gradebook}: expected at most {most - part.written} points, got {code}")
        told = f"code {code or 0:g}, written {written:g}, unanswered {unanswered:g}, days late {days:g}"
        if days > self.rules.late["days"]:
            return Mark(0, most, told=f"{told}: too late")
        kept = (1 - days * self.rules.late["percent"] / 100) * (1 - unanswered / self.rules.unanswered)
        return Mark(((code or 0) + written) * kept, most, told=told)


def _typed(row: Row | None, column: str, most: float | int) -> Mark:
    if row is None or (column not in row.points and column not in row.words):
        return Mark(0, most, "blank")
    return Mark(row.points.get(column, 0), most, row.words.get(column, ""))


def weighed(rules: Rules, own: Mapping[str, Mark]) -> tuple[float | int | None, str]:
    """Return the sum of a student in percent, to a tenth, and the grade: *open* while a part is missing."""
    excused = {name for name, mark in own.items() if mark.missing == EXCUSED} - {rules.excused}
    if any(mark.missing for name, mark in own.items() if name not in excused):
        return None, "open"
    weights = {name: part.weight for name, part in rules.parts.items() if name not in excused}
    weights[rules.excused] += sum(rules.parts[name].weight for name in excused)
    percent = {name: 100 * own[name].points / own[name].most for name in weights}
    total = round(sum(weights[name] * percent[name] for name in weights) / 100, 1)
    enough = all(round(each, 1) >= rules.parts[name].least for name, each in percent.items())
    return total, grade_of(total, rules.grades) if enough else rules.worst


def _resat(mark: Mark, most: float | int) -> Mark:
    """Return a mark of a resit as one of ``most`` points, which are those of the exam."""
    if mark.missing:
        return Mark(0, most, f"resit {mark.missing}")
    return Mark(mark.points * most / mark.most, most, told=f"resit, {mark.points:g} of {mark.most:g} points")


def write_marks(rules: Rules, out: Path) -> str:
    """Write a row for each student, and say who lacks what.

    The file begins with a byte order mark, as the gradebook does.
    """
    roster = read_roster(rules.roster)
    marker = Marker(rules, roster)
    marks, resits = marker.marks(), marker.resits()
    open_ones: dict[str, list[Person]] = defaultdict(list)
    passed: dict[str, list[Person]] = defaultdict(list)
    with out.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file)
        table.writerow(["name", "participant", "email", "id", *rules.parts, "sum", "grade", "feedback"])
        for who in roster:
            own = {name: each[who] for name, each in marks.items()}
            again = {name: _resat(each[who], own[name].most) for name, each in resits.items() if who in each}
            total, grade = weighed(rules, own)
            if grade not in ("open", rules.worst):
                for name in again:
                    passed[f"{name}: a resit of who had passed does not count"].append(who)
            elif again:
                own |= again
                total, grade = weighed(rules, own)
            cells = [
                "" if mark.missing else f"{mark.points:.2f}".rstrip("0").rstrip(".") for mark in own.values()
            ]
            notes = {name: ", ".join(filter(None, (mark.missing, mark.told))) for name, mark in own.items()}
            said = "; ".join(f"{name}: {note}" for name, note in notes.items() if note)
            for name, mark in own.items():
                if mark.missing not in ("", EXCUSED):
                    open_ones[f"{name} {mark.missing}"].append(who)
            known = map(harmless, (who.name, who.number, who.email, who.id))
            table.writerow([*known, *cells, "" if total is None else f"{total:.1f}", grade, harmless(said)])
    count = len({who for each in open_ones.values() for who in each})
    lines = [f"{out}: {len(roster)} students, {count} of them open"]
    told = [*open_ones.items(), *passed.items()]
    lines += [f"  {what}: {', '.join(who.name for who in each)}" for what, each in told]
    lines += [f"{UNKNOWN}, not counted: {', '.join(sorted(marker.lost))}"] * bool(marker.lost)
    return "\n".join(lines)


def add_commands(commands: Any) -> None:
    """Add ``marks`` to the parser."""
    what = "weigh all parts of a course, and write a row with the grade of each student"
    parser = add_command(commands, "marks", _run, what)
    what = "what counts; if it does not exist, a proposal is written there"
    parser.add_argument("rules", type=Path, metavar="RULES.yml", help=what)
    parser.add_argument("--csv", type=Path, required=True, metavar="OUT", help="where the table is written")
    add_folder(parser)


def _run(options: argparse.Namespace) -> None:
    if not options.rules.exists():
        proposal = options.folder / "marks.yml"
        if not proposal.is_file():
            raise ValueError(f"expected a proposal of rules in {proposal}: run this in a clone of the book")
        options.rules.parent.mkdir(parents=True, exist_ok=True)
        options.rules.write_text(proposal.read_text(encoding="utf-8"), encoding="utf-8")
        print(f"{options.rules}: change what counts, then run this again")
        return
    rules = read_rules(options.rules)
    if not rules.typed.exists():
        rules.typed.write_text(new_table(rules.typed_columns, read_roster(rules.roster)), encoding="utf-8")
        print(f"{rules.typed}: fill it in, then run this again")
        return
    print(write_marks(rules, options.csv))
