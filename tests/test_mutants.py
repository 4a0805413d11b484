"""The bank of planted bugs fits the library as it is: no bug has gone stale. ``make mutants`` runs them."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import mutants
import pytest
from planted_bugs import BUGS, Bug

TESTS = Path(__file__).parent


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.file}: {bug.name}")
def test_a_bug_can_be_planted(bug):
    right = (mutants.LIBRARY / bug.file).read_text(encoding="utf-8")
    wrong = mutants.planted(bug, right)
    assert ast.dump(ast.parse(wrong)) != ast.dump(ast.parse(right))
    file, function = bug.test.split("::")
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_bugs_differ():
    assert max(Counter((bug.file, bug.old, bug.new) for bug in BUGS).values()) == 1
    assert max(Counter((bug.file, bug.name) for bug in BUGS).values()) == 1


@pytest.mark.parametrize(("text", "times"), [("b = 2", 0), ("a = 1; a = 1", 2)])
def test_text_that_does_not_occur_once_is_refused(text, times):
    with pytest.raises(
        ValueError, match=f"attention.py, name: expected 'a = 1' once, found it {times} times"
    ):
        mutants.planted(Bug("name", "attention.py", "a = 1", "a = 2", "file::test"), text)


HARMLESS = Bug(
    "harmless", "nn/masks.py", "at least 1.\n", "1 or more.\n", "test_masks.py::test_causal_mask_by_hand"
)


def test_a_change_that_does_no_harm_survives():
    # In a process of its own: other tests here may have left one to fork from that has imported the library.
    code = "import mutants, test_mutants; print(mutants.judge(test_mutants.HARMLESS))"
    done = subprocess.run([sys.executable, "-c", code], cwd=TESTS, capture_output=True, text=True)
    assert done.stdout == "SURVIVED\n", done.stderr


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (0, "SURVIVED"),
        (1, "killed"),
        (2, "BROKEN: pytest ended with 2"),
        (99, "BROKEN: another library"),
        (-1, "BROKEN: not"),
    ],
)
def test_only_a_red_test_kills(monkeypatch, code, verdict):
    monkeypatch.setattr(mutants, "run_tests", lambda folder, tests, **limit: (code, "what pytest wrote"))
    assert mutants.judge(HARMLESS).splitlines()[0].startswith(verdict)


def test_the_copy_is_what_is_imported(tmp_path):
    assert mutants.run_tests(tmp_path, [HARMLESS.test])[0] == mutants.WRONG_LIBRARY


def test_main_ends_with_1_if_a_bug_is_not_killed(monkeypatch, capsys):
    monkeypatch.setattr(mutants, "run_tests", lambda folder, tests, **limit: (0, ""))
    monkeypatch.setattr(mutants, "judge", lambda bug: "SURVIVED" if bug.name == "no bend" else "killed")
    assert mutants.main(["nn/masks.py"]) == 0
    assert mutants.main(["feedforward.py"]) == 1
    assert "SURVIVED  feedforward.py: no bend" in capsys.readouterr().out
    monkeypatch.setattr(mutants, "run_tests", lambda folder, tests, **limit: (1, "red"))
    with pytest.raises(SystemExit, match="without any bug planted the tests must pass: nothing was judged"):
        mutants.main(["nn/masks.py"])
