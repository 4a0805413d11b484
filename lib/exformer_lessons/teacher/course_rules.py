"""What counts in a course: its parts and their weights, late days, grades, and who may sit the exam."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from exformer_lessons.teacher.marking import grade_of

#: The fields that name a file, which lies beside that of the rules.
_FILES = {"gradebook", "instead", "worksheet", "marks", "resit"}


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """A part that ``grade`` marks, with a written part that a teacher does.

    Args:
        weight: In percent of the grade.
        gradebook: What ``grade --gradebook`` wrote.
        points: The most points, with the written part.
        written: The most points of the written part.
        instead: The gradebook of what replaces it for the ill.
        worksheet: Moodle's, which says when something was handed in.
        due: When it had to be.
        least: What must be reached, in percent of the points.
    """

    weight: float | int
    gradebook: Path
    points: float | int
    written: float | int
    instead: Path | None = None
    worksheet: Path | None = None
    due: object = None
    least: float | int = 0


@dataclass(frozen=True, kw_only=True)
class Exam:
    """A part with a table of marks.

    Args:
        weight: In percent of the grade.
        marks: The table, filled in.
        resit: That of the resit.
        least: What must be reached, in percent of the points.
    """

    weight: float | int
    marks: Path
    resit: Path | None = None
    least: float | int = 0


@dataclass(frozen=True, kw_only=True)
class Typed:
    """A part whose points a teacher types.

    Args:
        weight: In percent of the grade.
        points: The most points.
        least: What must be reached, in percent of the points.
    """

    weight: float | int
    points: float | int
    least: float | int = 0


Part = Assignment | Exam | Typed


@dataclass(frozen=True)
class Rules:
    """What counts, as a file says it: the fields are those of ``book/teach/marks.yml``."""

    roster: Path
    typed: Path
    parts: dict[str, Part]
    late: dict[str, float | int]
    unanswered: int
    excused: str
    grades: dict[str, float | int]
    admission: dict[str, Any] = field(default_factory=dict)

    @property
    def typed_columns(self) -> dict[str, float | int]:
        """The columns that are typed, with the most of each."""
        found: dict[str, float | int] = {}
        for name, part in self.parts.items():
            if isinstance(part, Assignment):
                most = {"written": part.written, "unanswered": self.unanswered, "days late": 99}
                found |= {f"{name} {what}": points for what, points in most.items()}
            elif isinstance(part, Typed):
                found[name] = part.points
        return found

    @property
    def worst(self) -> str:
        """The grade of who does not pass."""
        return grade_of(0, self.grades)


def read_rules(path: Path) -> Rules:
    """Read what counts.

    Raises:
        ValueError: If a field is missing, unknown or of another kind of part, the weights are not 100
            together, grades do not fall, or there is no exam to admit to.
    """
    folder = path.parent
    try:
        row = yaml.safe_load(path.read_text(encoding="utf-8"))
        parts = {name: _part(name, part, folder) for name, part in row["parts"].items()}
        rules = Rules(**row | {name: folder / row[name] for name in ("roster", "typed")} | {"parts": parts})
        if rules.admission:
            _check_admission(rules)
            rules.admission["exercises"] = [folder / name for name in rules.admission["exercises"]]
        _ = rules.parts[rules.excused], rules.late["percent"], rules.late["days"]
        total = sum(part.weight for part in parts.values())
    except (yaml.YAMLError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path}: expected the fields of book/teach/marks.yml, got {error!r}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if total != 100:
        raise ValueError(f"{path}: expected weights of 100 percent together, got {total}")
    if [*rules.grades.values()] != sorted(rules.grades.values(), reverse=True):
        raise ValueError(f"{path}: expected the best grade first, got {rules.grades}")
    return rules


def _part(name: str, row: Mapping[str, Any], folder: Path) -> Part:
    """Return a part of the kind that its fields tell."""
    kind = Assignment if "gradebook" in row else Exam if "marks" in row else Typed
    known = {each.name for each in fields(kind)}
    needed = {each.name for each in fields(kind) if each.default is MISSING}
    if not needed <= {*row} <= known:
        may = f"{', '.join(sorted(needed))}, and perhaps {', '.join(sorted(known - needed))}"
        raise ValueError(f"{name}: expected {may}; got {', '.join(sorted(row))}")
    for each in row:
        what, kinds = ("the name of a file", str) if each in _FILES else ("a number", int | float)
        if each != "due" and not isinstance(row[each], kinds):
            raise ValueError(f"{name}: expected {what} as {each}, got {row[each]!r}")
    return kind(**{each: folder / value if each in _FILES else value for each, value in row.items()})


def _check_admission(rules: Rules) -> None:
    given = rules.admission
    books, least = given.get("exercises"), given.get("least")
    if {*given} != {"exercises", "least"} or not (books and isinstance(books, list)):
        raise ValueError(f"expected admission: {{exercises: [exercises.csv], least: 50}}, got {given}")
    if not isinstance(least, int | float) or not 0 < least <= 100:
        raise ValueError(f"admission: expected a percentage of exercises as least, got {least!r}")
    if not any(isinstance(part, Exam) for part in rules.parts.values()):
        raise ValueError("admission: no part has marks")
