"""Assignments that are marked: their hidden cases are sealed as data, so that grading runs no sealed code.

An open assignment has its plain source beside its notebook, in a folder of the same name. A plain source has
``solution.py``, with a function for each part, and ``checks.py`` with

- ``CHECKS``: for each function its checks, (title, points, cases), where a case is a tuple of arguments; a
  fourth item names the keys that count, where the function returns a dictionary;
- ``MISTAKES``: for each function the wrong ones, {sentence: function}, or a list of several for a sentence;
- ``WITHOUT``: for each function what it must not use; ``.backward`` is an attribute, ``exformer`` a name.

Sealing calls them all and keeps what they return; of an open one, grading does. A check earns its points if
all its cases are right; where they are not, the mistake is named that returns the same in each of them.
"""

import argparse
import base64
import json
import lzma
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from exformer_lessons.command import add_command
from exformer_lessons.exercises.grading import Verdict
from exformer_lessons.exercises.results import UnfitError, all_close, as_list, as_numbers, difference
from exformer_lessons.teacher.answers import MARK, add_key, opened
from exformer_lessons.teacher.inside import decode, encode
from exformer_lessons.teacher.likeness import handed_out
from exformer_lessons.teacher.questions import add_folder
from exformer_lessons.teacher.sandbox import EndedError

#: The heading of a part, in the notebook that is handed out.
_PART = re.compile(r"^## .*`(\w+)`, (\d+) points?$", flags=re.MULTILINE)
#: The first line of ``solution.py`` and ``checks.py``; a test refuses any file of the repository that has it.
FIRST = "# private answer: keep it out of every repository"
#: No part may use these.
EXCLUDED = ("exformer", "exformer_lessons", "transformers", "tokenizers", "tiktoken", "sentencepiece")
#: Largest difference that counts as equal, for numbers up to 1.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Marks(Verdict):
    """What a grader says, with the points that are earned."""

    points: int = 0


@dataclass(frozen=True)
class Part:
    """A part of an assignment.

    Args:
        name: Of its function.
        without: What it must not use.
        checks: The title, the points and the cases of each, the right results, and those of known mistakes.
        given: The shape of its code as the notebook is handed out.
    """

    name: str
    without: list[str]
    checks: list[dict[str, Any]]
    given: tuple[str, ...] = ()

    @property
    def wanted(self) -> list[str]:
        """The names that a student defines."""
        return [self.name]

    @property
    def points(self) -> int:
        """How many points it has."""
        return sum(check["points"] for check in self.checks)

    @property
    def uses_torch(self) -> bool:
        """Whether a case or a result is a tensor."""
        return '{"tensor"' in json.dumps(self.checks)

    def judge(self, answers: dict[str, Any]) -> Marks:
        """Call a function on all hidden cases, and say which checks it fails and why."""
        points, said = 0, []
        for check in self.checks:
            try:
                fault = _fault(answers[self.name], check)
            except EndedError:
                said.append(f"{check['title']} and what comes after it (0): the process ended.")
                break
            points += check["points"] * (not fault)
            if fault:
                said.append(f"{check['title']} (0 of {check['points']}): {fault}")
        return Marks(not said, " ".join(said) or "All hidden cases are right.", points)


def _fault(answer: Callable[..., Any], check: dict[str, Any]) -> str:
    """Return what is wrong with the results of an answer, or nothing."""
    given = []
    for case in check["cases"]:
        try:
            given.append(_only(as_list(answer(*decode(case))), check["only"]))
        except Exception as error:
            return f"Your function raised {type(error).__name__}: {error}"
    if all(each is None for each in given):
        return "Your function returns nothing."
    right = decode(check["right"])
    if agree(given, right):
        return ""
    for hint, mistakes in check["mistakes"].items():
        if any(agree(given, decode(each)) for each in mistakes):
            return hint
    pairs = enumerate(zip(given, right, strict=True), 1)
    number, pair = next((n, pair) for n, pair in pairs if not agree(*pair))
    return f"In case {number} of {len(right)}: {told_apart(*pair)}"


def _only(result: Any, keys: list[str]) -> Any:
    """Keep what counts of a dictionary."""
    return {key: result.get(key) for key in keys} if keys and isinstance(result, dict) else result


