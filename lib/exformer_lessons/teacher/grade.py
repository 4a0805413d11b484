"""Grade many notebooks: each exercise runs in a sandbox of its own, and its verdict is made outside.

The grader of the lesson stays in this process. The sandbox holds the answer alone: it gets the arguments
of one hidden case after another and sends back what the answer returns. What was handed in reaches neither
the grader nor an expected result.
"""

import argparse
import ast
import csv
import importlib
import json
import re
import secrets
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import tee
from pathlib import Path
from typing import Any

from exformer_lessons.command import add_command
from exformer_lessons.exercises.grading import Verdict
from exformer_lessons.notebook import find as find_lessons
from exformer_lessons.notebook import key_of
from exformer_lessons.teacher import sandbox
from exformer_lessons.teacher.answers import add_key
from exformer_lessons.teacher.assignments import Part, read_parts
from exformer_lessons.teacher.gradebook import harmless, read_roster, student_of, write_gradebook
from exformer_lessons.teacher.inside import decode, encode, grades, receive, send
from exformer_lessons.teacher.likeness import alike, handed_out, told
from exformer_lessons.teacher.questions import add_folder

#: Bytes of the largest notebook that is read.
LARGEST = 8_000_000
#: Lines that put something in a grader's place. It has no effect here, and the teacher is told.
TAMPERS = re.compile(
    r"^\s*(?:def\s+grade_|class\s+Verdict\b|(?:[\w.]+\.)?grade_\w+\s*=(?!=))|\bas\s+grade_|setattr\([^\n]*grade_",
    re.M,
)
_LESSON = re.compile(r"exformer_lessons\.(\w+)\.grader\b")


@dataclass(frozen=True)
class Exercise:
    """A graded exercise of a lesson.

    Args:
        lesson: The slug.
        call: The call of the grader, as the lesson's notebook has it.
        notebook: Of the lesson.
    """

    lesson: str
    call: ast.Call
    notebook: Path

    @property
    def name(self) -> str:
        """The grader's name without ``grade_``."""
        return ast.unparse(self.call.func).removeprefix("grade_")

    @property
    def wanted(self) -> list[str]:
        """The names that a reader defines."""
        given = [*self.call.args, *(each.value for each in self.call.keywords)]
        return [ast.unparse(each) for each in given]

    @cached_property
    def given(self) -> tuple[str, ...]:
        """The shape of the cell as it is handed out."""
        return handed_out(self.notebook, self.wanted)

    @property
    def uses_torch(self) -> bool:
        """Whether its grader uses PyTorch."""
        return "torch" in vars(importlib.import_module(f"exformer_lessons.{self.lesson}.grader"))

    def judge(self, answers: dict[str, Any]) -> Verdict:
        """Call the grader with answers, as the notebook does."""
        grader = getattr(
            importlib.import_module(f"exformer_lessons.{self.lesson}.grader"), f"grade_{self.name}"
        )
        named = {}
        for each in self.call.keywords:
            value = answers[ast.unparse(each.value)]
            named |= {each.arg: value} if each.arg else value
        return grader(*(answers[ast.unparse(each)] for each in self.call.args), **named)


@dataclass(frozen=True)
class Result:
    """A row of the table.

    Args:
        student: The file.
        exercise: Its name, or that of a part of an assignment.
        result: passed, refused, error, timeout, tampered or *no notebook*; for a part also *in part* and
            *excluded*.
        hint: What the grader says.
        seconds: How long it took.
        points: Of a part.
        full: How many points the part has.
        lesson: Of an exercise.
        shape: Its code without names, to compare with others'.
        given: That of the cell as it is handed out.
    """

    student: str
    exercise: str
    result: str
    hint: str
    seconds: float
    points: int = 0
    full: int = 0
    lesson: str = ""
    shape: tuple[str, ...] = field(default=(), repr=False)
    given: tuple[str, ...] = field(default=(), repr=False)

    @property
    def column(self) -> str:
        """The exercise with its lesson."""
        return f"{self.lesson}/{self.exercise}".strip("/")


class TamperedError(BaseException):
    """A sandbox sends what was not asked for. Graders catch any Exception, so it is none."""


def exercises() -> dict[str, list[Exercise]]:
    """Return the graded exercises of each lesson in this clone of the book."""
    found: dict[str, list[Exercise]] = {}
    for path in find_lessons([]):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if "exercise" in cell["metadata"].get("tags", []):
                last = ast.parse("".join(cell["source"])).body[-1]
                if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and grades(last):
                    found.setdefault(key_of(path), []).append(Exercise(key_of(path), last.value, path))
    return found


