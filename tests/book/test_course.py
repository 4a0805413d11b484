"""Hours, prerequisites and the minutes of a lesson: what the title page and the page for teachers say."""

import json
import re
from pathlib import Path

import course
import notes as lecture_notes
import pytest
import torch
import yaml
from recorded import greatest_cost

ROOT = Path(__file__).parents[2]
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
    for name, words, figures in (("01_one", 480, 0), ("02_two", 500, 3)):
        prose = {"cell_type": "markdown", "source": "word " * words, "metadata": {}}
        found = json.dumps({"cells": [prose, *[figure] * figures]})
        (tmp_path / "notebooks" / f"{name}.ipynb").write_text(found, encoding="utf-8")
    return tmp_path


def test_hours_are_those_of_the_lessons(root):
    assert [lesson["minutes"] for lesson in course.written(root)] == [5, 10]  # 6 and 10, to the nearest five
    assert course.hours(root, "reading") == 0  # 15 minutes
    assert course.hours(root, "exercises") == 3  # 160, to the next hour
    assert course.hours(root, "all") == 3  # 175
    with pytest.raises(ValueError, match="got 'sleep'"):
        course.hours(root, "sleep")


def test_what_a_lesson_needs_is_what_its_last_run_stored(root):
    path = root / "notebooks" / "02_two.ipynb"
    found = json.loads(path.read_text(encoding="utf-8"))
    found["metadata"] = {"cost": {"seconds": 35, "gigabytes": 0.7}}
    path.write_text(json.dumps(found), encoding="utf-8")
    one, two = course.HTML.objectives(course.written(root)).split('<p class="name">')[1:]
    assert "runs in" not in one
    assert "runs in 35 seconds with 0.7 GB" in two
    assert [greatest_cost(root, what) for what in ("seconds", "gigabytes")] == [35, 0.7]


def test_what_follows_from_another_arrow_is_not_drawn():
    assert course.direct(LESSONS) == {"a": [], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["a"]}


def test_each_lesson_is_drawn_beside_what_it_builds_on():
    lessons = course.written(ROOT)
    drawn = course.graph(lessons)
    words = " ".join(each.text for each in drawn.texts)
    assert sorted(re.findall(r"\b\d\d\b", words)) == [each["number"] for each in lessons]
    assert drawn.svg.count("<path") == 2 * sum(map(len, course.direct(lessons).values()))  # lines, and heads
    with pytest.raises(ValueError, match="no place in the drawing of prerequisites: more"):
        course.graph([*lessons, {"slug": "more", "number": "23", "title": "More", "after": []}])
    far = [each | {"after": ["recurrence"]} if each["slug"] == "scale" else each for each in lessons]
    with pytest.raises(ValueError, match="scale builds on recurrence, which is no neighbor in the drawing"):
        course.graph(far)


def test_votes_take_time_in_both_kinds_of_meeting(root):
    path = root / "notebooks" / "02_two.ipynb"
    found = json.loads(path.read_text(encoding="utf-8"))
    asked = "> **Predict.** One: (a)?\n\n> **Break it.** Two:\n> (a)?\n\n> **Tested.** Three: (a)."
    found["cells"] += [{"cell_type": "markdown", "source": asked, "metadata": {}}]
    path.write_text(json.dumps(found), encoding="utf-8")
    two = course.written(root)[1]
    assert two["minutes"] == 15
    kept = ("lecture", "votes", "board")
    read, lectured = (course.meeting(root, two, flipped=flipped) for flipped in (True, False))
    assert [read[name] for name in kept] == [0, 10, 10]
    assert [lectured[name] for name in kept] == [10, 6, 0]  # the pauses for predictions are the votes


NOTES = lecture_notes.read_notes(ROOT)
WITH_NOTES = [lesson for lesson in course.written(ROOT) if lesson["slug"] in NOTES]


def test_there_are_notes_on_each_lesson_of_a_course():
    assert list(NOTES) == [lesson["slug"] for lesson in WITH_NOTES]
    index = (ROOT / "book" / "teach" / "notes.md").read_text(encoding="utf-8")
    titles = [f"{lesson['number']} {lesson['title']}" for lesson in WITH_NOTES]
    assert re.findall(r"^- \[(.+)\]\(lessons/(\w+)\.md\)$", index, flags=re.M) == list(
        zip(titles, NOTES, strict=True)
    )
    for title, (slug, text) in zip(titles, NOTES.items(), strict=True):
        assert text.startswith(f"(notes-{slug})=\n# {title}\n\n**Project**") or slug == "embeddings"
    ways = yaml.safe_load((ROOT / "book" / "courses.yml").read_text(encoding="utf-8"))
    lessons = {lesson["slug"] for lesson in course.written(ROOT)}
    taught = {slug for way in ways for words in way["meetings"] for _, slug in course.parts(words)}
    assert taught & lessons <= NOTES.keys()


