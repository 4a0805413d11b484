"""Answers, which are not public: sealed in one file per lesson, and computed again whenever they are read.

A plain answer is a Markdown file. Its Python blocks are run, and ``[[0.88 = weights[0]]]`` in its text, or in
the question's, states a number together with the expression that gives it. Its list ``- 2 points: …`` says
what earns them. Where the code takes its numbers from ``draw(…)``, a seed gives the question other numbers.
"""

import argparse
import hashlib
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from exformer_lessons.command import add_command
from exformer_lessons.teacher import sandbox
from exformer_lessons.teacher.questions import Question, add_folder, asked, read_questions, slug_of, titles

#: The first line of a plain answer; a test refuses any file of the repository that has it.
MARK = "<!-- private answer: keep it out of every repository -->"
_BLOCK = re.compile(r"(^```python\n.*?^```$)", flags=re.MULTILINE | re.DOTALL)
_STATED = re.compile(r"\[\[([^\[\]\n]+?) = (.+?)\]\](?!\])")
_POINTS = re.compile(r"^- (\d+) points?: ", flags=re.MULTILINE)
#: How long the code of all answers may take.
SECONDS = 120
_INSIDE = """
import contextlib, io, json, sys
sys.path[:0] = sys.argv[1:]
from exformer_lessons.teacher.answers import Question, solve
seed, found = json.load(sys.stdin)
try:
    with contextlib.redirect_stdout(io.StringIO()):
        pairs = [solve(Question(**each), answer, seed) for each, answer in found]
    told = [[each.text, answer] for each, answer in pairs]
except ValueError as error:
    told = str(error)
print(json.dumps(told))
"""


def solve(question: Question, answer: str, seed: int | None = None) -> tuple[Question, str]:
    """Run the code of an answer and compare what it computes with what is stated.

    This runs what the answer says: :func:`solved` does so in a sandbox.

    Args:
        question: What is asked.
        answer: The plain answer.
        seed: Other numbers for the question, if its code draws any; what is stated is then what is computed.

    Returns:
        The question and the answer as they are read, without the expressions.

    Raises:
        ValueError: If the code fails, gives another number, or the points are not those of the question.
    """
    head, _, text = answer.partition("\n")
    if head != MARK:
        raise ValueError(f"{question.name}: expected the first line {MARK!r}, got {head[:40]!r}")
    return compute(question, text, seed)


def compute(question: Question, text: str, seed: int | None = None) -> tuple[Question, str]:
    """Do the same for an answer without the line that says that it is private."""
    if (total := sum(map(int, _POINTS.findall(text)))) != question.minutes:
        raise ValueError(f"{question.name}: expected {question.minutes} points in its list, got {total}")
    names: dict[str, Any] = {"__name__": question.id, "draw": _drawing(seed, question.name)}
    parts = [question.text, "", *_BLOCK.split(text)]
    try:
        for block in parts[3::2]:
            exec(block.removeprefix("```python\n").removesuffix("```"), names)  # noqa: S102 - see above
        asked_for = {each[1] for part in parts[::2] for each in _STATED.findall(part)}
        values = {each: eval(each, names) for each in asked_for}  # noqa: S307 - see above
    except Exception as error:
        raise ValueError(f"{question.name}: its code fails: {type(error).__name__}: {error}") from error

    def told(found: re.Match[str]) -> str:
        if seed is not None:
            return _like(found[1], values[found[2]])
        if not agrees(found[1], values[found[2]]):
            raise ValueError(f"{question.name}: states {found[1]}, but {found[2]} is {values[found[2]]}")
        return found[1]

    parts[::2] = [_STATED.sub(told, part) for part in parts[::2]]
    return replace(question, text=parts[0]), "".join(parts[2:]).strip()


