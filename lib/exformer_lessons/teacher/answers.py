"""Answers, which are not public: sealed in one file per lesson, and computed again whenever they are read.

A plain answer is a Markdown file. Its Python blocks are run, and ``[[0.88 = weights[0]]]`` in its text
states a number together with the expression that gives it. Its list ``- 2 points: …`` says what earns them.
"""

import argparse
import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from exformer_lessons.command import add_command
from exformer_lessons.teacher.questions import Question, add_folder, asked, read_questions, titles

#: The first line of a plain answer; a test refuses any file of the repository that has it.
MARK = "<!-- private answer: keep it out of every repository -->"
_BLOCK = re.compile(r"(^```python\n.*?^```$)", flags=re.MULTILINE | re.DOTALL)
_STATED = re.compile(r"\[\[([^\[\]\n]+?) = (.+?)\]\](?!\])")
_POINTS = re.compile(r"^- (\d+) points?: ", flags=re.MULTILINE)


def solve(question: Question, answer: str) -> str:
    """Run the code of an answer and compare what it computes with what the answer states.

    This runs what the answer says, so read only answers from a repository that you trust.

    Args:
        question: What is asked.
        answer: The plain answer.

    Returns:
        The answer as it is read, without the expressions.

    Raises:
        ValueError: If the code fails, gives another number, or the points are not those of the question.
    """
    head, _, text = answer.partition("\n")
    if head != MARK:
        raise ValueError(f"{question.name}: expected the first line {MARK!r}, got {head[:40]!r}")
    if (total := sum(map(int, _POINTS.findall(text)))) != question.minutes:
        raise ValueError(f"{question.name}: expected {question.minutes} points in its list, got {total}")
    names: dict[str, Any] = {"__name__": question.id}
    parts = _BLOCK.split(text)
    try:
        for block in parts[1::2]:
            exec(block.removeprefix("```python\n").removesuffix("```"), names)  # noqa: S102 - see above
        asked_for = {each[1] for part in parts[::2] for each in _STATED.findall(part)}
        values = {each: eval(each, names) for each in asked_for}  # noqa: S307 - see above
    except Exception as error:
        raise ValueError(f"{question.name}: its code fails: {type(error).__name__}: {error}") from error

    def compare(found: re.Match[str]) -> str:
        if not agrees(found[1], values[found[2]]):
            raise ValueError(f"{question.name}: states {found[1]}, but {found[2]} is {values[found[2]]}")
        return found[1]

    parts[::2] = [_STATED.sub(compare, part) for part in parts[::2]]
    return "".join(parts).strip()


def agrees(stated: str, value: Any) -> bool:
    """Return whether a value, rounded to the digits that are stated, is what is stated.

    >>> agrees("0.67", 2 / 3), agrees("0.66", 2 / 3), agrees("−1,200", -1200), agrees("left", "left")
    (True, False, True, True)
    """
    plain = stated.replace("−", "-").replace(",", "")
    if re.fullmatch(r"-?\d+(\.\d+)?", plain):
        return float(plain) == float(f"{float(value):.{len(plain.partition('.')[2])}f}")
    return stated == str(value)


def read_answers(folder: Path, lesson: str, key: Path) -> dict[str, str]:
    """Return the answers of a lesson by the ids of its questions, computed again.

    Raises:
        ValueError: If the key does not open them, or if an answer states what its code does not give.
    """
    from exformer_lessons.teacher.sealing import read_key, unseal

    sealed = (folder / "questions" / f"{lesson}.age").read_bytes()
    plain = json.loads(unseal(sealed, read_key(key), lesson))
    return {each.id: solve(each, plain[each.id]) for each in read_questions(folder, lesson)}


def digest(questions: Iterable[Question]) -> str:
    """Return the hash of what is asked: an answer belongs to these words and points."""
    told = json.dumps([[each.id, each.minutes, each.text] for each in questions])
    return hashlib.sha256(told.encode()).hexdigest()


