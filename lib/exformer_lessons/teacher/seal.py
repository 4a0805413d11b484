"""Sealing, for maintainers: the answers of a lesson, an exam with its questions, or an assignment."""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from exformer_lessons.command import add_command
from exformer_lessons.teacher import assignments
from exformer_lessons.teacher.answers import digest, solve, warn_of_one_key, write_sealed
from exformer_lessons.teacher.exams import read_exams
from exformer_lessons.teacher.questions import Question, add_folder, questions_of, read_questions

#: So many seeds are tried before an exam is sealed.
SEEDS = 30


def add_commands(commands: Any) -> None:
    """Add ``seal`` to the parser."""
    parser = add_command(
        commands, "seal", _seal, "encrypt the answers of a lesson, an exam or an assignment, for maintainers"
    )
    parser.add_argument(
        "name", metavar="NAME", help="a lesson, such as self_attention; an exam, such as C; or an assignment"
    )
    what = "plain answers, ID.md; for an exam also questions.yml; for an assignment solution.py, checks.py"
    parser.add_argument("--source", type=Path, required=True, metavar="FOLDER", help=what)
    add_folder(parser)


def _seal(options: argparse.Namespace) -> None:
    from exformer_lessons.teacher.sealing import refuse_repository

    folder, name, source = options.folder, options.name, options.source
    refuse_repository(source / "answer.md")
    if name in assignments.names(folder):
        _refuse_public(source, folder, name)
        found = assignments.compute(source, assignments.notebook_of(folder, name))
        asks = [[each["name"], assignments.Part(**each).points] for each in found["parts"]]
        write_sealed(folder, assignments.sealed_name(name), assignments.packed(found), {"asks": asks})
        warn_of_one_key(folder)
        return
    plain = {path.stem: path.read_text(encoding="utf-8") for path in source.glob("*.md")}
    exam = next((each for each in read_exams(folder) if each.key == name and not each.questions), None)
    if exam is None:
        questions = read_questions(folder, name)
        _check(questions, plain)
        write_sealed(folder, name, json.dumps(plain), {"ids": sorted(plain), "questions": digest(questions)})
        warn_of_one_key(folder)
        return
    rows = yaml.safe_load((source / "questions.yml").read_text(encoding="utf-8"))
    questions = questions_of(rows, exam.sealed)
    _check(questions, plain, *range(SEEDS))
    exam = replace(exam, asks=[(each.lesson, each.kind, each.minutes) for each in questions])
    write_sealed(folder, exam.sealed, json.dumps({"questions": rows, "answers": plain}), {"asks": exam.asks})
    warn_of_one_key(folder)


def _refuse_public(source: Path, folder: Path, name: str) -> None:
    """Refuse what is not marked as private, or has a public folder, which would win over the sealed file."""
    if assignments.is_open(folder, name):
        raise ValueError(f"assignment {name} is open, in a folder beside its notebook: remove it to seal")
    for path in (source / "solution.py", source / "checks.py"):
        if not path.read_text(encoding="utf-8").startswith(f"{assignments.FIRST}\n"):
            raise ValueError(f"expected the first line {assignments.FIRST!r} in {path.name}")


def _check(questions: list[Question], plain: dict[str, str], *seeds: int) -> None:
    ids = sorted(each.id for each in questions)
    if sorted(plain) != ids:
        raise ValueError(f"expected answers {', '.join(ids)}; got {', '.join(sorted(plain)) or 'none'}")
    for each in questions:
        for seed in (None, *seeds):
            solve(each, plain[each.id], seed)