def grade_folder(
    folder: Path,
    *,
    lesson: str = "",
    caps: dict[str, int],
    kind: str = "",
    parts: Sequence[Part] = (),
) -> Iterator[Result]:
    """Grade all notebooks of a folder, those in its folders too.

    Args:
        folder: Where they are.
        lesson: The slug of their lesson; empty: each is of the lesson whose grader it imports.
        parts: Of an assignment, instead of a lesson's exercises.
        caps: ``seconds``, ``megabytes`` and ``processes`` of an exercise.
        kind: The sandbox; empty: the best that works here.

    Raises:
        ValueError: If there is no sandbox, no notebook or no such lesson.
    """
    known = {} if parts else exercises()
    if lesson and lesson not in known:
        raise ValueError(
            f"expected the slug of a lesson with exercises, got {lesson!r}: one of {', '.join(known)}"
        )
    handed = _handed_in(folder)
    paths = [path for path in handed if path.suffix == ".ipynb"]
    if not paths:
        raise ValueError(f"expected a folder with notebooks, got {folder}: unpack what was handed in there")
    kind = kind or sandbox.find()
    for path in paths:
        student = path.relative_to(folder).as_posix()
        try:
            cells = _cells(path)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError) as error:
            yield Result(student, "", "error", _line(f"The notebook cannot be read: {error}"), 0.0)
            continue
        if parts:
            rows = [_grade(student, cells, part, caps=caps, kind=kind) for part in parts]
            yield from rows
            yield _total(rows)
            continue
        named = Counter(name for cell in cells for name in _LESSON.findall(cell) if name in known)
        slug = lesson or (named.most_common(1)[0][0] if named else "")
        if not slug:
            hint = "It imports no grader: which lesson is it of? Say it with --lesson."
            yield Result(student, "", "error", hint, 0.0)
            continue
        for exercise in known[slug]:
            yield _grade(student, cells, exercise, caps=caps, kind=kind)
    for student, names in without_notebook([path.relative_to(folder) for path in handed]).items():
        yield Result(student, "", "no notebook", _line(f"It has no notebook: {', '.join(names)}."), 0.0)


def _handed_in(folder: Path) -> list[Path]:
    """Return the files of students: no hidden ones, and no tables of the teacher's beside their folders."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    parts = {path: path.relative_to(folder).parts for path in found}
    hidden = {path for path, names in parts.items() if any(n.startswith((".", "__MACOSX")) for n in names)}
    tables = {path for path, names in parts.items() if len(names) == 1 and path.suffix == ".csv"}
    return sorted({*parts} - hidden - tables)


def without_notebook(paths: Sequence[Path]) -> dict[str, list[str]]:
    """Return the first file of each hand-in that has no notebook, with the names of all its files.

    A hand-in is a folder of Moodle's; or a student's files of Canvas; or a loose file; or a folder, if
    neither it nor one around it or in it has a notebook.

    >>> without_notebook([Path("ada/a.ipynb"), Path("ada/in/b.txt"), Path("bo/b.pdf"), Path("bo/c.pdf")])
    {'bo/b.pdf': ['b.pdf', 'c.pdf']}
    """
    notebooks = [path for path in paths if path.suffix == ".ipynb"]
    having = {path.parent for path in notebooks}
    around = {each for path in notebooks for each in (*path.parents, _hand_in(path))}
    found: dict[Path, list[Path]] = {}
    for path in paths:
        above = [each for each in path.parents if each.name]
        named = _hand_in(path)
        own = named or (above[0] if above else path)
        if own not in around and (named or not having & {*above}) and path.suffix != ".ipynb":
            found.setdefault(own, []).append(path)
    return {files[0].as_posix(): [each.name for each in files] for files in found.values()}


def _hand_in(path: Path) -> Path | None:
    """Return Moodle's folder that a file is in, or what stands for the files of one student of Canvas."""
    folders = (each for each in path.parents if each.name and student_of(each.name).number)
    number = student_of(path.name).number
    return next(folders, path.with_name(number) if number else None)


def _total(rows: list[Result]) -> Result:
    """Add the points of all parts."""
    seconds = round(sum(row.seconds for row in rows), 1)
    points, full = sum(row.points for row in rows), sum(row.full for row in rows)
    return Result(rows[0].student, "total", "total", "", seconds, points, full)


