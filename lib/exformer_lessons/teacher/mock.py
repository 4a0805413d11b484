"""Exams for practice: questions and marking scheme are public, in one file per exam.

Each question has its answer in Markdown with the list of its points, as in a sealed answer; ``code``, which
is run before it and not shown; and ``wrong``, common wrong answers with the points that they get.
"""

import argparse
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from exformer_lessons.command import add_command
from exformer_lessons.teacher import sheets
from exformer_lessons.teacher.answers import compute
from exformer_lessons.teacher.questions import Question, add_folder, questions_of
from exformer_lessons.teacher.sheets import FACTOR

#: What is done in a minute: words read, words of an answer written, numbers computed, lines of code.
READ, WRITTEN, COMPUTED, LINES = 100, 15, 4, 2
_CODE = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"\S*\w\S*")
#: A part of a question, and its points.
_PART = re.compile(r"^(\d)\. .*\*\*\[(\d+)\]\*\*$", flags=re.MULTILINE)


@dataclass(frozen=True)
class Task:
    """A question of a public exam, as it is read.

    Args:
        question: What is asked; a minute is a point.
        scheme: The answer with its points, then what wrong answers get, in Markdown.
        least: How many minutes it takes at least to read the question and to write the answer by hand.
    """

    question: Question
    scheme: str
    least: float


@dataclass(frozen=True)
class Mock:
    """A public exam.

    Args:
        key: The name of its file.
        title: What it is, and which lessons it covers.
        minutes: How long it takes.
        rules: What is allowed.
        grades: From how many points on a grade is reached, the best first; a test has none.
        tasks: Its questions.
        late: Of a sheet for a tutorial, the question and its part to leave out when time is short; perhaps
            also a whole question.

    Raises:
        ValueError: If it has more points than its time has room for, if a question takes longer than its
            minutes, or if there is no such part to leave out.
    """

    key: str
    title: str
    minutes: int
    rules: str
    grades: dict[str, int]
    tasks: tuple[Task, ...]
    late: Sequence[int] = ()

    def __post_init__(self) -> None:
        if self.points > self.fits:
            raise ValueError(
                f"{self.key}: expected at most {self.fits} points in {self.minutes} minutes "
                f"(a ninth to read, and a third more than a minute for a point), got {self.points}"
            )
        for each in self.tasks:
            if each.least > each.question.minutes:
                raise ValueError(
                    f"{each.question.name}: expected at least {each.least:.1f} minutes, as its question is "
                    f"read and its answer written by hand, got {each.question.minutes}"
                )
        if self.late and not self.spared:
            raise ValueError(f"{self.key}: expected a question and its part, got {list(self.late)}")

    @property
    def fits(self) -> int:
        """How many points its time has room for: a point takes 4/3 minutes, and an exam a ninth to read."""
        return math.floor(self.minutes / FACTOR) if self.late else 2 * self.minutes // 3

    @property
    def points(self) -> int:
        """How many points it has."""
        return sum(each.question.minutes for each in self.tasks)

    @property
    def said(self) -> str:
        """From how many points on there is which grade."""
        return ", ".join(f"{grade} from {points}" for grade, points in self.grades.items())

    @property
    def spared(self) -> str:
        """What to leave out when time is short, in a sentence; nothing for an exam."""
        if len(self.late) not in (2, 3):
            return ""
        question, part, *reserve = self.late
        if not all(1 <= number <= len(self.tasks) for number in (question, *reserve)):
            return ""
        points = dict(_PART.findall(self.tasks[question - 1].question.text)).get(str(part))
        if not points:
            return ""
        saved = {f"part {part} of question {question}": int(points)}
        saved |= {f"all of question {n}": self.tasks[n - 1].question.minutes for n in reserve}
        told = [f"{what}, {math.ceil(FACTOR * each)} minutes" for what, each in saved.items()]
        return f"If you run late, leave out {', or '.join(told)}."


def mocks(folder: Path) -> list[str]:
    """Return the names of the public exams.

    Args:
        folder: ``book/teach`` in a clone of the book.

    Raises:
        ValueError: If it has no folder of them.
    """
    if not (folder / "mock").is_dir():
        raise ValueError(f"expected public exams in {folder / 'mock'}: run this in a clone of the book")
    return sorted(path.stem for path in (folder / "mock").glob("*.yml"))


def read_mock(folder: Path, key: str, seed: int | None = None) -> Mock:
    """Read a public exam; its numbers are computed.

    Args:
        folder: ``book/teach`` in a clone of the book.
        key: The name of its file.
        seed: Other numbers, where its code draws any.

    Raises:
        ValueError: If there is no such exam, a question lacks something, states a number that its code does
            not give, or gives a wrong answer all points; or as :class:`Mock` says.
    """
    if key not in mocks(folder):
        raise ValueError(f"expected a public exam ({', '.join(mocks(folder)) or 'none'}), got {key!r}")
    row = yaml.safe_load((folder / "mock" / f"{key}.yml").read_text(encoding="utf-8"))
    rows = row.pop("questions")
    apart = [{name: each.pop(name, "") for name in ("code", "answer", "wrong")} for each in rows]
    found = zip(questions_of(rows, key), apart, strict=True)
    return Mock(key=key, tasks=tuple(_task(each, seed=seed, **more) for each, more in found), **row)


def _task(question: Question, code: str, answer: str, wrong: Sequence[Any], seed: int | None) -> Task:
    told = []
    for points, words in wrong:
        if not 0 <= points < question.minutes:
            raise ValueError(f"{question.name}: expected fewer points than {question.minutes}, got {points}")
        told.append(f"- *{points} of {question.minutes}:* {' '.join(words.split())}")
    if not told:
        raise ValueError(f"{question.name}: expected common wrong answers, got none")
    before = f"```python\n{code}```" if code else ""
    text = f"{before}\n\n{answer.strip()}\n\n**Common wrong answers**\n\n" + "\n".join(told)
    question, scheme = compute(question, text, seed)
    scheme = scheme.removeprefix(before).strip()
    least = _least(question.text, scheme.partition("\n- ")[0], answer.partition("\n- ")[0].count("[["))
    return Task(question, scheme, least)


def _least(text: str, answer: str, numbers: int) -> float:
    lines = sum(len(code.strip().splitlines()) for code in _CODE.findall(answer))
    words = len(_WORD.findall(_CODE.sub("", answer)))
    return len(_WORD.findall(text)) / READ + words / WRITTEN + numbers / COMPUTED + lines / LINES


def add_commands(commands: Any) -> None:
    """Add ``mock`` to the parser."""
    what = "write a public exam, to read or to print, or its marking scheme"
    parser = add_command(commands, "mock", _write, what)
    parser.add_argument("name", metavar="NAME", help="such as exam or test_1")
    parser.add_argument("--answers", action="store_true", help="write the marking scheme; no key is needed")
    parser.add_argument("--seed", type=int, help="other numbers, where the questions draw any")
    sheets.add_options(parser)
    add_folder(parser)


def _write(options: argparse.Namespace) -> None:
    exam = read_mock(options.folder, options.name, options.seed)
    sheet = sheets.Sheet(
        name=exam.key,
        heading=exam.title,
        minutes=exam.minutes,
        rules=f"{exam.rules} {exam.spared}".strip() if options.answers else exam.rules,
        grades=exam.grades,
        points=tuple(task.question.minutes for task in exam.tasks),
        fits=exam.fits,
    )
    sheets.write(options, sheet, lambda: [(task.question, task.scheme) for task in exam.tasks])
