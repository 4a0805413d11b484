"""Read the book's notebooks: their code cells, their claims, and a hash of the code that a claim rests on."""

import ast
import builtins
import hashlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

#: Tags of cells that are no part of what a notebook computes.
ASIDE = {"setup", "exercise", "raises-exception"}
#: The names by which a notebook trains.
TRAINING = {"train", "Trainer"}
#: The tag of a claim after the first training that depends on none.
UNTRAINED = "untrained"
_SAID = ("says", "holds", "budget")


@dataclass(frozen=True)
class Cell:
    """A code cell."""

    number: int
    source: str
    tags: tuple[str, ...] = ()
    outputs: list[dict[str, Any]] = field(default_factory=list, compare=False)

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.source)

    @cached_property
    def names(self) -> set[str]:
        """All names in it."""
        return _names(self.tree)

    @cached_property
    def begins(self) -> bool:
        """Whether it begins a section: it imports what the section needs, and calls ``start``."""
        imports = any(isinstance(node, ast.ImportFrom) for node in self.tree.body)
        return imports and any(_called(node) == "start" for node in ast.walk(self.tree))

    @cached_property
    def binds(self) -> set[str]:
        """The names that it defines, imports, or assigns to, as a whole or in part."""
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.alias):
                found.add((node.asname or node.name).split(".")[0])
            elif isinstance(getattr(node, "ctx", None), ast.Store):
                found |= _names(node)
        return found


@dataclass(frozen=True)
class Claim:
    """A call of ``claim`` or ``shown`` in a cell."""

    claim_id: str
    kind: str
    cell: Cell
    call: ast.Call

    def keyword(self, name: str) -> ast.expr | None:
        """Return the expression of a keyword argument, or None."""
        return next((each.value for each in self.call.keywords if each.arg == name), None)

    def condition(self) -> Callable[..., object]:
        """Return the condition as a function of the values; it may use builtins and ``math``."""
        code = ast.fix_missing_locations(ast.Expression(self._lambda()))
        return eval(compile(code, self.claim_id, "eval"), vars(builtins) | {"math": math})  # noqa: S307

    def judge(self, values: dict[str, Any]) -> bool:
        """Say whether measured values support the claim, as ``claim`` itself does."""
        asked = [each.arg for each in self._lambda().args.args]
        finite = not {"nan", "inf", "-inf"} & {each for each in values.values() if isinstance(each, str)}
        return finite and bool(self.condition()(**{name: values[name] for name in asked}))

    def _lambda(self) -> ast.Lambda:
        holds = self.keyword("holds")
        if not isinstance(holds, ast.Lambda):
            raise ValueError(
                f"claim {self.claim_id} must have a condition on named values: write holds=lambda …"
            )
        return holds

    @property
    def says(self) -> str:
        """The sentence without its figures, if it is a plain string; else nothing."""
        given = self.keyword("says")
        return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""

    @property
    def budget(self) -> bool:
        """Whether the sentence names a budget of training."""
        given = self.keyword("budget")
        return isinstance(given, ast.Constant) and bool(given.value)

    @property
    def stored(self) -> dict[str, Any]:
        """What the notebook's output keeps of the claim: the sentence without figures, and the values."""
        kept = [(out.get("metadata") or {}).get("exformer", {}) for out in self.cell.outputs]
        return next((each for each in kept if each.get("id") == self.claim_id), {})

    @property
    def sentence(self) -> str:
        """The sentence with its figures, as the page shows it."""
        texts = ["".join(out.get("data", {}).get("text/plain", "")) for out in self.cell.outputs]
        start = f"{self.kind} {self.claim_id} | "
        return next((text.removeprefix(start) for text in texts if text.startswith(start)), "")


