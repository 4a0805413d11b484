"""Hours, prerequisites and ways through the book: what the title page and the page for teachers say."""

import json
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import course  # noqa: E402

LESSONS = [
    {"slug": "a", "after": []},
    {"slug": "b", "after": ["a"]},
    {"slug": "c", "after": ["b"]},
    {"slug": "d", "after": ["a", "b", "c"]},
    {"slug": "e", "after": ["a"]},
]


@pytest.fixture
def root(tmp_path):
    """Give a book of two lessons: 720 words, and 540 words with three figures."""
    for name in ("book", "notebooks"):
        (tmp_path / name).mkdir()
    rows = [{"number": "01", "slug": "one", "title": "One", "question": "?", "after": [], "able": ["count"]}]
    rows += [
        {"number": "02", "slug": "two", "title": "Two", "question": "?", "after": ["one"], "able": ["add"]}
    ]
    (tmp_path / "book" / "lessons.yml").write_text(yaml.safe_dump(rows), encoding="utf-8")
    figure = {"cell_type": "code", "source": "", "metadata": {"tags": ["hide-input"]}}
    figure |= {"outputs": [{"data": {"image/svg+xml": "<svg/>"}}]}
    for name, words, figures in (("01_one", 720, 0), ("02_two", 540, 3)):
        prose = {"cell_type": "markdown", "source": "word " * words, "metadata": {}}
        found = json.dumps({"cells": [prose, *[figure] * figures]})
        (tmp_path / "notebooks" / f"{name}.ipynb").write_text(found, encoding="utf-8")
    way(tmp_path)
    return tmp_path


def way(root, **changes):
    """Write a way through the book of two lessons."""
    given = {"key": "all", "title": "All", "hours": 1, "meeting": 30, "lessons": ["one", "two"]} | changes
    (root / "book" / "courses.yml").write_text(yaml.safe_dump([given]), encoding="utf-8")


def test_hours_are_those_of_the_lessons(root):
    assert [lesson["minutes"] for lesson in course.written(root)] == [5, 10]  # 6 and 7.5, to the nearest five
    assert course.hours(root, "reading") == 0  # 15 minutes
    assert course.hours(root, "exercises") == 2  # 90, to the even hour
    assert course.hours(root, "all") == 2  # 105
    with pytest.raises(ValueError, match="got 'sleep'"):
        course.hours(root, "sleep")


def test_what_follows_from_another_arrow_is_not_drawn():
    assert course.direct(LESSONS) == {"a": [], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["a"]}
    assert [[each["slug"] for each in level] for level in course.levels(LESSONS)] == [
        ["a"],
        ["b", "e"],
        ["c"],
        ["d"],
    ]


def test_a_way_has_a_row_for_each_meeting(root):
    found = course.course(root, "all")
    assert [(row["lesson"]["slug"], row["reading"], row["exercises"]) for row in found["rows"]] == [
        ("one", 5, 25),
        ("two", 10, 20),
    ]
    assert found["told"] == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lessons": ["two"]}, "two builds on one, which must come before"),
        ({"lessons": ["two", "one"]}, "two builds on one"),
        ({"lessons": ["three"]}, "three is no written lesson"),
        ({"meeting": 19}, "two leaves 9 minutes for exercises"),
        ({"meeting": 31}, "2 meetings of 31 minutes are over 1 hours"),
    ],
)
def test_a_way_that_does_not_work_is_refused(root, changes, message):
    way(root, **changes)
    with pytest.raises(ValueError, match=message):
        course.course(root, "all")


def test_what_is_left_out_is_told(root):
    way(root, lessons=["two"], without={"one": "a sentence"})
    found = course.course(root, "all")
    assert [(lesson["slug"], words) for lesson, words in found["told"]] == [("one", "a sentence")]
    with pytest.raises(ValueError, match=r"expected a key of courses.yml \(all\), got 'none'"):
        course.course(root, "none")


@pytest.mark.parametrize(
    "key", [way["key"] for way in yaml.safe_load((ROOT / "book" / "courses.yml").read_text())]
)
def test_the_ways_of_the_book_work(key):
    found = course.course(ROOT, key)
    assert f"{{course}} {key}" in (ROOT / "book" / "teach.md").read_text(encoding="utf-8")
    assert len(found["rows"]) * found["meeting"] == 60 * found["hours"]


def test_every_lesson_says_what_it_teaches():
    assert all(lesson.get("able") for lesson in course.written(ROOT))