def answered(question: Question, number: int, answer: str) -> str:
    """Return a question with its answer, in Markdown."""
    return f"{asked(number, question)}\n\n> {answer}".replace("\n", "\n> ").replace("\n> \n", "\n>\n")


def add_commands(commands: Any) -> None:
    """Add ``keygen``, ``answers``, ``seal`` and ``rekey`` to the parser."""
    parser = add_command(commands, "keygen", _keygen, "make a key; send its public half to a maintainer")
    parser.add_argument("file", type=Path, metavar="FILE", help="a new one, for the private key")
    parser = add_command(commands, "answers", _answers, "print the answers of a lesson, computed again")
    parser.add_argument("lesson", metavar="LESSON", help="such as self_attention")
    add_key(parser)
    add_folder(parser)
    parser = add_command(commands, "seal", _seal, "encrypt the answers of a lesson, for maintainers")
    parser.add_argument("lesson", metavar="LESSON", help="such as self_attention")
    parser.add_argument("--source", type=Path, required=True, metavar="FOLDER", help="plain answers, ID.md")
    add_folder(parser)
    parser = add_command(
        commands, "rekey", _rekey, "encrypt all answers to the public keys in recipients.txt, for maintainers"
    )
    add_key(parser)
    add_folder(parser)


def add_key(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Let a command read a private key."""
    parser.add_argument(
        "--key", type=Path, required=required, metavar="FILE", help="a private key, of keygen"
    )


def _keygen(options: argparse.Namespace) -> None:
    from exformer_lessons.teacher.sealing import make_key

    print(make_key(options.file))


def _answers(options: argparse.Namespace) -> None:
    questions = read_questions(options.folder, options.lesson)
    found = read_answers(options.folder, options.lesson, options.key)
    print(f"{MARK}\n## {titles(options.folder)[options.lesson]}: answers\n")
    for number, question in enumerate(questions, 1):
        print(answered(question, number, found[question.id]), end="\n\n")


def _seal(options: argparse.Namespace) -> None:
    from exformer_lessons.teacher.sealing import refuse_repository

    questions = read_questions(options.folder, options.lesson)
    refuse_repository(options.source / "answer.md")
    plain = {path.stem: path.read_text(encoding="utf-8") for path in sorted(options.source.glob("*.md"))}
    ids = sorted(each.id for each in questions)
    if sorted(plain) != ids:
        raise ValueError(f"expected answers {', '.join(ids)}; got {', '.join(sorted(plain)) or 'none'}")
    for each in questions:
        solve(each, plain[each.id])
    _write(options.folder, options.lesson, json.dumps(plain), digest(questions))


def _rekey(options: argparse.Namespace) -> None:
    from exformer_lessons.teacher.sealing import read_key, unseal

    key = read_key(options.key)
    for lesson, entry in read_manifest(options.folder).items():
        sealed = (options.folder / "questions" / f"{lesson}.age").read_bytes()
        _write(options.folder, lesson, unseal(sealed, key, lesson), entry["questions"])


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what is public about the sealed answers, by lesson."""
    path = folder / "questions" / "answers.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _write(folder: Path, lesson: str, plain: str, questions: str) -> None:
    """Seal the answers of a lesson, and write down which file it is, for whom and for what."""
    from exformer_lessons.teacher.sealing import read_recipients, seal

    recipients = read_recipients(folder / "recipients.txt")
    sealed = seal(plain, recipients)
    (folder / "questions" / f"{lesson}.age").write_bytes(sealed)
    entry = {"ids": list(json.loads(plain)), "questions": questions}
    entry |= {"file": hashlib.sha256(sealed).hexdigest(), "recipients": recipients}
    written = read_manifest(folder) | {lesson: entry}
    path = folder / "questions" / "answers.json"
    path.write_text(json.dumps(dict(sorted(written.items())), indent=1) + "\n", encoding="utf-8")
    print(f"{lesson}: {len(entry['ids'])} answers sealed, readers: {len(recipients)}")