@dataclass(frozen=True)
class Notebook:
    """The code of a notebook.

    Args:
        key: Its topic: ``positional_encoding``, or ``evidence/positional_encoding``.
        path: Its file.
        cells: Its code cells.
    """

    key: str
    path: Path
    cells: list[Cell]

    @cached_property
    def claims(self) -> list[Claim]:
        """All calls of ``claim`` and ``shown``, in their order."""
        found = []
        for cell in self.cells:
            for node in ast.walk(cell.tree):
                if isinstance(node, ast.Call) and _called(node) in ("claim", "shown") and node.args:
                    first = node.args[0]
                    if isinstance(first, ast.Constant):
                        found.append(Claim(str(first.value), _called(node), cell, node))
        return found

    @cached_property
    def sections(self) -> list["Notebook"]:
        """The parts that stand on their own: each begins with a cell that imports and calls ``start``."""
        parts: list[list[Cell]] = [[]]
        for cell in self.cells:
            if cell.begins and any(each.begins for each in parts[-1]):
                parts.append([])
            parts[-1].append(cell)
        return [self] if len(parts) == 1 else [Notebook(self.key, self.path, cells) for cells in parts]

    def section_of(self, *claim_ids: str) -> "Notebook":
        """Return the section in which some claims are stated.

        Raises:
            ValueError: If none states all of them.
        """
        for section in self.sections:
            if set(claim_ids) <= {each.claim_id for each in section.claims}:
                return section
        raise ValueError(f"{self.key} states no claim {', '.join(claim_ids)}")

    @cached_property
    def counted(self) -> list[Cell]:
        """The cells that count: all but the folded ones whose names no claim and no later one of them reads.

        Those draw a picture, write a table or state a claim. They may change without making a record stale,
        unless they sample random numbers, which would change those of the cells after them.
        """
        if len(self.sections) > 1:
            return [cell for section in self.sections for cell in section.counted]
        counted: list[Cell] = []
        read: set[str] = set()
        stating = {claim.cell.number for claim in self.claims}
        for cell in reversed(self.cells):
            if "hide-input" not in cell.tags or cell.begins or cell.binds & read or "rand" in cell.source:
                counted.insert(0, cell)
                read |= cell.names
            elif cell.number in stating:
                read |= cell.names
        return counted

    @property
    def tried(self) -> list[Claim]:
        """The claims after their section's first training, unless tagged ``untrained``."""
        return [each for section in self.sections for each in section._tried()]

    def _tried(self) -> list[Claim]:
        first = next((cell.number for cell in self.cells if cell.names & TRAINING), math.inf)
        return [
            each
            for each in self.claims
            if each.kind == "claim" and each.cell.number > first and UNTRAINED not in each.cell.tags
        ]

    def up_to(self, names: Iterable[str]) -> list[Cell]:
        """Return the counted cells up to the last that binds one of some names."""
        wanted = set(names)
        last = max((cell.number for cell in self.counted if cell.binds & wanted), default=-1)
        return [cell for cell in self.counted if cell.number <= last]

    @property
    def bound(self) -> set[str]:
        """The names that its cells define."""
        return {name for cell in self.cells for name in cell.binds}

    @cached_property
    def codes(self) -> dict[str, str]:
        """For each claim a hash of its section's counted cells before it, and of what it measures.

        Its sentence and its condition are left out: recorded values can be judged anew.
        """
        found = {}
        for claim in self.claims:
            counted = self.section_of(claim.claim_id).counted
            before = [cell.tree for cell in counted if cell.number < claim.cell.number]
            own = [node for node in claim.cell.tree.body if node.lineno <= claim.call.lineno]
            found[claim.claim_id] = fingerprint([*before, *own])
        return found


def load(path: str | Path, key: str = "") -> Notebook:
    """Read a notebook; its key is taken from its path unless it is given."""
    cells = []
    for number, cell in enumerate(json.loads(Path(path).read_text(encoding="utf-8"))["cells"]):
        tags = tuple(cell["metadata"].get("tags", []))
        if cell["cell_type"] == "code" and not ASIDE & set(tags):
            cells.append(Cell(number, "".join(cell["source"]), tags, cell.get("outputs", [])))
    return Notebook(key or key_of(path), Path(path), cells)


def with_seed(source: str, seed: int) -> str:
    """Return a cell's source with another seed: notebooks write ``start(seed=0)`` or ``seed = 0``.

    >>> with_seed("start(seed=0)", 3)
    'start(seed=3)'
    """
    source = source.replace("start(seed=0)", f"start(seed={seed})")
    return re.sub(r"^seed = 0$", f"seed = {seed}", source, flags=re.MULTILINE)


