"""The page of bugs that others had: its examples hold, its tests are there, its links have their form."""

import ast
import re
from pathlib import Path

import pytest
import torch
import yaml
from recorded import COUNTS

ROOT = Path(__file__).parents[2]
FILE = yaml.safe_load((ROOT / "book" / "bugs.yml").read_text(encoding="utf-8"))
BUGS = [bug for subject in FILE["subjects"] for bug in subject["bugs"]]
each_bug = pytest.mark.parametrize("bug", BUGS, ids=[bug["title"] for bug in BUGS])


@pytest.fixture(scope="module")
def names() -> dict:
    """Run the lines that the page shows first."""
    found: dict = {}
    exec(FILE["setup"], found)
    return found


def value_of(code: str, names: dict) -> object:
    """Run some lines; return what the last one says."""
    *before, last = ast.parse(code).body
    exec(compile(ast.Module(before, []), "bugs.yml", "exec"), names)
    return eval(compile(ast.Expression(last.value), "bugs.yml", "eval"), names)


@each_bug
def test_the_code_of_a_bug_is_true_here(names: dict, bug: dict) -> None:
    with torch.random.fork_rng():
        if "error" not in bug:
            assert value_of(bug["code"], dict(names))
            return
        with pytest.raises((ValueError, RuntimeError, OSError), match=re.escape(bug["error"])):
            value_of(bug["code"], dict(names))


@each_bug
def test_a_bug_is_told_shortly_and_has_a_test(bug: dict) -> None:
    assert bug.keys() - {"error", "bug"} == {"title", "threads", "what", "code", "test", "lesson"}
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", thread) for thread in bug["threads"])
    assert 15 <= len(bug["what"].split()) <= 55, len(bug["what"].split())
    assert max(map(len, bug["code"].splitlines())) <= 88
    file, _, name = bug["test"].partition("::")
    parsed = ast.parse((ROOT / "tests" / "library" / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in parsed.body if isinstance(node, ast.FunctionDef)}
    assert name.startswith("test_")


def test_no_bug_is_told_twice() -> None:
    for key in ("title", "test", "code"):
        found = [bug[key] for bug in BUGS]
        assert len(set(found)) == len(found), key


def test_what_is_no_bug_is_not_counted() -> None:
    mistaken = [bug["title"] for bug in BUGS if "no bug" in bug["what"]]
    assert [bug["title"] for bug in BUGS if not bug.get("bug", True)] == mistaken
    assert COUNTS["bugs of others"]([], ROOT) == len(BUGS) - len(mistaken) < len(BUGS)