def agree(given: Any, wanted: Any) -> bool:
    """Return whether a result is as wanted.

    Lists, tuples, arrays and tensors of equal numbers agree, and a dictionary may have more keys.

    >>> agree((1, [2.0]), [1, (2,)]), agree("é", "e"), agree({1: b"a"}, {1: b"a"}), agree([1], [1, 2])
    (True, False, True, False)
    """
    if wanted is None or isinstance(wanted, str | bytes):
        return type(given) is type(wanted) and given == wanted
    if isinstance(wanted, dict):
        there = isinstance(given, dict) and wanted.keys() <= given.keys()
        return there and all(agree(given[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list | tuple) and isinstance(given, list | tuple):
        return len(given) == len(wanted) and all(map(agree, given, wanted))
    try:
        found, right = as_numbers(given), as_numbers(wanted)
        return found.size == right.size == 0 or all_close([found], [right], TOLERANCE)
    except (TypeError, ValueError, UnfitError, RuntimeError):
        return False


def told_apart(given: Any, wanted: Any, where: str = "the result") -> str:
    """Return a sentence on how a result differs from what is wanted.

    >>> told_apart([b"a", 3], [b"a", 4])
    'the result[1] should be 4, yours is 3.'
    """
    both = isinstance(wanted, list | tuple) and isinstance(given, list | tuple)
    if both and len(given) == len(wanted):
        pairs = enumerate(zip(given, wanted, strict=True))
        number, pair = next((n, pair) for n, pair in pairs if not agree(*pair))
        return told_apart(*pair, f"{where}[{number}]")
    if isinstance(wanted, dict) and isinstance(given, dict) and wanted.keys() <= given.keys():
        key = next(key for key in wanted if not agree(given[key], wanted[key]))
        return told_apart(given[key], wanted[key], f"{where}[{key!r}]")
    try:
        if as_numbers(wanted).ndim:
            return f"{where}: {difference([as_numbers(given)], [as_numbers(wanted)])}"
    except (TypeError, ValueError, UnfitError, RuntimeError):
        pass
    return f"{where} should be {_short(wanted)}, yours is {_short(given)}."


def _short(value: Any) -> str:
    told = repr(value) if type(value).__module__ == "builtins" else type(value).__name__
    return told if len(told) <= 70 else f"{told[:70]}…"


def announced(notebook: Path) -> list[tuple[str, int]]:
    """Return the parts that a notebook announces in its headings, with their points."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return [(name, int(points)) for name, points in _PART.findall(text)]


def names(folder: Path) -> list[str]:
    """Return the names of the assignments."""
    return sorted(path.stem for path in (folder / "assignments").glob("*.ipynb"))


def notebook_of(folder: Path, name: str) -> Path:
    """Return the notebook of an assignment."""
    return folder / "assignments" / f"{name}.ipynb"


def sealed_name(name: str) -> str:
    """Return under which name an assignment is sealed."""
    return f"assignment_{name}"


def is_open(folder: Path, name: str) -> bool:
    """Return whether an assignment's solution is public."""
    return notebook_of(folder, name).with_suffix("").is_dir()


def read_parts(folder: Path, name: str, key: Path | None) -> list[Part]:
    """Return the parts of an assignment.

    Raises:
        ValueError: If there is no such assignment, or the key does not open it.
    """
    notebook = notebook_of(folder, name)
    found = _found(folder, name, key)["parts"]
    return [Part(**each, given=handed_out(notebook, [each["name"]])) for each in found]


def _found(folder: Path, name: str, key: Path | None) -> dict[str, Any]:
    """Return what :func:`compute` found, now if the assignment is open, else when it was sealed."""
    if name not in names(folder):
        known = ", ".join(names(folder)) or "none: run this in a clone of the book"
        raise ValueError(f"expected one of the assignments ({known}), got {name!r}")
    notebook = notebook_of(folder, name)
    if is_open(folder, name):
        return compute(notebook.with_suffix(""), notebook)
    if key is None:
        raise ValueError(f"assignment {name} is sealed: expected --key FILE")
    return json.loads(lzma.decompress(base64.b64decode(opened(folder, sealed_name(name), key))))


def packed(found: dict[str, Any]) -> str:
    """Return what :func:`compute` found as a short text to seal: cases share their tensors."""
    return json.dumps(base64.b64encode(lzma.compress(json.dumps(found).encode())).decode())


def compute(source: Path, notebook: Path) -> dict[str, Any]:
    """Call the functions of a plain assignment on its cases.

    This runs what the folder holds, so it must be trusted like the repository.

    Raises:
        ValueError: If parts or points are not those that the notebook announces, if a result cannot be
            sealed, if no check sees a mistake, or if a check does not tell two apart.
    """
    defined: dict[str, Any] = {"__name__": "solution"}
    solution, checks = ((source / name).read_text(encoding="utf-8") for name in ("solution.py", "checks.py"))
    for code in (solution, checks):
        exec(code, defined)  # noqa: S102 - the maintainer's own file
    parts = [
        {
            "name": name,
            "without": [*EXCLUDED, *defined["WITHOUT"].get(name, ())],
            "checks": [*_computed(name, defined[name], checks, defined["MISTAKES"].get(name, {}))],
        }
        for name, checks in defined["CHECKS"].items()
    ]
    found = [(each["name"], Part(**each).points) for each in parts]
    if found != announced(notebook):
        raise ValueError(f"{notebook.name} announces {announced(notebook)}, but the checks have {found}")
    return {"parts": parts, "solution": solution}


def _computed(name: str, right: Any, checks: list[Any], mistakes: dict[str, Any]) -> Iterator[dict[str, Any]]:
    wrong = {hint: each if isinstance(each, list) else [each] for hint, each in mistakes.items()}
    unseen = {(hint, n) for hint, found in wrong.items() for n in range(len(found))}
    for title, points, cases, *only in checks:
        keys = only[0] if only else []
        wanted = [_sealable(_only(right(*deepcopy(case)), keys), f"{name}, {title}") for case in cases]
        seen: dict[str, list[Any]] = {}
        for hint, functions in wrong.items():
            for number, function in enumerate(functions):
                try:
                    results = [_sealable(_only(function(*deepcopy(case)), keys), hint) for case in cases]
                except Exception:
                    continue  # what it raises is told as such
                if not agree(decode(results), decode(wanted)):
                    unseen.discard((hint, number))
                    seen.setdefault(hint, []).append(results)
        for one, other in combinations(seen, 2):
            if any(each in seen[other] for each in seen[one]):
                raise ValueError(f"{name}, {title}: its cases do not tell apart: {one!r} and {other!r}")
        yield {
            "title": title,
            "points": points,
            "only": keys,
            "cases": [_sealable(case, f"{name}, {title}") for case in cases],
            "right": wanted,
            "mistakes": seen,
        }
    if unseen:
        raise ValueError(f"{name}: no check sees {sorted(unseen)[0]}")


def _sealable(value: Any, where: str) -> Any:
    if '{"other"' in (told := json.dumps(encode(as_list(value)))):
        raise ValueError(f"{where}: expected numbers, texts, tensors and what is nested of them")
    return json.loads(told)


def add_commands(commands: Any) -> None:
    """Add ``assignment`` to the parser."""
    what = "print the solution of an assignment, and what its hidden cases check"
    parser = add_command(commands, "assignment", _show, what)
    parser.add_argument("name", metavar="NAME", help="such as tokenizer")
    add_key(parser, required=False)
    add_folder(parser)


def _show(options: argparse.Namespace) -> None:
    found = _found(options.folder, options.name, options.key)
    head = "" if is_open(options.folder, options.name) else f"{MARK}\n"
    print(f"{head}# {options.name}\n\n```python\n{found['solution'].strip()}\n```")
    for part in [Part(**each) for each in found["parts"]]:
        print(f"\n## {part.name}, {part.points} points\n\nWithout {', '.join(part.without)}.\n")
        for check in part.checks:
            print(f"- {check['points']} for {check['title']}: {len(check['cases'])} cases")
            print("".join(f"    - {hint}\n" for hint in check["mistakes"]), end="")
