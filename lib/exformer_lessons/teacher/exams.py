"""Exams, composed of questions; with a private key, their grading schemes.

The questions of an exam are public, or sealed together with their answers, so that no student has read them.
An exam may also be put together of both: ``D/3`` is question 3 of the sealed exam D.
"""

import argparse
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from exformer_lessons.command import add_command
from exformer_lessons.teacher import sheets
from exformer_lessons.teacher.answers import (
    add_key,
    add_trust,
    opened,
    read_answers,
    read_manifest,
    solved,
)
from exformer_lessons.teacher.questions import (
    Question,
    add_folder,
    lessons_with_questions,
    questions_of,
    read_questions,
    titles,
)
from exformer_lessons.teacher.sheets import FACTOR

#: Minutes to read the sheet.
READING = 10
#: A question of a sealed exam.
_SEALED = re.compile(r"(\w+)/(\d+)")


@dataclass(frozen=True)
class Exam:
    """An exam.

    Args:
        key: Its name, such as A.
        title: What it covers.
        minutes: How long it takes.
        rules: What is allowed.
        grades: From how many points on a grade is reached, the best first.
        asks: Lesson, kind and minutes of each question.
        questions: The names of its questions, public ones or those of sealed exams; a sealed exam has none.

    Raises:
        ValueError: If it leaves too little time to read and to think.
    """

    key: str
    title: str
    minutes: int
    rules: str
    grades: dict[str, int]
    asks: list[tuple[str, str, int]]
    questions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (needed := READING + FACTOR * self.points) > self.minutes:
            raise ValueError(
                f"exam {self.key}: expected {needed:.0f} minutes for {self.points} points ({READING} to read "
                f"and a third in reserve), got {self.minutes}"
            )

    @property
    def points(self) -> int:
        """How many points it has: a point is a minute."""
        return sum(minutes for _, _, minutes in self.asks)

    @property
    def public(self) -> bool:
        """Whether everybody can read its questions."""
        return bool(self.questions) and not any(map(_SEALED.fullmatch, self.questions))

    @property
    def sealed(self) -> str:
        """The name of its sealed file."""
        return f"exam_{self.key}"


def read_exams(folder: Path) -> list[Exam]:
    """Read what is public about all exams.

    Raises:
        ValueError: If the file is missing or no YAML, a question is unknown, or an exam leaves too little
            time to read and to think.
    """
    path = folder / "exams.yml"
    if not path.is_file():
        raise ValueError(f"expected a list of exams in {path}: run this in a clone of the book")
    try:
        rows = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(
            f"{path}: expected a list of exams, as in book/teach/exams.yml, got {error}"
        ) from None
    return [_exam(folder, row) for row in rows]


def _exam(folder: Path, row: dict[str, Any]) -> Exam:
    names = tuple(row.get("questions", ()))
    asks = [_ask(folder, row["key"], name) for name in names] or _asks(folder, row["key"])
    return Exam(**row | {"questions": names, "asks": asks})


def _asks(folder: Path, key: str) -> list[tuple[str, str, int]]:
    return [tuple(each) for each in read_manifest(folder).get(f"exam_{key}", {}).get("asks", [])]


def _ask(folder: Path, key: str, name: str) -> tuple[str, str, int]:
    if not (found := _SEALED.fullmatch(name)):
        question = _named(folder, key, name)
        return question.lesson, question.kind, question.minutes
    asks, number = _asks(folder, found[1]), int(found[2])
    if not asks:
        raise ValueError(
            f"exam {key}: {name} is of a sealed exam, and {folder / 'questions'} has none {found[1]}"
        )
    if not 1 <= number <= len(asks):
        raise ValueError(f"exam {key}: the sealed exam {found[1]} has {len(asks)} questions, got {name!r}")
    return asks[number - 1]


def _named(folder: Path, key: str, name: str) -> Question:
    lesson, _, wanted = name.partition("/")
    ids = {each.id: each for each in read_questions(folder, lesson)}
    if wanted not in ids:
        raise ValueError(f"exam {key}: expected a question of {lesson}: {', '.join(ids)}; got {wanted!r}")
    return ids[wanted]


def add_commands(commands: Any) -> None:
    """Add ``exam`` to the parser."""
    what = "write an exam, to read or to print, or its grading scheme"
    parser = add_command(commands, "exam", _write, what)
    parser.add_argument("exam", metavar="EXAM", help="one of exams.yml, such as A")
    add_key(parser, required=False)
    parser.add_argument("--answers", action="store_true", help="write the grading scheme; needs --key")
    parser.add_argument("--asks", action="store_true", help="list what each question asks, in place of it")
    parser.add_argument("--seed", type=int, help="other numbers, in a sealed exam")
    sheets.add_options(parser)
    add_trust(parser)
    add_folder(parser)


