"""Pairs of near-identical code: a renamed copy is found, and what everybody writes alike is not."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

from exformer_lessons.teacher import __main__ as main
from exformer_lessons.teacher import grade
from exformer_lessons.teacher.grade import Result
from exformer_lessons.teacher.gradebook import read_roster
from exformer_lessons.teacher.inside import shape
from exformer_lessons.teacher.likeness import MOST, alike, told

SOURCE = Path(__file__).parents[2] / "book" / "teach" / "assignments" / "measuring" / "solution.py"
PARTS = {
    node.name: ast.unparse(node)
    for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef)
}
LONG, OTHER, SHORT = PARTS["calibration"], PARTS["best_temperature"], PARTS["windows"]


def renamed(code):
    """Rename what a function binds, comment it, give it a docstring and a type."""
    for name in sorted({each.arg for each in ast.walk(ast.parse(code)) if isinstance(each, ast.arg)}):
        code = re.sub(rf"\b{name}\b", f"my_{name}", code)
    head, body = code.split("\n", 1)
    return f'{head.replace("):", ") -> object:")}\n    """Mine."""\n    # by me\n{body}'


def row(student, code, exercise="calibration", lesson=""):
    """Return what the grader says of some code."""
    found = shape([(0, node) for node in ast.parse(code).body])
    return Result(student, exercise, "passed", "", 1.0, lesson=lesson, shape=tuple(found))


def test_a_renamed_copy_is_a_pair():
    assert "my_logits" in renamed(LONG)
    found = alike([row("ada/a.ipynb", LONG), row("bo/b.ipynb", renamed(LONG)), row("cy.ipynb", OTHER)])
    assert found == {("ada", "bo"): {"calibration": 1.0}}
    assert told(found).splitlines()[1] == "  ada and bo: calibration 100%"
    assert "This proves nothing" in told(found)


def test_a_copy_with_a_new_line_is_a_pair():
    more = LONG.replace("\n", "\n    print('begin')\n", 1)
    [share] = alike([row("ada.ipynb", LONG), row("bo.ipynb", more)])["ada", "bo"].values()
    assert 0.8 < share < 1


def test_the_pair_most_alike_is_told_first():
    more = LONG.replace("\n", "\n    print('begin')\n", 1)
    written = {"ada": LONG, "bo": more, "cy": OTHER, "di": OTHER}
    rows = [row(f"{who}.ipynb", code) for who, code in written.items()]
    found = alike([*rows, row("cy.ipynb", LONG, "cut"), row("di.ipynb", more, "cut")])
    assert [*found] == [("cy", "di"), ("ada", "bo")]


def test_what_two_students_write_often_is_not_common():
    found = alike([row(f"{who}.ipynb", f"{LONG}\n" * 3) for who in ("ada", "bo")])
    assert found == {("ada", "bo"): {"calibration": 1.0}}


def test_two_answers_of_their_own_are_no_pair():
    assert alike([row("ada.ipynb", LONG), row("bo.ipynb", OTHER)]) == {}
    assert told({}) == ""


def test_what_most_of_a_class_writes_is_no_pair():
    assert alike([row(f"{n}.ipynb", LONG) for n in range(9)]) == {}
    some = [row(f"{n}.ipynb", LONG if n < 4 else OTHER + f"\nx = {'f(' * n}1{')' * n}") for n in range(9)]
    assert {"0", "1", "2", "3"} == {name for pair in alike(some) for name in pair}


def test_short_answers_count_together_alone():
    week = [row(f"{who}/1.ipynb", SHORT, "plan") for who in ("ada", "bo")]
    assert alike(week) == {}
    more = [row(f"{who}/2.ipynb", SHORT, "cut") for who in ("ada", "bo")]
    assert alike(week + more) == {("ada", "bo"): {"together": 1.0}}
    assert alike([*week, more[0], row("bo/2.ipynb", OTHER, "cut")]) == {}


def test_what_was_handed_out_is_nobodys_answer():
    untouched = [replace(row(who, LONG), given=row(who, LONG).shape) for who in ("ada.ipynb", "bo.ipynb")]
    assert alike(untouched) == {}
    filled = [replace(row(who, f"{LONG}\n{OTHER}"), given=row(who, LONG).shape) for who in ("ada", "bo")]
    assert alike(filled) == {("ada", "bo"): {"calibration": 1.0}}
    assert alike([untouched[0], filled[1]]) == {}


def test_two_files_of_a_student_are_no_pair(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text("Full name,Email\nAda,a@x.org\nBo,b@x.org\n", encoding="utf-8")
    rows = [row("Ada/1.ipynb", LONG), row("again/Ada/2.ipynb", LONG), row("a@x.org/3.ipynb", LONG)]
    assert alike(rows, read_roster(path)) == {}


def test_namesakes_are_told_by_their_numbers():
    rows = [row(f"Ada_{number}_assignsubmission_file_/a.ipynb", LONG) for number in (1, 2)]
    assert [*alike(rows)] == [("Ada (1)", "Ada (2)")]


def test_a_long_list_is_cut():
    pairs = {(str(n), "x"): {"a": 1.0} for n in range(MOST + 3)}
    assert told(pairs).endswith("\n  and 3 more pairs")


@pytest.mark.parametrize("copy", [True, False])
def test_the_command_tells_pairs(tmp_path, monkeypatch, capsys, copy):
    rows = [row("ada.ipynb", LONG), row("bo.ipynb", LONG if copy else OTHER)]
    monkeypatch.setattr(grade, "grade_folder", lambda *_, **__: iter(rows))
    assert main.run(["grade", str(tmp_path), "--csv", str(tmp_path / "out.csv")]) == 0
    said = capsys.readouterr().out
    assert ("ada and bo: calibration 100%" in said) == copy
    assert "Look at" not in said


def test_the_command_finds_students_in_folders_of_weeks(tmp_path, monkeypatch, capsys):
    roster = tmp_path / "roster.csv"
    roster.write_text("Full name,Email\nAda,a@x.org\nBo,b@x.org\n", encoding="utf-8")
    rows = [row(f"week1/{name}/1.ipynb", LONG) for name in ("Ada", "Bo")]
    monkeypatch.setattr(grade, "grade_folder", lambda *_, **__: iter(rows))
    tables = "--csv", tmp_path / "out.csv", "--gradebook", tmp_path / "book.csv", "--roster", roster
    assert main.run([*map(str, ("grade", tmp_path, *tables))]) == 0
    assert "  Ada and Bo: calibration 100%" in capsys.readouterr().out
