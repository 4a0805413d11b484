"""The code of lessons and of evidence: their cells, their claims, and which statements a claim depends on."""

import ast
import builtins
import json
import math
import re
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import yaml
from lesson_slices import fingerprint, names_read, needed_for, statements_of

ROOT = Path(__file__).parents[2]
#: Cells that are no part of what a lesson computes.
ASIDE = {"setup", "exercise", "raises-exception"}


@dataclass(frozen=True)
class Cell:
    """A code cell that a lesson computes with."""

    number: int
    source: str
    tags: tuple[str, ...] = ()
    outputs: list = field(default_factory=list, compare=False)

    @cached_property
    def body(self):
        """The statements."""
        return ast.parse(self.source).body


@dataclass(frozen=True)
class Claim:
    """A call of ``claim`` or ``shown`` in a cell."""

    claim_id: str
    kind: str
    cell: Cell
    call: ast.Call

    def keyword(self, name):
        """Return the expression that is given by a name, or None."""
        return next((each.value for each in self.call.keywords if each.arg == name), None)

    @property
    def measures_values(self):
        """Whether the condition is a function of named values."""
        return self.kind == "claim" and isinstance(self.keyword("holds"), ast.Lambda)

    def condition(self):
        """Return the condition as a function of the values; it may use builtins and math."""
        code = ast.fix_missing_locations(ast.Expression(self.keyword("holds")))
        return eval(compile(code, self.claim_id, "eval"), vars(builtins) | {"math": math})

    @property
    def says(self):
        """The sentence without its figures, if it is a plain string; else nothing."""
        given = self.keyword("says")
        return given.value if isinstance(given, ast.Constant) else ""

    @property
    def budget(self):
        """Whether the sentence names a budget of training."""
        given = self.keyword("budget")
        return isinstance(given, ast.Constant) and bool(given.value)

    @property
    def stored(self):
        """What the notebook keeps beside the card: the sentence without figures, and the values."""
        kept = [(out.get("metadata") or {}).get("exformer", {}) for out in self.cell.outputs]
        return next((each for each in kept if each.get("id") == self.claim_id), {})


@dataclass(frozen=True)
class Lesson:
    """The code of a notebook."""

    key: str  # positional_encoding, or evidence/positional_encoding
    path: Path
    cells: list[Cell]

    @cached_property
    def claims(self):
        """All claims and what is shown, in their order."""
        found = []
        for cell in self.cells:
            for node in ast.walk(ast.Module(cell.body, [])):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                    first = node.args[0]
                    if node.func.id in ("claim", "shown") and isinstance(first, ast.Constant):
                        found.append(Claim(str(first.value), node.func.id, cell, node))
        return found

    @cached_property
    def statements(self):
        """All statements, with the number of their cell, as what they need and define."""
        return statements_of([(cell.number, cell.body) for cell in self.cells])

    def needed(self, claim, *, random=True):
        """Return the statements that a claim depends on, in their order; the claim's own is left out.

        Args:
            claim: The claim.
            random: Whether what only draws random numbers before is needed, too.
        """
        before = [each for each in self.statements if _precedes(each, claim)]
        return needed_for(before, names_read(claim.call) - {"claim", "shown"}, set(), random=random)

    def needed_by(self, names):
        """Return the statements that define some names as they are at the lesson's end."""
        return needed_for(self.statements, set(names), set())

    def trains(self, claim):
        """Say whether the claim depends on a training."""
        return any(each.trains for each in self.needed(claim, random=False))

    def fingerprint(self, claim):
        """Return a hash of what the claim depends on and of its condition; the sentence may change."""
        own = [each for each in claim.call.keywords if each.arg != "says"]
        return fingerprint([*(each.node for each in self.needed(claim)), *own])


def load(path, key=None):
    """Read a notebook."""
    cells = []
    for number, cell in enumerate(json.loads(Path(path).read_text(encoding="utf-8"))["cells"]):
        tags = tuple(cell["metadata"].get("tags", []))
        if cell["cell_type"] == "code" and not ASIDE & set(tags):
            cells.append(Cell(number, "".join(cell["source"]), tags, cell["outputs"]))
    return Lesson(key_of(path) if key is None else key, Path(path), cells)


def with_seed(source, seed):
    """Return a cell's source with another seed: the lessons write ``start(seed=0)`` or ``seed = 0``."""
    source = source.replace("start(seed=0)", f"start(seed={seed})")
    return re.sub(r"^seed = 0$", f"seed = {seed}", source, flags=re.MULTILINE)


def paths(root=ROOT):
    """Return all notebooks: the lessons, then the evidence."""
    folder = Path(root, "notebooks")
    return [*sorted(folder.glob("*.ipynb")), *sorted(folder.glob("evidence/*.ipynb"))]


def find(names, root=ROOT):
    """Return the notebooks of some names: 05, 05_positional_encoding, positional_encoding, evidence/….

    The name of a lesson's topic stands for its lesson and its evidence; no name stands for all.

    Raises:
        ValueError: If there is no such notebook.
    """
    names = [name.removeprefix("notebooks/").removesuffix(".ipynb") for name in names]
    known = {path: _aliases(path) for path in paths(root)}
    for name in names:
        if not any(name in aliases for aliases in known.values()):
            keys = ", ".join(key_of(path) for path in known)
            raise ValueError(f"there is no lesson {name!r}; there are: {keys}")
    return [path for path, aliases in known.items() if not names or aliases & set(names)]


def _aliases(path):
    key = key_of(path)
    number = set() if path.parent.name == "evidence" else {path.stem[:2], path.stem}
    return {key, key.removeprefix("evidence/")} | number


def key_of(path):
    """Return the name of a notebook's topic, ``evidence/`` before it where it is evidence."""
    path = Path(path)
    if path.parent.name == "evidence":
        return f"evidence/{path.stem}"
    plan = path.parents[1] / "book" / "lessons.yml"
    lessons = yaml.safe_load(plan.read_text(encoding="utf-8")) if plan.is_file() else []
    return next((each["slug"] for each in lessons if each["number"] == path.stem[:2]), path.stem)


def _precedes(statement, claim):
    if statement.cell != claim.cell.number:
        return statement.cell < claim.cell.number
    return statement.node.end_lineno < claim.call.lineno


if __name__ == "__main__":  # for the Makefile: the paths of some notebooks, or of all
    try:
        print(*(path.relative_to(ROOT) for path in find(sys.argv[1:])))
    except ValueError as error:
        sys.exit(str(error))