def solved(
    found: list[tuple[Question, str]], *, seed: int | None = None, trust: bool = False
) -> list[tuple[Question, str]]:
    """Solve all answers, in a sandbox of the system: nobody can see who wrote a sealed file.

    Args:
        found: Each question with its plain answer.
        seed: As for :func:`solve`.
        trust: Run their code without a sandbox.

    Raises:
        ValueError: If an answer is refused, or if no sandbox works here.
    """
    if trust:
        return [solve(each, answer, seed) for each, answer in found]
    try:
        kind = sandbox.find()
    except ValueError as error:
        raise ValueError(f"{error}; or trust the repository and add --trust") from None
    asked = json.dumps([seed, [[asdict(each), answer] for each, answer in found]])
    with sandbox.opened(["-I", "-c", _INSIDE, *sandbox.search_path()], kind=kind) as process:
        try:
            said, errors = process.communicate(asked.encode(), timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise ValueError(f"expected answers within {SECONDS} seconds, got none") from None
    if process.returncode:
        raise ValueError(f"the answers' code ended: {errors.decode(errors='replace')[-300:]}")
    told = json.loads(said)
    if isinstance(told, str):
        raise ValueError(told)
    return [(replace(each, text=text), answer) for (each, _), (text, answer) in zip(found, told, strict=True)]


def _drawing(seed: int | None, name: str) -> Callable[..., Any]:
    """Return a function that chooses one of its arguments: the first without a seed."""
    rng = random.Random(f"{seed} {name}")
    return lambda *choices: choices[0] if seed is None else choices[int(rng.random() * len(choices))]


def _like(stated: str, value: Any) -> str:
    """Return a value as what is stated is written: with as many decimals, and a true minus sign.

    >>> _like("0.67", 2.345), _like("−1,200", -3400), _like("left", "right")
    ('2.35', '−3,400', 'right')
    """
    if (digits := _decimals(stated)) is None:
        return str(value)
    return f"{float(value):{',' * (',' in stated)}.{digits}f}".replace("-", "−")


def _decimals(stated: str) -> int | None:
    """Return how many decimals a number has, or None if it is none."""
    plain = stated.replace("−", "-").replace(",", "")
    return len(plain.partition(".")[2]) if re.fullmatch(r"-?\d+(\.\d+)?", plain) else None


def agrees(stated: str, value: Any) -> bool:
    """Return whether a value, rounded to the digits that are stated, is what is stated.

    >>> agrees("0.67", 2 / 3), agrees("0.66", 2 / 3), agrees("−1,200", -1200), agrees("left", "left")
    (True, False, True, True)
    """
    if (digits := _decimals(stated)) is None:
        return stated == str(value)
    return float(stated.replace("−", "-").replace(",", "")) == float(f"{float(value):.{digits}f}")


def read_answers(folder: Path, lesson: str, key: Path, *, trust: bool = False) -> list[tuple[Question, str]]:
    """Return the questions of a lesson with their answers, computed again.

    Raises:
        ValueError: If the key does not open them, or if an answer states what its code does not give.
    """
    questions, plain = read_questions(folder, lesson), opened(folder, lesson, key)
    return solved([(each, plain[each.id]) for each in questions], trust=trust)


def opened(folder: Path, name: str, key: Path) -> Any:
    """Return what is sealed for a lesson or an exam.

    Raises:
        ValueError: If the key does not open it.
    """
    from exformer_lessons.teacher.sealing import read_key, unseal

    return json.loads(unseal(sealed_file(folder, name).read_bytes(), read_key(key), name))


def sealed_file(folder: Path, name: str) -> Path:
    """Return where the answers of a lesson are, or an exam."""
    return folder / "questions" / f"{name}.age"


def digest(questions: Iterable[Question]) -> str:
    """Return the hash of what is asked: an answer belongs to these words and points."""
    told = json.dumps([[each.id, each.minutes, each.text] for each in questions])
    return hashlib.sha256(told.encode()).hexdigest()


def answered(question: Question, number: int, answer: str) -> str:
    """Return a question with its answer, in Markdown."""
    quoted = "\n".join(f"> {line}".rstrip() for line in answer.splitlines())
    return f"{asked(number, question)}\n\n{quoted}"


def add_commands(commands: Any) -> None:
    """Add ``keygen``, ``answers`` and ``rekey`` to the parser."""
    parser = add_command(commands, "keygen", _keygen, "make a key; send its public half to a maintainer")
    parser.add_argument("file", type=Path, metavar="FILE", help="a new one, for the private key")
    what = "compute the key of a file that never changes and nobody else has, to make it again after a loss"
    parser.add_argument("--source", type=Path, metavar="SECRET", help=what)
    parser = add_command(commands, "answers", _answers, "print the answers of a lesson, computed again")
    parser.add_argument("lesson", metavar="LESSON", help="such as self_attention or 03")
    add_key(parser)
    add_trust(parser)
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


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Let a command run the code of answers without a sandbox."""
    what = "run the code of answers on this computer without a sandbox"
    parser.add_argument("--trust", action="store_true", help=what)


def _keygen(options: argparse.Namespace) -> None:
    from exformer_lessons.teacher.sealing import make_key

    print(make_key(options.file, options.source))


def _answers(options: argparse.Namespace) -> None:
    lesson = slug_of(options.folder, options.lesson)
    found = read_answers(options.folder, lesson, options.key, trust=options.trust)
    print(f"{MARK}\n## {titles(options.folder)[lesson]}: answers\n")
    for number, (question, answer) in enumerate(found, 1):
        print(answered(question, number, answer), end="\n\n")


def _rekey(options: argparse.Namespace) -> None:
    from exformer_lessons.teacher.sealing import read_key, unseal

    key = read_key(options.key)
    for name, entry in read_manifest(options.folder).items():
        plain = unseal(sealed_file(options.folder, name).read_bytes(), key, name)
        write_sealed(options.folder, name, plain, entry)
    warn_of_one_key(options.folder)


def warn_of_one_key(folder: Path) -> None:
    """Say on the error stream if a single key opens everything: who loses it loses the answers."""
    from exformer_lessons.teacher.sealing import read_recipients

    if len({*read_recipients(folder / "recipients.txt")}) < 2:
        print(
            "warning: recipients.txt names a single key, and without it nobody can read the answers again: "
            "add a second one, kept in another place, and run rekey",
            file=sys.stderr,
        )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what is public about the sealed answers, by lesson."""
    path = folder / "questions" / "answers.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write_sealed(folder: Path, name: str, plain: str, entry: dict[str, Any]) -> None:
    """Seal a text, and write down beside what is public about it which file it is and for whom."""
    from exformer_lessons.teacher.sealing import read_recipients, seal

    recipients = read_recipients(folder / "recipients.txt")
    sealed = seal(plain, recipients)
    sealed_file(folder, name).write_bytes(sealed)
    entry = entry | {"file": hashlib.sha256(sealed).hexdigest(), "recipients": recipients}
    written = read_manifest(folder) | {name: entry}
    path = folder / "questions" / "answers.json"
    path.write_text(json.dumps(dict(sorted(written.items())), indent=1) + "\n", encoding="utf-8")
    print(f"{name}: {len(entry.get('ids', entry.get('asks')))} answers sealed, readers: {len(recipients)}")
