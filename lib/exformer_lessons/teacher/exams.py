"""Exams, composed of questions; with a private key, their grading schemes."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from exformer_lessons.command import add_command
from exformer_lessons.teacher.answers import MARK, add_key, answered, read_answers
from exformer_lessons.teacher.questions import Question, add_folder, asked, read_questions, titles


@dataclass(frozen=True)
class Exam:
    """An exam.

    Args:
        key: Its name, such as A.
        title: What it covers.
        minutes: How long it takes, and how many points it has.
        rules: What is allowed.
        grades: From how many points on a grade is reached, the best first.
        questions: In their order.
    """

    key: str
    title: str
    minutes: int
    rules: str
    grades: dict[str, int]
    questions: tuple[Question, ...]


def read_exams(folder: Path) -> list[Exam]:
    """Read all exams.

    Raises:
        ValueError: If a question is unknown, or if the minutes of an exam are not those of its questions.
    """
    return [_exam(folder, row) for row in yaml.safe_load((folder / "exams.yml").read_text(encoding="utf-8"))]


def _exam(folder: Path, row: dict[str, Any]) -> Exam:
    found = []
    for name in row["questions"]:
        lesson, _, wanted = name.partition("/")
        ids = {each.id: each for each in read_questions(folder, lesson)}
        if wanted not in ids:
            known = ", ".join(ids)
            raise ValueError(f"exam {row['key']}: expected a question of {lesson}: {known}; got {wanted!r}")
        found.append(ids[wanted])
    exam = Exam(**row | {"questions": tuple(found)})
    if (total := sum(each.minutes for each in found)) != exam.minutes:
        raise ValueError(f"exam {exam.key}: expected questions of {exam.minutes} minutes, got {total}")
    return exam


def add_commands(commands: Any) -> None:
    """Add ``exam`` to the parser."""
    what = "write an exam, in Markdown; with a private key, its grading scheme"
    parser = add_command(commands, "exam", _write, what)
    parser.add_argument("exam", metavar="EXAM", help="A or B")
    add_key(parser, required=False)
    add_folder(parser)


def _write(options: argparse.Namespace) -> None:
    title, exams = titles(options.folder), {each.key: each for each in read_exams(options.folder)}
    if options.exam not in exams:
        raise ValueError(f"expected one of the exams {', '.join(exams)}, got {options.exam!r}")
    exam = exams[options.exam]
    if options.key:
        print(MARK)
    print(f"# Exam {exam.key}: {exam.title}\n\n{exam.minutes} minutes, {exam.minutes} points. {exam.rules}\n")
    if options.key:
        said = ", ".join(f"{grade} from {points}" for grade, points in exam.grades.items())
        print(f"Grades, as a proposal, by points: {said}.\n")
    lesson, answers = "", {}
    for number, question in enumerate(exam.questions, 1):
        if question.lesson != lesson:
            lesson = question.lesson
            print(f"## {title[lesson]}\n")
            answers = read_answers(options.folder, lesson, options.key) if options.key else {}
        if options.key:
            print(answered(question, number, answers[question.id]), end="\n\n")
        else:
            print(asked(number, question, named=False), end="\n\n")
