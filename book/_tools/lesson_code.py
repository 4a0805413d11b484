"""The code of lessons and of evidence: their cells, their claims, and which statements a claim depends on.

A claim depends on a statement that defines or changes a name which the claim needs, directly or through other
statements. Pictures, printed tables and prose do not count; neither do comments and layout.
"""

import ast
import builtins
import hashlib
import json
import re
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
#: Cells that are no part of what a lesson computes.
ASIDE = {"setup", "exercise", "raises-exception"}
#: Builtins that change what they are given.
CHANGING = {"next", "setattr", "delattr", "exec", "map", "filter", "zip", "iter"}
#: Packages whose functions change nothing but where their name ends in an underscore.
PURE_MODULES = ("torch", "math", "numpy", "matplotlib", "exformer.lessons")
#: Calls that set random numbers, or all of a lesson: every claim depends on them.
SEEDING = {"start", "set_seed", "manual_seed", "seed"}
#: Names whose use is a training.
TRAINING = {"train", "Trainer", "training_steps"}


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
        imported = {}
        for cell in self.cells:
            for node in cell.body:
                imported |= _imported(node)
        return [Statement(cell.number, node, imported) for cell in self.cells for node in cell.body]

    def needed(self, claim):
        """Return the statements that a claim depends on, in their order; the claim's own is left out."""
        before = [each for each in self.statements if _precedes(each, claim)]
        return _slice(before, names_read(claim.call) - {"claim", "shown"}, set())

    def needed_by(self, names):
        """Return the statements that define some names as they are at the lesson's end."""
        return _slice(self.statements, set(names), set())

    def trains(self, claim):
        """Say whether the claim depends on a training."""
        return any(each.trains for each in self.needed(claim))

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
    """Return the notebooks of some names: 05, 05_positions, positional_encoding, evidence/….

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


class Statement:
    """What a statement needs, defines and changes."""

    def __init__(self, cell, node, imported):
        self.cell, self.node = cell, node
        self.late = set()  # what its functions need when they are called
        self.defines, self.kills, self.changes = set(), set(), set()
        self.now = names_read(node, into_functions=False)
        self.seeds = self.trains = False
        for each in ast.walk(node):
            self._read(each, imported)
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.defines |= set(_imported(node))
        for function in _functions(node):
            self.late |= names_read(function) - _locals(function)
        if isinstance(node, ast.Assign):
            self.kills = {name for target in node.targets for name in _targets(target)}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
            self.kills = set(self.defines)
        local = set().union(*map(_locals, _functions(node)))
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            local -= self.now
        self.changes -= local
        self.defines -= local - self.kills

    def _read(self, node, imported):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            self.defines.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            self.defines.add(node.name)
        elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            self.changes |= {_root(node)} - {None}
        elif isinstance(node, ast.Call):
            self._read_call(node, imported)
        if isinstance(node, ast.AugAssign):
            self.now |= {_root(node.target)} - {None}
            self.changes |= {_root(node.target)} - {None}
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            module = imported.get(node.id, "")
            theirs = module.startswith(("exformer.recipes", "torch.optim"))
            self.trains |= theirs or (node.id in TRAINING and module.startswith("exformer"))
        if isinstance(node, ast.Attribute) and node.attr == "optim":
            self.trains = True

    def _read_call(self, call, imported):
        """A function may change what it is given, a method what it belongs to."""
        root, name = _root(call.func), getattr(call.func, "attr", getattr(call.func, "id", ""))
        self.seeds |= name in SEEDING and isinstance(self.node, ast.Expr | ast.Assign)
        self.trains |= isinstance(call.func, ast.Attribute) and name == "step" and not call.args
        pure = root in vars(builtins) and root not in CHANGING
        pure |= imported.get(root, "").startswith(PURE_MODULES) and not name.endswith("_")
        if pure:
            return
        if isinstance(call.func, ast.Attribute):
            self.changes |= {root} - {None}
        for given in [*call.args, *(each.value for each in call.keywords)]:
            self.changes |= {_root(given)} - {None}


def _slice(statements, now, late):
    """Walk back from what is needed; what functions need when they are called may be defined anywhere."""
    bodies = {each.node.name: each for each in statements if isinstance(each.node, ast.FunctionDef)}
    kept, before = {}, None
    while before != (len(kept), len(late)):
        before, wanted = (len(kept), len(late)), set(now)
        for number in reversed(range(len(statements))):
            each = statements[number]
            touched = each.defines | each.changes
            if not isinstance(each.node, ast.FunctionDef | ast.ClassDef):  # what it calls may change more
                touched = touched.union(*(bodies[name].changes for name in each.now & set(bodies)))
            if each.seeds or touched & (wanted | late):
                kept[number] = each
                wanted = (wanted - each.kills) | each.now
                late |= each.late
    return [kept[number] for number in sorted(kept)]


def _precedes(statement, claim):
    if statement.cell != claim.cell.number:
        return statement.cell < claim.cell.number
    return statement.node.end_lineno < claim.call.lineno


def _imported(node):
    """Return the names that an import binds, with where they come from."""
    if isinstance(node, ast.Import):
        return {each.asname or each.name.split(".")[0]: each.name for each in node.names}
    if isinstance(node, ast.ImportFrom):
        return {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return {}


def _root(node):
    """Return the name from which an expression starts: ``a`` of ``a.b[0].c``; None where it is none."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def names_read(node, *, into_functions=True):
    """Return the names that are read from outside; those that functions read only where asked for."""
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        given = [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]
        outside = _union(given + getattr(node, "decorator_list", []), into_functions)
        body = node.body if isinstance(node.body, list) else [node.body]
        return outside | (_in_order(body, into_functions) - _locals(node) if into_functions else set())
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        parts += [each for loop in node.generators for each in (loop.iter, *loop.ifs)]
        bound = {name for loop in node.generators for name in _targets(loop.target)}
        return _union(node.generators[0].iter, into_functions) | (_union(parts, into_functions) - bound)
    if isinstance(node, ast.For):
        inside = _in_order(node.body, into_functions) - _targets(node.target)
        return _union([node.iter, node.target], into_functions) | inside | _union(node.orelse, into_functions)
    if isinstance(node, ast.With):
        bound = {name for each in node.items if each.optional_vars for name in _targets(each.optional_vars)}
        return _union(node.items, into_functions) | (_in_order(node.body, into_functions) - bound)
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    return _union(list(ast.iter_child_nodes(node)), into_functions)


