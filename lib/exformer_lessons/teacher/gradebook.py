"""A gradebook for the CSV import of Moodle or Canvas: one row for each student, from their exercises.

Moodle looks up each student by e-mail or ID number. It refuses the whole file if it does not find one, and a
row without either goes to the student above. So what the roster lacks is ``UNKNOWN``, never empty. Canvas
takes every column for an assignment, so its import is a table of its own, with the sums alone.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from exformer_lessons.teacher.grade import Result

#: A folder or file of Moodle's download of all submissions.
_MOODLE = re.compile(r"(.+?)_(\d+)_assignsubmission_")
#: A file of Canvas' download: the name, LATE if it was, the user's ID, then the file's, unless it was typed.
#: The file's has four digits or more, so that no date in a name is one.
_CANVAS = re.compile(r"(\w+?)_(?:LATE_)?(\d+)_(?:\d{4,}_|text\.html|link\.html)")
#: What Canvas' export of its gradebook has before the assignments, perhaps with more between.
_EXPORT = {"ID", "SIS Login ID", "Section"}
#: The number in the first column of Moodle's grading worksheet, which begins with a word in any language.
_PARTICIPANT = re.compile(r"\D+?(\d+)")
_ID = re.compile(r"\b(?:id|id[ _-]?(?:number|nummer)|student[ _-]?(?:id|number)|matri\w*)\b", re.I)
#: Moodle finds nobody by this, and says so.
UNKNOWN = "not in the roster"
#: What the feedback says then.
NOTHING = "Nothing was handed in."


class Person(NamedTuple):
    """A student: what Moodle or Canvas knows them by, and all names that a folder of theirs may have.

    ``number`` is Moodle's for a hand-in or, if ``id`` is the same, Canvas' for a user. ``export`` has the
    columns and cells of Canvas' export up to the section.
    """

    name: str
    number: str
    email: str = UNKNOWN
    id: str = UNKNOWN
    names: frozenset[str] = frozenset()
    export: tuple[tuple[str, str], ...] = ()


def student_of(path: str) -> Person:
    """Return whose file this is: its first folder says it, or its own name.

    >>> student_of("Ada Lovelace_1234567_assignsubmission_file_/03.ipynb")[:2], student_of("s17/03.ipynb")[:2]
    (('Ada Lovelace', '1234567'), ('s17', ''))
    >>> student_of("lovelaceada_LATE_12345_678910_03_self_attention-1.ipynb")[:2]
    ('lovelaceada', '12345')
    """
    first = " ".join(PurePosixPath(path).parts[0].split())
    if found := _MOODLE.match(first):
        return Person(found[1], found[2])
    if found := _CANVAS.match(first):
        return Person(found[1], found[2], id=found[2])
    return Person(first.removesuffix(".ipynb"), "")


def cells_of(path: Path) -> tuple[str, list[list[str]]]:
    """Read a table's rows of cells, and what separates them: the sign that is most often in the first row.

    Raises:
        ValueError: If it is not in UTF-8.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"expected {path} in UTF-8: save it as *CSV UTF-8*") from None
    sign = max(",;\t", key=text.partition("\n")[0].count)
    table = csv.reader(io.StringIO(text, newline=""), delimiter=sign)
    rows = ([cell.strip() for cell in row] for row in table)
    return sign, [row for row in rows if any(row)]


def rows_of(path: Path) -> list[dict[str, str]]:
    """Read a table whose first row has the names of its columns.

    Raises:
        ValueError: If it is not in UTF-8, or has no row.
    """
    head, *rows = cells_of(path)[1] or [[]]
    if not rows:
        raise ValueError(f"expected a row of names of columns in {path}, and one for each student")
    return [dict(zip(head, row, strict=False)) for row in rows]


def read_roster(path: Path) -> list[Person]:
    """Read who is in a course: Moodle's worksheet, Canvas' export, or any table with names, e-mails or IDs.

    Canvas' rows without an ID are about assignments, and its last one may be a student for tests.
    """
    people = [person_of(row) for row in rows_of(path)]
    return [who for who in people if not who.export or (who.number and _plain(who.name) != "studenttest")]


def person_of(row: dict[str, str]) -> Person:
    """Return whom a row of a roster is about."""
    if row.keys() >= _EXPORT:
        heads = [*row]
        export = {head: row[head] for head in heads[: heads.index("Section") + 1]}
        login, number = export["SIS Login ID"] or UNKNOWN, export["ID"]
        plain = person_of({head: cell for head, cell in export.items() if head != "Section"})
        return plain._replace(number=number, email=login, export=tuple(export.items()))
    cells = list(row.values())
    number = _PARTICIPANT.fullmatch(cells[0])
    name = " ".join(cell for head, cell in row.items() if re.search("name(?<!username)", head, re.I))
    both = [f"{one} {two}" for one, two in [*pairwise(cells), *pairwise(cells[::-1])]]
    return Person(
        name or cells[bool(number and cells[1:])],
        number[1] if number else "",
        next((cell for cell in cells if "@" in cell), UNKNOWN),
        next((cell for head, cell in row.items() if _ID.search(head)), cells[0]) or UNKNOWN,
        frozenset(filter(None, map(_plain, [*cells, *both]))),
    )


