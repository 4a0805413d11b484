"""The house rules that a reader of the library may rely on, read from its text."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "lib" / "exformer"
sys.path.insert(0, str(ROOT / "book" / "_ext"))

from api_modules import ORDER, rank  # noqa: E402

MODULES = sorted(path for path in LIBRARY.rglob("*.py"))
MAX_FUNCTION_LINES, MAX_PARAMETERS = 30, 7
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: What speaks to the reader; all else in the library is silent and leaves seeds and devices alone.
MAY_PRINT = {"lessons.source", "cli.main", "cli.commands"}
MAY_DRAW = {"lessons.figures"}
MAY_SEED = {"training.loop", "lessons.setup", "cli.commands"}


def name_of(path):
    """Return a module's dotted name below ``exformer``."""
    return ".".join(path.relative_to(LIBRARY).with_suffix("").parts).removesuffix(".__init__")


def source(path):
    """Return a module's text and its syntax tree."""
    text = path.read_text(encoding="utf-8")
    return text, ast.parse(text)


def imports(parsed):
    """Return the modules of the library that a module imports, and the other packages."""
    ours, others = set(), set()
    for node in ast.walk(parsed):
        if isinstance(node, ast.ImportFrom):
            found = [node.module or ""]
            if node.module == "exformer":
                found = [f"exformer.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        else:
            continue
        for module in found:
            (ours if module.startswith("exformer.") else others).add(module.removeprefix("exformer."))
    return ours, others


def own_lines(node):
    """Return how many lines of a function are code: no docstring, no blank lines, no nested signature."""
    first = node.body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    body = node.body[1:] if has_docstring else node.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def check_place(path, text, parsed):
    """Every module has its place in the order of the data."""
    assert name_of(path).split(".")[0] in [*ORDER, "__init__", ""], "add it to book/_ext/api_modules.py"


def check_imports(path, text, parsed):
    """A module imports only modules that stand above it."""
    ours, others = imports(parsed)
    here = rank(name_of(path)) if name_of(path) else -1
    for module in ours:
        inside = module.split(".")[0] == name_of(path).split(".")[0]
        assert inside or rank(module) < here, f"imports {module}, which stands below it"
    draws = {module for module in others if module.split(".")[0] in ("matplotlib", "plotly", "seaborn")}
    assert not draws or name_of(path) in MAY_DRAW, f"draws with {draws}"
    assert "einops" not in others
    assert "__future__" not in others, "shapes are types: they must be evaluated"


def check_lengths(path, text, parsed):
    """A function fits on a screen."""
    for node in ast.walk(parsed):
        if isinstance(node, FUNCTIONS):
            assert own_lines(node) <= MAX_FUNCTION_LINES, f"{node.name}: {own_lines(node)} lines"


def check_parameters(path, text, parsed):
    """At most seven parameters; modules take all but the first by name only."""
    for node in ast.walk(parsed):
        if isinstance(node, FUNCTIONS):
            positional = [
                a.arg for a in (*node.args.posonlyargs, *node.args.args) if a.arg not in ("self", "cls")
            ]
            count = len(positional) + len(node.args.kwonlyargs)
            assert count <= MAX_PARAMETERS, f"{node.name} takes {count} parameters"
            if node.name == "__init__":
                assert len(positional) <= 1, f"line {node.lineno}: keyword-only after the first"


def check_documented(path, text, parsed):
    """Whatever is public has a docstring and types."""
    assert ast.get_docstring(parsed), "no docstring"
    for node in parsed.body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{node.name} has no docstring"
            if isinstance(node, FUNCTIONS):
                untyped = [a.arg for a in (*node.args.args, *node.args.kwonlyargs) if a.annotation is None]
                assert not untyped, f"{node.name}: {untyped} have no type"
                assert node.returns is not None, f"{node.name} has no type of result"


def check_inheritance(path, text, parsed):
    """No class inherits an implementation of ours."""
    own = {node.name for node in ast.walk(parsed) if isinstance(node, ast.ClassDef)}
    imported = {
        alias.asname or alias.name
        for node in ast.walk(parsed)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("exformer")
        for alias in node.names
    }
    for node in ast.walk(parsed):
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base) for base in node.bases}
            assert not bases & (own | imported), f"{node.name} inherits from {bases}"


def check_manners(path, text, parsed):
    """The library neither asserts nor prints, seeds, or chooses a device."""
    name = name_of(path)
    for node in ast.walk(parsed):
        assert not isinstance(node, ast.Assert), f"line {node.lineno}: raise ValueError, do not assert"
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        assert called != "print" or name in MAY_PRINT, f"line {node.lineno}: prints"
        seeds = called in ("torch.manual_seed", "random.seed", "np.random.seed")
        assert not seeds or name in MAY_SEED, f"line {node.lineno}: seeds"
        assert called not in ("torch.cuda.is_available", "torch.load", "pickle.load", "eval", "exec")


def axis_words():
    """Return the closed list from the page on notation."""
    text = (ROOT / "book" / "notation.md").read_text(encoding="utf-8")
    section = re.search(r"^## Axis words$(.*?)^## ", text, flags=re.M | re.S)[1]
    return set(re.findall(r"^\| `(\w+)` \|", section, flags=re.M))


def shapes(parsed):
    """Return the shape strings of a module: the second argument of Float[Tensor, "..."]."""
    for node in ast.walk(parsed):
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.slice, ast.Tuple)
            and len(node.slice.elts) == 2
        ):
            kind, shape = ast.unparse(node.value), node.slice.elts[1]
            if kind.split(".")[-1] in {
                "Float",
                "Int",
                "Int64",
                "Bool",
                "Num",
                "Shaped",
                "Float32",
                "Float64",
            }:
                yield shape.value


def check_axes(path, text, parsed):
    """Axes bear the words of the page on notation; a lone one has a space before it."""
    known = axis_words()
    for shape in shapes(parsed):
        words = [re.sub(r"^[*#]+", "", word) for word in shape.split()]
        unknown = [word for word in words if word not in known and not re.fullmatch(r"\d+|\.\.\.|", word)]
        assert not unknown, f"{shape!r}: {unknown} are not in the list of book/notation.md"
        lone = len(words) == 1 and words[0].isidentifier() and not shape.startswith(("*", "#"))
        assert not lone or shape.startswith(" "), f"{shape!r} needs a space in front"


CHECKS = {
    name.removeprefix("check_"): check for name, check in globals().items() if name.startswith("check_")
}


@pytest.mark.parametrize("name", CHECKS)
def test_library(name: str) -> None:
    wrong = []
    for path in MODULES:
        try:
            CHECKS[name](path, *source(path))
        except AssertionError as error:
            wrong.append(f"{path.relative_to(ROOT)}: {str(error).splitlines()[0]}")
    assert not wrong, "\n".join(wrong)


def test_shapes_are_checked_in_this_run() -> None:
    import torch

    from exformer.nn.attention import scaled_dot_product_attention

    with pytest.raises(Exception, match=r"[Tt]ype-check error") as caught:
        scaled_dot_product_attention([1.0], torch.zeros(2, 3), torch.zeros(2, 3))
    assert "jaxtyping" in type(caught.value).__module__