def book_folder() -> Path:
    """Return the clone of the book in which we are.

    Raises:
        ValueError: If we are in none.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "notebooks").is_dir() and (folder / "_toc.yml").is_file():
            return folder
    raise ValueError(f"expected a clone of the book, with its folder notebooks, got {here}: change into one")


def readable_folder() -> Path:
    """Return the folder that has the notebooks: the clone in which we are, or the installed package."""
    installed = Path(__file__).parent
    try:
        return book_folder()
    except ValueError:
        if (installed / "notebooks").is_dir():
            return installed
        raise


def paths(root: Path | None = None) -> list[Path]:
    """Return all notebooks, the lessons before the evidence.

    Args:
        root: A clone of the book; None: that in which we are.
    """
    folder = (book_folder() if root is None else root) / "notebooks"
    return [*sorted(folder.glob("*.ipynb")), *sorted(folder.glob("evidence/*.ipynb"))]


def labs(root: Path | None = None) -> list[Path]:
    """Return the labs, which need a network and hold no claims; ``root`` as in :func:`paths`."""
    return sorted(((book_folder() if root is None else root) / "notebooks" / "labs").glob("*.ipynb"))


def find(names: Sequence[str], root: Path | None = None) -> list[Path]:
    """Return the notebooks of some names: 05, 05_positional_encoding, tokens, evidence/tokens, labs/island.

    The name of a topic stands for its lesson and its evidence; no name stands for all but the labs.

    Raises:
        ValueError: If there is no such notebook.
    """
    asked = [name.removeprefix("notebooks/").removesuffix(".ipynb") for name in names]
    if not asked:
        return paths(root)
    known = {path: _names_of(path) for path in [*paths(root), *labs(root)]}
    for name in asked:
        if not any(name in own for own in known.values()):
            keys = ", ".join(key_of(path) for path in known)
            raise ValueError(f"there is no lesson {name!r}; there are: {keys}")
    return [path for path, own in known.items() if own & set(asked)]


def key_of(path: str | Path) -> str:
    """Return the topic of a notebook, ``evidence/`` or ``labs/`` before it where it is one of them.

    >>> key_of("notebooks/05_positional_encoding.ipynb"), key_of("notebooks/evidence/tokens.ipynb")
    ('positional_encoding', 'evidence/tokens')
    """
    path = Path(path)
    folder = path.parent.name
    return f"{folder}/{path.stem}" if folder in ("evidence", "labs") else path.stem.lstrip("0123456789_")


def fingerprint(nodes: Iterable[ast.AST]) -> str:
    r"""Return a hash of syntax trees that comments, docstrings, imports and what claims say do not change.

    >>> one, two = ast.parse("from a import f; x = f(1)"), ast.parse("from b import f\nx = f(1)  # one")
    >>> fingerprint([one]) == fingerprint([two])
    True
    >>> fingerprint([one]) == fingerprint([ast.parse("from a import g as f; x = f(1)")])
    False
    """
    return hashlib.sha256("\n".join(map(_written, nodes)).encode()).hexdigest()[:16]


def _written(value: object) -> str:
    """Write a syntax tree, the same for every version of Python."""
    if isinstance(value, list):
        return "[" + ",".join(_written(each) for each in value if not _is_plain_import(each)) + "]"
    if not isinstance(value, ast.AST):
        return repr(value)
    fields = dict(ast.iter_fields(value))
    if isinstance(value, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(value) is not None:
        fields["body"] = value.body[1:]
    if isinstance(value, ast.Call) and _called(value) in ("claim", "shown"):
        fields["keywords"] = [each for each in value.keywords if each.arg not in _SAID]
    left_out = ("ctx", "kind", "type_comment", "type_ignores")
    kept = {name: x for name, x in fields.items() if name not in left_out and x is not None and x != []}
    inside = [f"{name}={_written(x)}" for name, x in kept.items()]
    return f"{type(value).__name__}({','.join(inside)})"


def _is_plain_import(node: object) -> bool:
    """Say whether a statement imports things by their own names: where they are does not matter."""
    return isinstance(node, ast.Import | ast.ImportFrom) and all(each.asname is None for each in node.names)


def _called(node: ast.AST) -> str:
    """Return the plain name that a call calls, or nothing."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _names_of(path: Path) -> set[str]:
    key = key_of(path)
    number = set() if "/" in key else {path.stem[:2], path.stem}
    return {key, key.removeprefix("evidence/")} | number


if __name__ == "__main__":  # for the Makefile
    sys.stdout.write(" ".join(str(path.relative_to(book_folder())) for path in find(sys.argv[1:])))
