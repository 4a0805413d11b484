"""A planted bug turns the test red that is named for it; what does no harm turns none red.

A third of the bank runs each time; EVERYTHING=1 plants all of it.
"""

import ast
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import planting
import pytest
import yaml
from rotation import rotating_part


@dataclass(frozen=True)
class Bug:
    """Hold one planted bug: a row of planted_bugs.yml, which says what its fields mean."""

    name: str
    where: str
    right: str
    wrong: str
    test: str


BANK = Path(__file__).with_name("planted_bugs.yml")
BUGS = [Bug(**row) for row in yaml.safe_load(BANK.read_text(encoding="utf-8"))]
HARMLESS = Bug(
    "harmless",
    "nn.masks.causal_mask",
    "at least 1.\n",
    "1 or more.\n",
    "library/test_masks.py::test_causal_mask_by_hand",
)
PLANTED = rotating_part(BUGS, parts=3)
needs_fork = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="planted bugs need a system whose processes fork"
)


@pytest.fixture(scope="module")
def planter():
    with planting.Planter() as ready:
        yield ready


def plant(bug, planter):
    """Return pytest's exit code and output for the bug's test, with the bug in the library."""
    file, name = planting.module_file(bug.where)
    text = planting.changed(file.read_text(encoding="utf-8"), name, bug.right, bug.wrong)
    return planter.run([bug.test], bug.where, text)


@needs_fork
def test_without_a_bug_the_tests_pass(planter):
    """One of each file, in the forks in which bugs are planted; by themselves all of them run anyway."""
    one_of_each = {bug.test.split("::")[0]: bug.test for bug in PLANTED}
    code, output = planter.run(sorted(one_of_each.values()), limit_s=600)
    assert code == planting.PASSED, output


@needs_fork
@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: f"{bug.where}: {bug.name}")
def test_a_planted_bug_is_found(bug, planter):
    code, output = plant(bug, planter)
    assert code != planting.PASSED, f"{bug.test} passes"
    assert code == planting.FAILED, output  # anything else has found nothing


@needs_fork
def test_a_change_that_does_no_harm_survives(planter):
    assert plant(HARMLESS, planter)[0] == planting.PASSED


@needs_fork
def test_the_next_test_has_the_library_as_it_is(planter):
    assert plant(BUGS[0], planter)[0] == planting.FAILED
    assert planter.run([BUGS[0].test])[0] == planting.PASSED


@needs_fork
def test_what_can_not_be_run_is_told_apart_from_red(planter):
    assert planter.run(["test_masks.py::test_that_is_nowhere"])[0] not in (planting.PASSED, planting.FAILED)


def test_bugs_differ():
    assert max(Counter((bug.where, bug.right, bug.wrong) for bug in BUGS).values()) == 1
    assert max(Counter((bug.where, bug.name) for bug in BUGS).values()) == 1


MODULE = "def f():\n    return 1 + 1\n\n\nclass C:\n    def f(self):\n        return 1\n"


def test_the_text_is_sought_in_one_function():
    assert planting.changed(MODULE, "C.f", "1", "2") == MODULE.replace("        return 1", "        return 2")


@pytest.mark.parametrize(
    ("name", "right", "message"),
    [
        ("f", "1", "f: expected '1' once, got it 2 times"),
        ("f", "2", "f: expected '2' once, got it 0 times"),
        ("g", "1", "expected one definition of g, got 0"),
        ("C.g", "1", "expected one definition of C.g, got 0"),
    ],
)
def test_what_is_not_there_once_is_refused(name, right, message):
    with pytest.raises(ValueError, match=message):
        planting.changed(MODULE, name, right, "3")


def test_a_function_is_found_by_its_name_alone():
    file, name = planting.module_file("nn.layers.EncoderLayer.forward")
    assert (file.name, name) == ("layers.py", "EncoderLayer.forward")
    with pytest.raises(ValueError, match="no module has this name"):
        planting.module_file("nowhere.forward")


def test_each_bug_changes_the_program():
    for bug in BUGS:
        file, name = planting.module_file(bug.where)
        right = file.read_text(encoding="utf-8")
        wrong = planting.changed(right, name, bug.right, bug.wrong)
        assert ast.dump(ast.parse(wrong)) != ast.dump(ast.parse(right)), bug