def _write(options: argparse.Namespace) -> None:
    exams = {each.key: each for each in read_exams(options.folder)}
    if options.exam not in exams:
        raise ValueError(f"expected one of the exams {', '.join(exams)}, got {options.exam!r}")
    exam = exams[options.exam]
    if options.asks:
        print(_told(options, exam))
        return
    if exam.public and options.seed is not None:
        drawn = ", ".join(key for key, each in exams.items() if not each.public) or "none"
        raise ValueError(
            f"exam {exam.key} is public, its numbers are fixed; a sealed exam has others ({drawn}), "
            f"and so has a public one that the command mock writes"
        )
    seeded = "" if options.seed is None else f", seed {options.seed}"
    sheet = sheets.Sheet(
        name=f"exam {exam.key}",
        heading=f"Exam {exam.key}{seeded}: {exam.title}",
        minutes=exam.minutes,
        rules=exam.rules,
        grades=exam.grades,
        points=tuple(points for *_, points in exam.asks),
        fits=math.floor((exam.minutes - READING) / FACTOR),
        private=options.answers or not exam.public,
    )
    sheets.write(options, sheet, lambda: _solved(options, exam))


def _told(options: argparse.Namespace, exam: Exam) -> str:
    """Return what each question asks, in Markdown, and which lessons from the first to the last none does."""
    _need_key(options, exam)
    sealed = [each[1] for each in map(_SEALED.fullmatch, exam.questions) if each]
    for key in dict.fromkeys(sealed) if exam.questions else [exam.key]:
        _opened(options, key)  # the list is for those who may read the questions
    title = titles(options.folder)
    lines = ["| Question | Lesson | Points | Kind | Name |", "|---|---|---|---|---|"]
    names = exam.questions or [f"{exam.key}/{number}" for number in range(1, 1 + len(exam.asks))]
    for number, (name, (lesson, kind, points)) in enumerate(zip(names, exam.asks, strict=True), 1):
        lines.append(f"| {number} | {title[lesson]} | {points} | {kind} | {name} |")
    asked = {title[lesson] for lesson, *_ in exam.asks}
    bank = [title[lesson] for lesson in lessons_with_questions(options.folder)]
    missed = [each.split()[0] for each in bank if min(asked) < each < max(asked) and each not in asked]
    return "\n".join(lines) + f"\n\nNothing on {', '.join(missed)}." * bool(missed)


def _need_key(options: argparse.Namespace, exam: Exam) -> None:
    """Check that there is a key, if one is needed."""
    if (options.answers or not exam.public) and not options.key:
        what = "the answers are" if exam.public else f"exam {exam.key} is"
        raise ValueError(
            f"{what} sealed: expected --key FILE; book/teach/keys.md says how to get one, or do without"
        )


def _solved(options: argparse.Namespace, exam: Exam) -> list[tuple[Question, str]]:
    """Return the questions of an exam with their answers, or with nothing if no key is needed."""
    _need_key(options, exam)
    if not exam.questions:
        return solved(_opened(options, exam.key), seed=options.seed, trust=options.trust)
    found: dict[str, tuple[Question, str]] = {}
    names = [name for name in exam.questions if not _SEALED.fullmatch(name)]
    public = [_named(options.folder, exam.key, name) for name in names]
    if options.answers:
        for lesson in dict.fromkeys(each.lesson for each in public):
            answers = read_answers(options.folder, lesson, options.key, trust=options.trust)
            found |= {each.name: (each, answer) for each, answer in answers}
    else:
        found |= {each.name: (each, "") for each in public}
    parts = [each for each in map(_SEALED.fullmatch, exam.questions) if each]
    plain = {key: _opened(options, key) for key in dict.fromkeys(each[1] for each in parts)}
    pairs = [plain[each[1]][int(each[2]) - 1] for each in parts]
    if pairs:
        told = solved(pairs, seed=options.seed, trust=options.trust)
        found |= {each[0]: pair for each, pair in zip(parts, told, strict=True)}
    return [found[name] for name in exam.questions]


def _opened(options: argparse.Namespace, key: str) -> list[tuple[Question, str]]:
    """Return the questions of a sealed exam, each with its plain answer."""
    whose = "" if key == options.exam else f"exam {options.exam} takes questions from exam {key}; "
    try:
        plain = opened(options.folder, f"exam_{key}", options.key)
    except ValueError as error:
        raise ValueError(f"{whose}{error}") from None
    return [(each, plain["answers"][each.id]) for each in questions_of(plain["questions"], f"exam_{key}")]
