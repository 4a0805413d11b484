"""The names at the top of the library: one list, loaded when they are used."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import exformer

STUB = Path(exformer.__file__).with_suffix(".pyi")
#: Name -> the module that the stub takes it from.
PUBLIC = {
    alias.name: f"exformer.{node.module}"
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}


def test_the_stub_names_what_the_package_offers() -> None:
    assert dir(exformer) == exformer.__all__ == sorted(PUBLIC)
    assert 30 <= len(PUBLIC) <= 60  # a reader should be able to look through them
    assert (STUB.parent / "py.typed").is_file()  # or type checkers pass it over


@pytest.mark.parametrize("name", PUBLIC)
def test_each_name_is_where_the_stub_says_and_has_a_docstring(name: str) -> None:
    thing = getattr(exformer, name)
    assert thing is getattr(importlib.import_module(PUBLIC[name]), name)
    assert thing.__module__ == PUBLIC[name]  # its home, not a module that imports it
    assert inspect.getdoc(thing)


def test_a_stub_shows_names_only_if_they_are_exported() -> None:
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    aliases = [alias for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert all(alias.asname == alias.name for alias in aliases)  # PEP 484: "import X as X" exports X


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="set_seed"):
        exformer.set_seed  # noqa: B018


def test_importing_the_library_loads_no_torch() -> None:
    code = "import sys, exformer; dir(exformer); sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    code = "import sys; from exformer import DecoderLM; sys.exit('torch' not in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