def _plain(name: str) -> str:
    """Keep what no archive changes of a name: Moodle leaves out apostrophes, a Mac takes accents apart."""
    return "".join(c for c in unicodedata.normalize("NFKC", name).casefold() if c.isalnum())


def _find(student: Person, roster: Sequence[Person]) -> Person:
    """Find a student by name, of several by the number, which is part of the name where names are hidden.

    A user's ID is the same in all files of Canvas, so there no name counts.
    """
    if student.number == student.id and any(each.export for each in roster):
        return next((each for each in roster if each.number == student.number), student)
    found = [each for each in roster if _plain(student.name) in each.names]
    if len(found) > 1:
        found = [each for each in found if student.number and each.number == student.number]
    elif not found:
        found = [each for each in roster if _plain(student.name + student.number) in each.names]
    return found[0] if len(found) == 1 else student


def person_named(names: Sequence[str], roster: Sequence[Person]) -> Person | None:
    """Return whom names mean, such as an e-mail and an ID: the first that only one student has."""
    for name in map(_plain, names):
        if len(found := [each for each in roster if name and name in each.names]) == 1:
            return found[0]
    return None


def owner_of(path: str, roster: Sequence[Person]) -> Person:
    """Find whose file this is; folders around those of students, such as one for each week, say nothing."""
    parts = PurePosixPath(path).parts
    told = [student_of("/".join(parts[n:])) for n in range(len(parts))]
    known = next((found for each in told if (found := _find(each, roster)) in roster), None)
    return known or next((each for each in told if each.number), told[0])


def harmless(text: str) -> str:
    """Keep a spreadsheet from reading a text as a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def write_gradebook(results: Iterable["Result"], out: Path, roster: Sequence[Person] = ()) -> str:
    """Write a row for each student, and say how many there are and who is not in the roster.

    An exercise is worth 1 or, in an assignment, its points; of several files the best counts. The file begins
    with a byte order mark: Excel needs it, and Moodle drops it. If the roster is Canvas', a table to import
    is written beside it, whose assignment has the name of the file.

    Args:
        results: Of the grader.
        out: Where it is written.
        roster: Of the course; who handed in nothing has 0 everywhere.
    """
    best: dict[Person, dict[str, Result]] = {person: {} for person in roster}
    for each in results:
        if each.result != "total":
            own = best.setdefault(owner_of(each.student, roster), {})
            own[each.column] = max(own.get(each.column, each), each, key=_points)
    columns = list(dict.fromkeys(column for own in best.values() for column in own if column))
    sums = {who: sum(_points(own[each]) for each in columns if each in own) for who, own in best.items()}
    with out.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file)
        known = ["name", "participant", "email", "id"][: 4 if roster else 2]
        table.writerow([*known, *columns, "sum", "feedback"])
        for who, own in best.items():
            points = [_points(own[each]) if each in own else 0 for each in columns]
            words = [harmless(each) for each in (who.name, who.number, who.email, who.id)[: len(known)]]
            table.writerow([*words, *points, sums[who], harmless(_feedback(own, columns))])
    absent = sum(not own for own in best.values())
    unknown = [who.name for who in best if roster and who not in roster]
    lost = f"; {UNKNOWN}: {', '.join(unknown)}" if unknown else ""
    told = f"{out}: {len(best)} students, {absent} of them handed in nothing{lost}"
    if any(each.export for each in roster):
        most = {each.column: each.full or 1 for own in best.values() for each in own.values() if each.column}
        told += f"\n{_write_for_canvas(sums, sum(most.values()), out, roster)}: to import into Canvas"
    return told


def _write_for_canvas(sums: Mapping[Person, int], most: int, out: Path, roster: Sequence[Person]) -> Path:
    """Write the sums without a byte order mark, which Canvas would take for a part of the first name."""
    path = out.with_name(f"{out.stem}_canvas.csv")
    heads = [head for head, _ in roster[0].export]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow([*heads, out.stem])
        table.writerow(["    Points Possible", *[""] * (len(heads) - 1), most])
        table.writerows([*(harmless(cell) for _, cell in who.export), sums[who]] for who in roster)
    return path


def _points(result: "Result") -> int:
    return result.points if result.full else int(result.result == "passed")


def _feedback(own: dict[str, "Result"], columns: list[str]) -> str:
    """Return the hints of what is not right, and what is missing."""
    if not own:
        return NOTHING
    wrong = {name: each for name, each in own.items() if each.result != "passed"}
    said = [f"{name}: {each.hint}".removeprefix(": ") for name, each in wrong.items()]
    if missing := [name for name in columns if name not in own]:
        said.append(f"Not handed in: {', '.join(missing)}.")
    return " ".join(said) or "All of it is right."
