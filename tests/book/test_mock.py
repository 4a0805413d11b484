"""Public exams: their schemes add up, their numbers are computed, and a wrong one is refused."""

import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from page_checks import visit
from test_plain_markdown import not_plain

from exformer_lessons.teacher.__main__ import run
from exformer_lessons.teacher.exams import read_exams
from exformer_lessons.teacher.mock import mocks, read_mock
from exformer_lessons.teacher.questions import KINDS, lessons_with_questions, read_questions
from exformer_lessons.teacher.sheets import MARKING, Sheet

TEACH = Path(__file__).parents[2] / "book" / "teach"
#: The lessons that an exam may ask of, as its title says.
LESSONS = {"exam": (1, 13), "exam_language": (3, 16), "exam_today": (3, 18)}
LESSONS |= {"test_1": (1, 6), "test_2": (7, 13), "test_3": (14, 20), "test_4": (19, 20)}
PLAN = {
    row["slug"]: row for row in yaml.safe_load((TEACH.parent / "lessons.yml").read_text(encoding="utf-8"))
}
SMALL = {
    "title": "Numbers",
    "minutes": 12,
    "rules": "No aids.",
    "grades": {"good": 4, "pass": 3},
    "questions": [
        {
            "lesson": "numbers",
            "id": "half",
            "kind": "apply",
            "objective": 1,
            "minutes": 4,
            "text": "What is half of [[3 = x]]?",
            "code": "x = draw(3, 5, 7)\n",
            "answer": "It is [[1.5 = x / 2]].\n\n- 2 points: the idea\n- 2 points: the result\n",
            "wrong": [[2, "[[6 = 2 * x]]: it is doubled."]],
        }
    ],
}


@pytest.fixture
def folder(tmp_path):
    """Give a book with one small exam."""
    (tmp_path / "teach" / "mock").mkdir(parents=True)
    plan = "- {number: '01', slug: numbers, title: Numbers}\n"
    (tmp_path / "lessons.yml").write_text(plan, encoding="utf-8")
    write(tmp_path / "teach")
    return tmp_path / "teach"


def write(folder, **changes):
    """Write the small exam, with other fields in its question."""
    question = SMALL["questions"][0] | {name: new for name, new in changes.items() if name not in SMALL}
    exam = SMALL | {"questions": [question]} | {name: new for name, new in changes.items() if name in SMALL}
    (folder / "mock" / "small.yml").write_text(yaml.safe_dump(exam), encoding="utf-8")


#: The sheets for tutorials.
SHEETS = [key for key in mocks(TEACH) if key.startswith("tutorial_")]


@pytest.mark.parametrize("key", SHEETS)
def test_a_sheet_for_a_tutorial_is_on_its_lesson(key: str) -> None:
    sheet, row = read_mock(TEACH, key), PLAN[key.removeprefix("tutorial_")]
    assert sheet.title.startswith(f"Tutorial {row['number']}: ")
    assert len({task.question.kind for task in sheet.tasks}) == len(sheet.tasks) == 3
    assert all(task.question.lesson == row["slug"] for task in sheet.tasks)
    assert all(1 <= task.question.objective <= len(row["able"]) for task in sheet.tasks)
    assert 15 <= sheet.points <= 20
    assert sheet.grades == {}


@pytest.mark.parametrize("key", LESSONS)
def test_a_public_exam_is_what_its_title_says(key: str) -> None:
    exam, (first, last) = read_mock(TEACH, key), LESSONS[key]
    assert exam.points == 2 * exam.minutes / 3
    assert {task.question.kind for task in exam.tasks} == set(KINDS)
    for task in exam.tasks:
        row = PLAN[task.question.lesson]
        assert first <= int(row["number"]) <= last
        assert 1 <= task.question.objective <= len(row["able"])
    bounds = list(exam.grades.values())
    assert bounds == sorted(bounds, reverse=True)
    asked = sorted({PLAN[task.question.lesson]["number"] for task in exam.tasks})
    if key.startswith("exam"):
        assert exam.minutes == 90
        assert f"lessons {first:02} to {last}" in exam.title
    else:
        assert exam.minutes == 30
        assert f"(lessons {', '.join(asked[:-1])} and {asked[-1]}):" in exam.title


@pytest.mark.parametrize("key", mocks(TEACH))
def test_parts_of_a_public_question_have_its_points(key: str) -> None:
    for task in read_mock(TEACH, key).tasks:
        question, each = task.question, re.findall(r"\*\*\[(\d+)( each)?\]\*\*", task.question.text)
        parts = len(re.findall(r"^\d\. ", question.text, flags=re.M))
        total = sum(int(points) * ((parts or 2) if more else 1) for points, more in each)
        assert total == question.minutes, question.name
        assert not_plain(question.text, TEACH) == []
        assert not_plain(task.scheme, TEACH) == []
        assert "[[" not in question.text + task.scheme
        lost = r"^\d+\. \d+[.)] "  # a list in a list, whose number the page does not show as an answer
        assert not re.search(lost, question.text + task.scheme, flags=re.M)