@pytest.mark.parametrize("lesson", WITH_NOTES, ids=lambda lesson: lesson["slug"])
def test_notes_agree_with_their_lesson(lesson):
    text = NOTES[lesson["slug"]]
    cells = course.cells_of(ROOT, lesson["page"])
    prose = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    right = re.findall(r"^(?:The answer|It) is \((\w)\)", prose, flags=re.M)
    assert re.findall(r"^- (?:Predict|Break it) \((\w)\)\.", text, flags=re.M) == right
    words, in_class = lecture_notes.MINUTES.search(text).groups()
    assert re.search(r"\. \*\*If late\*\*, drop .+?\.( \*\*If it was read at home\*\*, .+\.)?\n$", text)
    rows, end = lecture_notes.timed(words)
    meeting = course.meeting(ROOT, lesson, flipped=False)  # what the plan gives it
    assert (end, sum(votes for *_, votes in rows)) == (meeting["lecture"] + meeting["votes"], len(right))
    ends = [*(now for now, *_ in rows[1:]), end]
    assert all(
        after - now >= 2 + course.VOTE * votes for (now, _, votes), after in zip(rows, ends, strict=True)
    )
    assert "show the live figure" not in text  # the page of all lessons says it
    assert f"**{in_class}" in prose


def page_of(slug):
    """Return the page of a lesson's notes."""
    return lecture_notes.lesson_page(ROOT, slug, NOTES[slug])


def test_a_lecture_is_a_table_of_minutes():
    told = page_of("recurrence")
    assert "**Minutes.**" not in told
    first = told.partition("| From minute |")[2].partition("\n\n")[0].splitlines()
    assert first[2] == "| 0 | Cabinet |  |"
    assert re.fullmatch(r'\| \d+ \| Factors \| <a href=".+">slide \d+</a> \|', first[4])
    assert first[-1] == "| 49 | Exercise 1.1 |  |"
    assert "\n\n**If late**, drop the unit" in told


def test_a_vote_has_its_part_its_slide_and_the_right_option():
    chosen = yaml.safe_load((ROOT / "book" / "slides" / "slides.yml").read_text(encoding="utf-8"))
    hidden = {
        slug: [name for name in each.get("without", []) if name.startswith("predict")]
        for slug, each in chosen.items()
    }
    place = r'(?:<a href="(\S+)#/(\d+)">slide (\d+)</a>|.+?)'
    ask = re.compile(rf"^- \*\*(.+)\*\*, {place}: \((\w)\)(.*?)\. ", flags=re.M)
    for lesson in WITH_NOTES:
        slug = lesson["slug"]
        deck = lecture_notes.slides.deck(course.cells_of(ROOT, lesson["page"]), **chosen.get(slug, {}))
        asked = ask.findall(page_of(slug).partition("**Students stumble**")[0])
        assert len(asked) == len(lecture_notes.ASK.findall(NOTES[slug]))
        assert sum(not number for *_, number, _, _ in asked) == len(hidden.get(slug, []))
        for part, address, at, number, letter, option in asked:
            assert f"| {part} | " in page_of(slug)
            if number:
                assert address.endswith(f"_static/slides/{lesson['page'].partition('/')[2]}.html")
                shown = deck[int(at)]
                assert int(at) == int(number) - 1
                assert shown.asked
                line = f"<li><b>({letter})</b>{lecture_notes.slides.inline(option.strip())}</li>"
                assert line in shown.body or not option


def test_a_lesson_has_its_sheet_and_its_questions_on_one_page():
    told = page_of("recurrence")
    parts = ("# 01 Recurrent networks\n\n[Lesson by lesson](../notes.md): [lesson]", "**Ask**")
    parts += ("(mock-tutorial-recurrence)=\n## Tutorial 01", "## Bank")
    places = [told.index(part) for part in parts]
    assert places == sorted(places)
    assert "## Tutorial" not in page_of("scale")  # there are sheets up to lesson 18


def test_notes_that_miss_a_prediction_are_refused():
    text = NOTES["recurrence"].replace("- Predict (c).", "- Ask.", 1)
    with pytest.raises(ValueError, match="notes on recurrence: expected 3 predictions, got 2"):
        lecture_notes.lesson_page(ROOT, "recurrence", text)


def test_answers_of_the_pretest_are_right():
    page = (ROOT / "book" / "teach" / "first_class.md").read_text(encoding="utf-8")
    told = [
        found.strip()
        for found in re.findall(r"^\| \d+ \| (.+?) \|", page.partition("## What ")[0], flags=re.M)
    ]
    mean = torch.tensor([0.25, 0.75]) @ torch.tensor([[4.0, 2.0], [0.0, 8.0]])
    x = torch.ones(2, 5, 3)
    shapes = [tuple(each.shape) for each in (x.sum(dim=-1), x @ torch.ones(3, 4), x.mT)]
    w = torch.tensor(2.0, requires_grad=True)
    for _ in range(2):
        (w * w).backward()
    assert told[0] == str((torch.tensor([1, 2, 0]) * torch.tensor([3, -1, 4])).sum().item())
    assert told[2] == f"$({mean[0]:g}, {mean[1]:g})$"
    assert told[4] == f"−{10 * 0.69:.1f}"
    assert told[5] == f"{torch.tensor([2.0, 0.0]).softmax(dim=0)[0]:.2f}"
    assert told[6] == f"{30 / 40:.2f}; {30 / 42:.2f}"
    assert told[8] == "; ".join(map(str, shapes))
    assert told[9] == f"{w.grad:g}"
