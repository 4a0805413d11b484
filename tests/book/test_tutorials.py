"""Sheets for tutorials last as long as the plans say, and say what to leave out when time is short."""

import re
from math import ceil
from pathlib import Path

import pytest
import yaml
from mocks import TUTORIAL, on_page
from plans import plan_of, read_plans

from exformer_lessons.teacher.__main__ import run
from exformer_lessons.teacher.mock import mocks, read_mock
from exformer_lessons.teacher.sheets import FACTOR

ROOT = Path(__file__).parents[2]
TEACH = ROOT / "book" / "teach"
SHEETS = [key for key in mocks(TEACH) if key.startswith(TUTORIAL)]
WITH_TUTORIAL = [plan["key"] for plan in read_plans(ROOT) if plan.get("tutorial")]


@pytest.mark.parametrize("key", SHEETS)
def test_a_sheet_says_what_to_leave_out_when_late(key):
    sheet = read_mock(TEACH, key)
    question, part, *reserve = sheet.late
    points = re.search(rf"^{part}\. .+\[(\d)\]\*\*$", sheet.tasks[question - 1].question.text, flags=re.M)[1]
    wanted = f"leave out part {part} of question {question}, {ceil(FACTOR * int(points))} minutes"
    for number in reserve:
        whole = ceil(FACTOR * sheet.tasks[number - 1].question.minutes)
        wanted += f", or all of question {number}, {whole} minutes"
    assert sheet.spared == f"If you run late, {wanted}."
    told = f"{sheet.minutes} minutes, {sheet.points} points. {sheet.rules} {sheet.spared}\n"
    assert told in on_page(sheet)


def test_students_do_not_read_what_is_left_out(capsys):
    for options, count in (([], 0), (["--answers"], 1)):
        assert run(["mock", SHEETS[0], "--folder", str(TEACH), *options]) == 0
        out, said = capsys.readouterr()
        assert (out.count("If you run late"), said) == (count, "")
        assert "\n\n\n" not in out


@pytest.mark.parametrize("late", [[1, 9], [4, 1], [2], [0, 1], [1, 1, 4], [1, 1, 0], [1, 1, 2, 3]], ids=str)
def test_a_part_that_is_not_there_cannot_be_left_out(tmp_path, late):
    (tmp_path / "mock").mkdir()
    row = yaml.safe_load((TEACH / "mock" / f"{SHEETS[0]}.yml").read_text(encoding="utf-8")) | {"late": late}
    (tmp_path / "mock" / "tutorial_own.yml").write_text(yaml.safe_dump(row), encoding="utf-8")
    with pytest.raises(ValueError, match=r"tutorial_own: expected a question and its part, got \["):
        read_mock(tmp_path, "tutorial_own")


@pytest.mark.parametrize("key", WITH_TUTORIAL)
def test_sheet_plan_and_table_have_the_same_minutes(key):
    page = (TEACH / "notes.md").read_text(encoding="utf-8")
    usual, tested = zip(*re.findall(r"^\| ([\d–]+) \| ([\d–]+) \|", page, flags=re.M), strict=True)
    begin, board, sheet, answers, end = (int(n) for n in usual if n != "–")
    assert begin == 0
    plan = plan_of(ROOT, key)
    held_on_sheets = [row["tutorial"] for row in plan["rows"] if row["tutorial"]["sheet"]]
    whole = [held for held in held_on_sheets if held["all"]]
    for held in whole:
        minutes = read_mock(TEACH, f"{TUTORIAL}{held['sheet'][0]['slug']}").minutes
        assert held["on_sheet"] == minutes <= answers - sheet
        if held["on_board"] == sheet - board:  # the rest is for the answers
            assert held["slack"] == board + (end - sheet - minutes) + (plan["tutorial"] - end)
    later = int(re.search(r"the sheet begins at (\d+)", page)[1])
    assert {held["on_board"] for held in whole} == {0, sheet - board, later - board}
    begin, test, board, sheet, end = (int(n) for n in tested if n != "–")
    with_test = [held for held in held_on_sheets if held["tests"]]
    assert len(with_test) == sum(len(row["tutorial"]["tests"]) for row in plan["rows"]) >= 2
    for held in with_test:  # with a shorter test there is more time for the sheet
        (minutes,) = (each["minutes"] for each in held["tests"])
        assert held["on_board"] == sheet - board
        assert minutes <= board - test
        assert held["on_sheet"] <= end - sheet + (board - test - minutes)
        assert held["solved"]
        assert not held["all"]  # no time for answers