def _cells(path: Path) -> list[str]:
    """Read the code of a notebook from a stranger."""
    if path.is_symlink():
        raise ValueError("it is a link")
    if path.stat().st_size > LARGEST:
        raise ValueError(f"expected at most {LARGEST:,} bytes, got {path.stat().st_size:,}")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def _grade(
    student: str, cells: list[str], exercise: Exercise | Part, *, caps: dict[str, int], kind: str
) -> Result:
    """Grade one exercise in a sandbox of its own."""
    begun = time.monotonic()
    part = exercise if isinstance(exercise, Part) else None
    tampers = next((found[0] for cell in cells if not part and (found := TAMPERS.search(cell))), "")
    excluded, points, shape = "", 0, ()
    worker = str(Path(__file__).with_name("inside.py"))
    late = threading.Event()
    with sandbox.opened(["-I", worker, *sandbox.search_path()], kind=kind) as process:

        def end() -> None:
            late.set()
            process.kill()

        clock = threading.Timer(caps["seconds"], end)
        try:
            words, shape = _begin(process, cells, exercise, caps)
            excluded = next((each for each in part.without if each in words), "") if part else ""
            clock.start()
            result, hint, points = _ask(process, exercise)
        except TamperedError as error:
            result, hint = "tampered", f"It writes into the grader's channel: {error}."
        except sandbox.EndedError:
            result, hint = "error", "The process ended before it had answered."
        except Exception as error:  # a result that the grader is not made for
            result, hint = "error", f"The result cannot be graded: {type(error).__name__}: {error}"
        finally:
            clock.cancel()
    if late.is_set():
        said = hint if points else ""
        result, hint = "timeout", f"No answer within {caps['seconds']} seconds. {said}"
    if tampers:
        result, hint = (
            "tampered",
            f"It replaces a grader ({tampers.strip()}). Graded from outside: {result}. {hint}",
        )
    if excluded:
        hint = f"It uses {excluded}, which the task excludes. Otherwise: {result}, {points} points. {hint}"
        result, points = "excluded", 0
    seconds = round(time.monotonic() - begun, 1)
    full, lesson = part.points if part else 0, exercise.lesson if isinstance(exercise, Exercise) else ""
    said = _line(hint, 900 if part else 300)
    return Result(student, exercise.name, result, said, seconds, points, full, lesson, shape, exercise.given)


def _begin(
    process: Any, cells: list[str], exercise: Exercise | Part, caps: dict[str, int]
) -> tuple[list[str], tuple[str, ...]]:
    """Say what is graded, and return what it names, and its shape.

    Until the sandbox is ready, nothing that was handed in runs in it.
    """
    torch = any("import torch" in cell or "from torch" in cell for cell in cells) or exercise.uses_torch
    first = {"cells": cells, "wanted": exercise.wanted, "caps": caps, "torch": torch}
    _send(process, first)
    ready = _receive(process)
    return list(ready["words"]), tuple(ready["shape"])


def _ask(process: Any, exercise: Exercise | Part) -> tuple[str, str, int]:
    """Let the sandbox define an answer, and judge what it returns: the result, the hint, and points."""
    defined = _receive(process)
    try:
        there, values = dict(defined["functions"]), decode(defined["values"])
        missing = [name for name in exercise.wanted if name not in there]
        error = str(defined["error"])
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise TamperedError("its first message is not ours") from wrong
    if missing:
        return "error", f"{missing[0]} is not defined. {error}", 0
    answers = {
        name: _remote(process, name, there[name]) if there[name] else values[name] for name in exercise.wanted
    }
    verdict = exercise.judge(answers)
    points = getattr(verdict, "points", 0)
    if verdict:
        return "passed", verdict.says, points
    if points:
        return "in part", verdict.says, points
    return "error" if verdict.says.startswith("Your function raised") else "refused", verdict.says, 0