@pytest.mark.parametrize("key", mocks(TEACH))
def test_other_numbers_fit_as_well(key: str) -> None:
    told = {str(read_mock(TEACH, key, seed).tasks) for seed in range(12)}
    assert len(told) > 1 or "draw(" not in (TEACH / "mock" / f"{key}.yml").read_text(encoding="utf-8")


def test_a_mock_exam_weighs_lessons_as_the_sealed_exams_do() -> None:
    exams = {each.key: each for each in read_exams(TEACH)}
    sealed, mock = Counter(), Counter()
    for key in ("T", "S"):
        sealed.update({lesson: points / 2 for lesson, _, points in exams[key].asks})
    for task in read_mock(TEACH, "exam_language").tasks:
        mock[task.question.lesson] += task.question.minutes
    assert {*mock} <= {*sealed}
    assert max(abs(mock[lesson] - points) for lesson, points in sealed.items()) <= 2


def test_all_exams_allow_the_same_aids() -> None:
    aids = "One sheet of notes, A4 or Letter and written on both sides, and a calculator without memory"
    rules = [read_mock(TEACH, key).rules for key in LESSONS] + [each.rules for each in read_exams(TEACH)]
    assert all(f" {aids} are allowed." in each for each in rules)
    syllabus = (TEACH / "syllabus.md").read_text(encoding="utf-8")
    assert syllabus.count("a sheet of notes") == syllabus.count("a sheet of notes and a calculator") == 2


def test_no_public_question_is_one_of_the_bank() -> None:
    bank = {each.id for lesson in lessons_with_questions(TEACH) for each in read_questions(TEACH, lesson)}
    public = [task.question.id for key in mocks(TEACH) for task in read_mock(TEACH, key).tasks]
    assert bank.isdisjoint(public)
    assert len(public) == len({*public})


