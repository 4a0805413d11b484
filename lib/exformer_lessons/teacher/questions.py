"""Questions for homework and exams: one file per lesson, whose answers are not in it."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from exformer_lessons.command import add_command

KINDS = ("recall", "apply", "prove", "design")


@dataclass(frozen=True)
class Question:
    """A question. A minute is a point.

    Args:
        lesson: The slug of its lesson.
        id: Its name within the lesson.
        kind: One of ``KINDS``.
        objective: Which objective of the lesson it tests, counted from 1.
        minutes: How long an answer should take.
        text: In Markdown.
    """

    lesson: str
    id: str
    kind: str
    objective: int
    minutes: int
    text: str

    @property
    def name(self) -> str:
        """Its name in the whole book, such as ``self_attention/one-key``."""
        return f"{self.lesson}/{self.id}"


def read_questions(folder: Path, lesson: str) -> list[Question]:
    """Read the questions of a lesson.

    Args:
        folder: ``book/teach`` in a clone of the book.
        lesson: A slug.

    Raises:
        ValueError: If the lesson has none, or if a question lacks something or has an id twice.
    """
    path = folder / "questions" / f"{lesson}.yml"
    if not path.is_file():
        known = ", ".join(lessons_with_questions(folder))
        raise ValueError(f"expected a lesson with questions ({known}), got {lesson!r}")
    rows = yaml.safe_load(path.read_text(encoding="utf-8"))
    return questions_of([{"lesson": lesson} | row for row in rows], lesson)


def questions_of(rows: Iterable[dict[str, Any]], where: str) -> list[Question]:
    """Make questions of what a file says.

    Args:
        rows: The fields of each.
        where: What a message names.

    Raises:
        ValueError: If a question lacks something or has an id twice.
    """
    found = []
    for row in rows:
        try:
            question = Question(**row)
        except TypeError:
            fields = ", ".join(Question.__annotations__)
            raise ValueError(f"{where}: expected a question with {fields}; got {row}") from None
        if question.kind not in KINDS or question.minutes < 1:
            raise ValueError(
                f"{question.name}: expected at least a minute and a kind of {', '.join(KINDS)}; "
                f"got {question.minutes!r}, {question.kind!r}"
            )
        if question.id in {each.id for each in found}:
            raise ValueError(f"{where}: expected each id once, got {question.id!r} twice")
        found.append(question)
    return found


def lessons_with_questions(folder: Path) -> list[str]:
    """Return the slugs of the lessons that have questions, in the order of the book."""
    return [slug for slug in titles(folder) if (folder / "questions" / f"{slug}.yml").is_file()]


def titles(folder: Path) -> dict[str, str]:
    """Return the number and the title of each lesson by its slug, as ``book/lessons.yml`` plans them."""
    plan = folder.parent / "lessons.yml"
    if not plan.is_file():
        raise ValueError(f"expected the plan of the book, {plan}: run this in a clone of the book")
    rows = yaml.safe_load(plan.read_text(encoding="utf-8"))
    return {row["slug"]: f"{row['number']} {row['title']}" for row in rows}


def slug_of(folder: Path, name: str) -> str:
    """Return the slug of a lesson that may be named by its number: 03."""
    return next((slug for slug, title in titles(folder).items() if title.split()[0] == name), name)


def sheet(questions: Iterable[Question], first: int = 1) -> str:
    """Return questions in Markdown, numbered."""
    return "\n\n".join(asked(number, each) for number, each in enumerate(questions, first))


def asked(number: int, question: Question, *, plain: bool = False) -> str:
    """Return a question in Markdown: its number and points, and for teachers its kind and name as well."""
    head = f"**{number}.** {points_of(question)}"
    if not plain:
        unit = "minute" if question.minutes == 1 else "minutes"
        head = f"**{number}. {question.kind.capitalize()}**, {question.minutes} {unit} (`{question.name}`)"
    return f"{head}\n\n{question.text.strip()}"


def points_of(question: Question) -> str:
    """Return how many points a question has, in words."""
    return "1 point" if question.minutes == 1 else f"{question.minutes} points"


def add_commands(commands: Any) -> None:
    """Add ``questions`` to the parser."""
    what = "write a sheet of questions, in Markdown"
    parser = add_command(commands, "questions", _write, what)
    parser.add_argument(
        "lessons", nargs="*", metavar="LESSON", help="such as self_attention or 03; all if left out"
    )
    parser.add_argument("--kind", choices=KINDS, help="these only")
    add_folder(parser)


def add_folder(parser: argparse.ArgumentParser, option: str = "--folder") -> None:
    """Let a command read another folder than that of the book."""
    parser.add_argument(
        option, type=Path, default=Path("book/teach"), help="where questions/ is (book/teach)"
    )


def _write(options: argparse.Namespace) -> None:
    title = titles(options.folder)
    asked_for = [slug_of(options.folder, name) for name in options.lessons]
    for lesson in asked_for or lessons_with_questions(options.folder):
        found = read_questions(options.folder, lesson)
        chosen = [each for each in found if options.kind in (None, each.kind)]
        print(f"## {title[lesson]}\n\n{sheet(chosen)}\n")