def _remote(process: Any, name: str, owner: object) -> Callable[..., Any]:
    """Return a function that has the sandbox call the answer, and returns what it sends."""

    def answer(*case: Any) -> Any:
        key, functions = secrets.token_hex(8), []
        error, arguments = None, []
        function: Any = None
        thrown: Exception | None = None
        _send(process, {"key": key, "name": name, "arguments": encode(list(case), functions)})
        while True:
            reply = _receive(process)
            if reply.get("key") != key:
                raise TamperedError("it answers what was not asked")
            try:
                if "raised" in reply:
                    kind, says = map(str, reply["raised"])
                    passed_on = thrown is not None and says == _told(thrown)[:300]
                    error = thrown if passed_on else type(kind[:60], (Exception,), {})(says)
                elif "back" in reply:
                    function = functions[int(reply["back"])]
                    arguments = decode(reply["arguments"])
                else:
                    return decode(reply["value"])
            except Exception as wrong:
                raise TamperedError("what it sends is no result") from wrong
            if error is not None:
                raise error
            try:
                message = {"value": encode(function(*arguments))}
            except Exception as wrong:  # it was given what it cannot read, or ends the answer by this
                thrown, message = wrong, {"raised": _told(wrong)}
            _send(process, message)

    module, qualified = map(str, owner) if isinstance(owner, list) and len(owner) == 2 else ("", name)
    answer.__module__, answer.__name__ = module, qualified
    return answer


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _send(process: Any, message: dict[str, Any]) -> None:
    try:
        send(process.stdin, message)
    except BrokenPipeError:
        raise sandbox.EndedError from None


def _receive(process: Any) -> dict[str, Any]:
    try:
        return receive(process.stdout)
    except EOFError:
        raise sandbox.EndedError from None
    except (ValueError, RecursionError) as wrong:
        raise TamperedError("it is no message") from wrong


def _line(text: str, most: int = 300) -> str:
    """Make one printable line of what may come from a stranger."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:most]


def write(results: Iterator[Result], out: Path, *, points: bool = False) -> Counter[str]:
    """Write a table of results row by row, say each, and return how many there are of each kind.

    Args:
        results: The rows.
        out: Where they are written.
        points: Whether they have points.
    """
    counts: Counter[str] = Counter()
    with out.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["student", "exercise", "result", "hint", "seconds", *["points", "of"] * points])
        for each in results:
            counts[each.result] += 1
            row = [harmless(each.student), each.exercise, each.result, harmless(each.hint), each.seconds]
            table.writerow([*row, *[each.points, each.full] * points])
            file.flush()
            print(f"{each.result:9} {each.student} {each.exercise}", file=sys.stderr)
    return counts


def add_commands(commands: Any) -> None:
    """Add ``grade`` to the parser."""
    what = "grade a folder of notebooks in a sandbox of Linux, and write a table"
    parser = add_command(commands, "grade", _run, what)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="with notebooks that were handed in")
    parser.add_argument("--csv", type=Path, required=True, metavar="OUT", help="where the table is written")
    parser.add_argument("--gradebook", type=Path, metavar="OUT", help="a row a student, for Moodle")
    what = "who is in the course: Moodle's grading worksheet, or Canvas' export, which adds OUT_canvas.csv"
    parser.add_argument("--roster", type=Path, metavar="FILE", help=what)
    parser.add_argument("--lesson", default="", help="its slug; else that whose grader a notebook imports")
    parser.add_argument("--assignment", default="", metavar="NAME", help="grade this one, with points")
    add_key(parser, required=False)
    add_folder(parser, "--teach")
    for name, value, unit in (
        ("seconds", 20, "to answer all hidden cases"),
        ("megabytes", 512, "of memory that a process may add"),
        ("processes", 20, "and threads at once"),
    ):
        given = {"type": int, "default": value, "metavar": "N"}
        parser.add_argument(f"--{name}", **given, help=f"{unit}, an exercise ({value})")


def _run(options: argparse.Namespace) -> None:
    caps = {name: getattr(options, name) for name in ("seconds", "megabytes", "processes")}
    if low := [name for name, value in caps.items() if value < 1]:
        raise ValueError(f"expected at least 1 for --{low[0]}, got {caps[low[0]]}")
    if options.roster and not options.gradebook:
        raise ValueError("expected --gradebook OUT with --roster: there the students' rows are written")
    roster = read_roster(options.roster) if options.roster else []
    parts = []
    if options.assignment:
        parts = read_parts(options.teach, options.assignment, options.key)
    rows, again = tee(grade_folder(options.folder, lesson=options.lesson, caps=caps, parts=parts))
    counts = write(rows, options.csv, points=bool(parts))
    print(f"{options.csv}: " + ", ".join(f"{n} {result}" for result, n in sorted(counts.items())))
    found = [*again]
    if options.gradebook:
        print(write_gradebook(found, options.gradebook, roster))
    if pairs := told(alike(found, roster)):
        print(pairs)
    if counts["error"] + counts["timeout"] + counts["tampered"]:
        print("Look at the rows error, timeout and tampered: they could not be judged as answers.")
