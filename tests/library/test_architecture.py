"""The house rules that a reader of the library may rely on and that no linter knows, read from its text."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "lib" / "exformer"
MODULES = sorted(path for path in LIBRARY.rglob("*.py"))


def name_of(path):
    """Return a module's dotted name below ``exformer``."""
    return ".".join(path.relative_to(LIBRARY).with_suffix("").parts).removesuffix(".__init__")


def source(path):
    """Return a module's text and its syntax tree."""
    text = path.read_text(encoding="utf-8")
    return text, ast.parse(text)


def check_keywords(path, text, parsed):
    """Classes take all but the first argument by name only; a Trainer takes a model and batches."""
    first = 2 if name_of(path) == "training.trainer" else 1
    for node in ast.walk(parsed):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            assert len(node.args.args) <= 1 + first, f"line {node.lineno}: keyword-only after the first"


def check_inheritance(path, text, parsed):
    """No class inherits an implementation of ours, but configurations fields, and two tokenizers all."""
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
            bases = {base for base in bases if not base.endswith(("Config", "VocabularyTokenizer"))}
            assert not bases & (own | imported), f"{node.name} inherits from {bases}"


def check_manners(path, text, parsed):
    """The library neither seeds nor chooses a device, but for the command, and reads no code from files."""
    for node in ast.walk(parsed):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        seeds = called in ("torch.manual_seed", "random.seed", "np.random.seed")
        assert not seeds or name_of(path) == "training.seed", f"line {node.lineno}: seeds"
        chooses = called == "torch.cuda.is_available" and name_of(path) != "cli.device"
        assert not chooses, f"line {node.lineno}: chooses a device"
        assert called != "torch.load", f"line {node.lineno}: {called}"


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


def test_a_package_imports_only_those_before_it(monkeypatch) -> None:
    from importlinter.cli import lint_imports

    monkeypatch.chdir(ROOT)  # the chain of packages stands in pyproject.toml
    assert lint_imports(no_cache=True, no_logo=True) == 0


def test_shapes_are_checked_in_this_run() -> None:
    import torch

    from exformer.nn.attention import scaled_dot_product_attention

    with pytest.raises(Exception, match=r"[Tt]ype-check error") as caught:
        scaled_dot_product_attention([1.0], torch.zeros(2, 3), torch.zeros(2, 3))
    assert "jaxtyping" in type(caught.value).__module__


def test_every_package_with_shapes_is_checked_in_the_tests(pytestconfig) -> None:
    checked = pytestconfig.getoption("--jaxtyping-packages").split(",")
    typed = {name_of(path).split(".")[0] for path in MODULES if "jaxtyping" in path.read_text("utf-8")}
    assert {f"exformer.{package}" for package in typed} <= set(checked)


def test_names_of_tests_have_at_most_60_characters() -> None:
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    names = [name for text in texts for name in re.findall(r"^ *def (test_\w+)", text, flags=re.M)]
    assert not [name for name in names if len(name) > 60]