def test_a_scheme_has_the_answer_and_what_wrong_ones_get(folder, capsys) -> None:
    assert run(["mock", "small", "--folder", str(folder)]) == 0
    out, said = capsys.readouterr()
    assert "12 minutes, 4 points. No aids.\n\n**1.** 4 points\n\nWhat is half of 3?" in out
    assert said == "warning: small has 4 points in 12 minutes, where 8 fit\n"
    assert "1.5" not in out
    assert "How to mark" not in out
    assert run(["mock", "small", "--answers", "--folder", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "4 points. No aids.\n\nGrades, as a proposal, by points: good from 4, pass from 3.\n\nHow" in out
    assert "> It is 1.5.\n>\n> - 2 points: the idea" in out
    assert out.index(MARKING) < out.index("**1. ")
    assert "> - *2 of 4:* 6: it is doubled." in out
    assert "draw" not in out  # the code before the answer is not shown
    seeds = {read_mock(folder, "small", seed).tasks[0].scheme for seed in range(12)}
    assert any("It is 3.5." in each and "14: it is" in each for each in seeds)
    words = ["mock", "small", "--answers", "--folder", str(folder), "--seed"]
    schemes = {run([*words, str(seed)]) or capsys.readouterr().out for seed in range(12)}
    assert any("It is 3.5." in each for each in schemes)


def test_a_printed_sheet_has_room_and_no_hint(folder, tmp_path) -> None:
    path, words = tmp_path / "small.html", ["mock", "small", "--folder", str(folder)]
    write(folder, title="A test: of halves: all")
    assert run([*words, "--extra", "50%", "--html", str(path)]) == 0
    head, body = path.read_text(encoding="utf-8").split("</head>")
    assert not re.search(r"<(?:link|img|script[^>]*src)|@import|url\(", head + body)
    assert "<h1>A test</h1>" in body
    assert "18 minutes (12, extended by 50%), 4 points." in body
    assert re.findall(r"<th>(Name|Number|Course|Date|1|Total)</th>", body) == [
        *("Name", "Number", "Course", "Date", "1", "Total")
    ]
    assert "<th>Points</th><td>4</td><td>4</td></tr><tr><th>Reached</th><td></td><td></td>" in body
    assert "<p>What is half of 3?</p>" in body
    assert re.findall(r'class="room" style="min-height: (\d+)mm"', body) == [
        "40",
        "0",
    ]  # the question's, and more
    assert not re.search("1.5|apply|numbers|good|private|mark", body, flags=re.I)
    assert run([*words, "--answers", "--html", str(path)]) == 0
    _, body = path.read_text(encoding="utf-8").split("</head>")
    assert "<p>It is 1.5.</p>" in body
    assert "<h2>Question 1</h2><span>4 points, apply, numbers/half</span>" in body
    assert "good from 4" in body
    assert body.index("<li>A mistake costs its points once") < body.index("What is half")
    assert "room" not in body


def test_printing_needs_the_environment_of_the_book(folder, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert run(["mock", "small", "--folder", str(folder), "--html", str(tmp_path / "small.html")]) == 2
    assert "--html needs the environment of the book, requirements.txt: No" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["mock", "exam"], ["mock", "exam_today"], ["exam", "A"]], ids=" ".join)
def test_a_browser_prints_a_page_for_each_question(browser, tmp_path, words: list[str]) -> None:
    path = tmp_path / "sheet.html"
    assert run([*words, "--folder", str(TEACH), "--html", str(path)]) == 0
    page, complaints = visit(browser, path)
    assert page.locator("mjx-container").count() > 10
    assert page.locator("mjx-merror").count() == 0
    assert not re.search(r"\$|\\\(|\*\*", page.locator("body").inner_text())
    questions = page.locator("h2").count()
    for size in ("A4", "Letter"):
        printed = page.pdf(format=size)
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1 + questions  # and the cover
    assert complaints == []
    page.context.close()


def test_a_class_gets_a_test_without_what_it_did_not_read(capsys) -> None:
    words = ["mock", "test_1", "--folder", str(TEACH)]
    assert run([*words, "--without", "1"]) == 0
    told = capsys.readouterr().out
    assert "\n24 minutes, 15 points." in told
    assert "LSTM" not in told
    assert run([*words, "--without", "5"]) == 2
    assert "test_1: expected some of its questions 1 to 4" in capsys.readouterr().err


def test_a_table_of_marks_tells_what_it_lacks(tmp_path, capsys) -> None:
    words = ["mock", "test_1", "--folder", str(TEACH), "--marks", str(tmp_path / "marks.csv")]
    roster = tmp_path / "roster.csv"
    roster.write_text("Full name,Email\nAda,a@x.org\nBo,b1@x.org\nBo,b2@x.org\nCy,\n", encoding="utf-8")
    assert run([*words, "--without", "1", "--roster", str(roster)]) == 0
    table = (tmp_path / "marks.csv").read_text(encoding="utf-8")
    assert [line.partition(",")[0] for line in table.splitlines()[2:]] == [
        "Ada",
        "b1@x.org",
        "b2@x.org",
        "Cy",
    ]
    filled = (
        table.replace("Ada,,,", "Ada,1,,2")
        .replace("b1@x.org,", "b1@x.org,ill")
        .replace("Cy,,,", "Cy,1,0.5,2")
    )
    (tmp_path / "marks.csv").write_text(filled, encoding="utf-8")
    capsys.readouterr()
    assert run([*words, "--without", "1"]) == 0
    told = [line.rpartition(",")[2] for line in capsys.readouterr().out.splitlines()]
    assert told == ["points", "incomplete: 2", "ill", "absent", "3.5"]
    assert run(words) == 2
    assert "was it written with another --without?" in capsys.readouterr().err
    assert run([*words[:4], "--roster", str(roster)]) == 2
    assert "expected --marks FILE.csv with --roster" in capsys.readouterr().err


def test_what_a_sheet_says_is_text(folder, tmp_path) -> None:
    write(folder, title="a < b", rules="Books < 2 & pens.", text="Is [[3 = x]] < 4 <b>here</b>, $a < b$?")
    path = tmp_path / "small.html"
    assert run(["mock", "small", "--folder", str(folder), "--html", str(path)]) == 0
    page = path.read_text(encoding="utf-8")
    assert "<title>a &lt; b</title>" in page
    assert "Books &lt; 2 &amp; pens. Write your number on each sheet." in page
    assert r"Is 3 &lt; 4 &lt;b&gt;here&lt;/b&gt;, \(a &lt; b\)?" in page


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"code": "x = 4\n"}, "states 3, but x is 4"),
        ({"wrong": [[2, "[[5 = 2 * x]]: doubled."]]}, "states 5, but 2 \\* x is 6"),
        ({"answer": "It is 1.5.\n\n- 3 points: all\n"}, "expected 4 points in its list, got 3"),
        ({"wrong": [[4, "None."]]}, "half: expected fewer points than 4, got 4"),
        ({"wrong": []}, "half: expected common wrong answers, got none"),
        ({"text": "word " * 401}, "numbers/half: expected at least 4.5 minutes, as its question is read"),
        ({"kind": "guess"}, "a kind of recall"),
    ],
)
def test_a_wrong_public_question_is_refused(folder, changes, message) -> None:
    write(folder, **changes)
    with pytest.raises(ValueError, match=message):
        read_mock(folder, "small")


def test_an_exam_without_reserve_is_refused(folder) -> None:
    write(folder, minutes=4)
    with pytest.raises(ValueError, match=r"small: expected at most 2 points in 4 minutes .* got 4"):
        read_mock(folder, "small")


@pytest.mark.parametrize(("minutes", "extra", "longer"), [(90, 10.0, 99), (30, 25.0, 38)])
def test_an_extended_time_is_rounded_up_once(minutes: int, extra: float, longer: int) -> None:
    sheet = Sheet("a", "A", minutes, "", {}, (), 0, extra=extra)  # 90 * 1.1 is a little more than 99
    assert sheet.time == f"{longer} minutes ({minutes}, extended by {extra:g}%)"


def test_an_unknown_public_exam_is_named(folder) -> None:
    with pytest.raises(ValueError, match=r"expected a public exam \(small\), got 'large'"):
        read_mock(folder, "large")