def _union(nodes, into_functions):
    nodes = nodes if isinstance(nodes, list) else [nodes]
    return set().union(*(names_read(each, into_functions=into_functions) for each in nodes))


def _in_order(statements, into_functions):
    """Return what statements read that none before them has bound."""
    read, bound = set(), set()
    for each in statements:
        read |= names_read(each, into_functions=into_functions) - bound
        if isinstance(each, ast.Assign):
            bound |= {name for target in each.targets for name in _targets(target)}
        elif isinstance(each, ast.FunctionDef | ast.ClassDef):
            bound.add(each.name)
    return read


def _functions(node):
    return [each for each in ast.walk(node) if isinstance(each, ast.FunctionDef | ast.Lambda)]


def _locals(function):
    """Return the names that belong to a function: what it is given and what it binds."""
    given = function.args
    names = {each.arg for each in [*given.posonlyargs, *given.args, *given.kwonlyargs]}
    names |= {each.arg for each in (given.vararg, given.kwarg) if each}
    body = function.body if isinstance(function.body, list) else [function.body]
    for part in body:
        for each in ast.walk(part):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                names.add(each.id)
            elif isinstance(each, ast.FunctionDef):
                names.add(each.name)
    return names


def _targets(target):
    if isinstance(target, ast.Tuple | ast.List):
        return {name for each in target.elts for name in _targets(each)}
    if isinstance(target, ast.Starred):
        return _targets(target.value)
    return {target.id} if isinstance(target, ast.Name) else set()


def fingerprint(nodes):
    """Return a hash of syntax trees, the same for every version of Python, comment and layout."""
    text = "\n".join(_write(node) for node in nodes)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _write(value):
    """Write a syntax tree without what versions of Python add to it, and without docstrings."""
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    if not isinstance(value, ast.AST):
        return repr(value)
    fields = dict(ast.iter_fields(value))
    if (
        isinstance(value, ast.FunctionDef | ast.ClassDef)
        and ast.get_docstring(value, clean=False) is not None
    ):
        fields["body"] = value.body[1:]
    kept = {name: each for name, each in fields.items() if name not in ("ctx", "kind", "type_comment")}
    inside = ",".join(f"{name}={_write(each)}" for name, each in kept.items() if each not in (None, []))
    return f"{type(value).__name__}({inside})"


if __name__ == "__main__":  # for the Makefile: the paths of some notebooks, or of all
    try:
        print(*(path.relative_to(ROOT) for path in find(sys.argv[1:])))
    except ValueError as error:
        sys.exit(str(error))
