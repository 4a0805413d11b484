"""What `make moodle` writes: question banks that parse, each vote with the right letter of its lesson."""

import base64
import html
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import moodle
import pytest
import yaml
from notes import ASK, read_notes
from plans import planned, read_plans

from exformer_lessons.teacher.mock import mocks, read_mock
from exformer_lessons.teacher.questions import lessons_with_questions, read_questions, titles

ROOT = Path(__file__).parents[2]
TEACH = ROOT / "book" / "teach"
LESSONS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))


@pytest.fixture(scope="module")
def banks(tmp_path_factory):
    """Write all banks; return their questions by category."""
    folder = tmp_path_factory.mktemp("moodle")
    moodle.main([], folder)
    found = {}
    for path in folder.glob("*.xml"):
        for each in ElementTree.parse(path).getroot():
            if each.get("type") == "category":
                name = each.findtext("category/text").removeprefix("$course$/The Executable Transformer/")
                own = found[name] = []
            else:
                own.append(each)
    return found


def right_options(question):
    """Return the options that are right, of a question where each is right or wrong and one can be chosen."""
    assert question.findtext("single") == "true"
    options = question.findall("answer")
    assert {each.get("fraction") for each in options} == {"100", "0"}
    assert len({each.findtext("text") for each in options}) == len(options) > 1
    return [each.findtext("text") for each in options if each.get("fraction") == "100"]


@pytest.mark.parametrize("path", LESSONS, ids=[path.stem for path in LESSONS])
def test_votes_are_the_predictions_with_their_letters(banks, path):
    slug = path.stem[3:]
    votes = banks[f"Votes/{titles(TEACH)[slug]}"]
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    prose = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    predictions = re.findall(r"^> \*\*(?:Predict|Break it)\.\*\*(?:.|\n>)*?\(a\)", prose, flags=re.M)
    assert len(votes) == len(predictions)  # none is left out
    letters = ASK.findall(read_notes(ROOT)[slug])
    for vote, letter in zip(votes, letters, strict=True):
        [right] = right_options(vote)
        assert right.startswith(f"({letter})")
        said = vote.findtext("generalfeedback/text")
        assert re.match(rf"<p>(It|The answer) is \({letter}\)", said)
        assert re.search(r"[.!?][*\")]*(</\w+>)*</p>$", said), said
        letters = "".join(each.findtext("text")[:3] for each in vote.findall("answer"))
        assert "(a)(b)(c)(d)".startswith(letters)
        told = {each.get("fraction") for each in vote.findall("answer") if each.findtext("feedback/text")}
        assert told == {"0"}  # the notes expect a wrong one, and say why


def test_letters_in_a_picture_bring_their_picture(banks):
    files = {}
    for vote in (each for name, found in banks.items() if name.startswith("Votes") for each in found):
        for file in vote.iter("file"):
            assert f'src="@@PLUGINFILE@@/{file.get("name")}"' in vote.findtext("questiontext/text")
            files[vote.findtext("name/text")] = base64.b64decode(file.text).decode()
    assert [*files] == ["10.1 Predict", "11.1 Predict"]
    assert all(ElementTree.fromstring(svg).tag.endswith("svg") for svg in files.values())


def test_the_pretest_has_the_answers_of_its_page(banks):
    page = (TEACH / "first_class.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \| .+ \|$", page.partition("## What ")[0], flags=re.M)
    for question, (number, answer, mistake) in zip(banks["Pre-test"], rows, strict=True):
        assert question.findtext("name/text") == f"Pre-test {number}"
        assert len(question.findall("answer")) == 4
        assert right_options(question) == [moodle.MARKDOWN.renderInline(answer)]
        told = question.findall("answer")[1].findtext("feedback/text")
        assert told.startswith(f"{moodle.MARKDOWN.renderInline(mistake)}. Repeat: ")
    code = '<pre><code class="language-python">w = torch.tensor('
    assert code in banks["Pre-test"][9].findtext("questiontext/text")


def test_the_six_statements_have_the_verdicts_of_the_ledger(banks):
    page = (TEACH / "first_class.md").read_text(encoding="utf-8")
    keys = re.findall(r"^- .+ \[(\w+)\]\(\.\./claims\.md#\1\)$", page, flags=re.M)
    rows = {row["id"]: row for row in yaml.safe_load((TEACH.parent / "claims.yml").read_text("utf-8"))}
    assert len(keys) == 6
    for question, key in zip(banks["What a course changes"], keys, strict=True):
        assert question.findtext("name/text") == f"Statement {key}"
        [right] = right_options(question)
        assert right == moodle.VERDICTS[rows[key]["verdict"]]
        told = html.unescape(question.findtext("generalfeedback/text"))
        assert told.startswith(f"<p>{right}")
        assert rows[key].get("clause", "") in told
    root_of_width = banks["What a course changes"][2]
    assert root_of_width.findtext("questiontext/text") == (
        r"<p>Scores are divided by \(\sqrt{d_k}\) because that is their variance.</p>"
    )


def test_tests_and_mock_exams_have_their_schemes_for_graders(banks):
    for key in mocks(TEACH):
        exam = read_mock(TEACH, key)
        found = banks[f"Tests and mock exams/{exam.title}"]
        assert sum(int(each.findtext("defaultgrade")) for each in found) == exam.points
        for question, task in zip(found, exam.tasks, strict=True):
            assert question.get("type") == "essay"
            assert question.find("graderinfo").get("format") == "html"
            scheme = question.findtext("graderinfo/text")
            assert "Common wrong answers" in scheme
            assert re.search(r"<li>\d+ points?: ", scheme)
            assert "Common wrong answers" not in question.findtext("questiontext/text")
            assert 'href="' not in scheme + question.findtext("questiontext/text")
            assert question.find("answer") is None
            assert question.findtext("defaultgrade") == str(task.question.minutes)


def test_questions_are_essays_of_their_minutes(banks):
    for slug in lessons_with_questions(TEACH):
        ours = read_questions(TEACH, slug)
        for question, each in zip(banks[f"Questions/{titles(TEACH)[slug]}"], ours, strict=True):
            assert question.get("type") == "essay"
            assert question.findtext("name/text").startswith(each.name)
            assert question.findtext("defaultgrade") == str(each.minutes)
            assert question.find("answer") is question.find("graderinfo") is None


def test_formulas_and_links_are_rendered(banks):
    texts = [text.text or "" for found in banks.values() for each in found for text in each.iter("text")]
    assert sum(r"\(" in text for text in texts) > 100
    rest = [re.sub(r"<code>.*?</code>|<pre>.*?</pre>|alt=\".*?\"", "", text, flags=re.S) for text in texts]
    rest = [re.sub(r"\\\(.*?\\\)", "", text) for text in rest]
    assert [text for text in rest if re.search(r"\$|\]\(|\*\*|\|\n", text)] == []


@pytest.mark.parametrize(
    ("note", "wanted"),
    [
        ("Expect (b). It is near. Ask why.", {"b": "We expect this answer. It is near."}),
        ("Expect (a) or (c): so; ask why.", dict.fromkeys("ac", "We expect this answer: so.")),
        ("Expect (c) from a few.", {"c": "We expect this answer from a few."}),
        ("Draw the ring.", {}),
    ],
)
def test_what_notes_tell_students(note, wanted):
    assert moodle.expected(f"- Predict (d). {note}") == wanted


PAGES = {name: plan for each in read_plans(ROOT) for name, plan in moodle.versions(each["key"]).items()}


@pytest.mark.parametrize("name", PAGES)
def test_the_weeks_of_a_plan_are_ready_to_paste(name):
    plan, page = PAGES[name], moodle.weeks(PAGES[name])
    sections = page.split("<h3>")[1:]
    assert len(sections) == len(plan["rows"])
    for number, (section, row) in enumerate(zip(sections, plan["rows"], strict=True), 1):
        found = [html.unescape(re.sub("<[^>]+>", "", each)) for each in re.findall("<li>(.+?)</li>", section)]
        items = [each.removesuffix(" Notebook, slides.") for each in found]
        assert items == moodle.week(plan, number)
        assert sum(map(len, found)) - sum(map(len, items)) == len(" Notebook, slides.") * len(row["order"])
        told = "\n".join(items)
        taught = [each["number"] for each, _ in row["order"]]
        assert re.findall(r"^Lesson (\d+), ", told, flags=re.M) == taught
        assert re.findall(r"read lesson (\d+)", told) == [each["number"] for each in row["before"]]
        assert ("Exercises in class" in told) == (f"Exercises in class: {row['here']}\n" in f"{told}\n")
        assert bool(row["there"]) == (f": exercises {row['there']}" in told)
    due = re.findall(r"Assignment (\w+): handed out, due in \w+ (\d+)", page)
    dates = sorted(plan["assignments"].items(), key=lambda each: each[1])
    assert due == [(name, str(last)) for name, (_, last) in dates]
    for assignment, (_, last) in dates:
        assert f"Assignment {assignment}: due<" in sections[last - 1]
        assert f"Assignment {assignment}: conversations<" in sections[last]


def test_students_see_the_challenge_or_what_is_in_its_place():
    pages = {name: moodle.weeks(plan) for name, plan in moodle.versions("language-14-180").items()}
    assert [*pages] == ["language-14-180", "language-14-180-tuning"]
    both = ["Assignment tuning" in page for page in pages.values()]
    assert (both, ["challenge" in page for page in pages.values()]) == ([False, True], [True, False])
    assert "posters" not in pages["language-14-180-tuning"].lower()


def test_a_test_says_what_the_class_leaves_out():
    page = moodle.weeks(PAGES["language-14-180"])
    assert page.count("test, without question 1<") == 2
    assert moodle.without([1, 3]) == ", without questions 1, 3"


def test_a_lesson_of_a_week_leads_to_the_book(monkeypatch):
    monkeypatch.setenv("BOOK_REPOSITORY_URL", "git@github.com:ada/lessons.git")
    found = re.findall('href="([^"]+)"', moodle.weeks(PAGES["language-14-90"]).partition("<h3>Week 2")[0])
    book, first, second = "https://ada.github.io/lessons", "03_self_attention", "04_multi_head_attention"
    before = ("01_recurrence", "10_language_model", "02_first_attention")
    assert found == [
        f"{book}/notebooks/{first}.html",
        f"{book}/_sources/notebooks/{first}.ipynb",
        f"{book}/_static/slides/{first}.html",
        *(f"{book}/notebooks/{name}.html" for name in before),
    ]
    read = moodle.linked("For the next week: read lesson 04, Heads", book, {"04": second})
    assert read == f'For the next week: read <a href="{book}/notebooks/{second}.html">lesson 04</a>, Heads'
    monkeypatch.setenv("BOOK_REPOSITORY_URL", "https://gitlab.com/ada/lessons")
    assert 'href="https://OWNER.github.io/NAME/notebooks/' in moodle.weeks(PAGES["half-8-90"])


@pytest.mark.parametrize("key", [plan["key"] for plan in read_plans(ROOT)])
def test_students_read_in_time_what_replaces_a_lesson(key):
    plan, told, known = planned(ROOT, key), [], set()
    for number, row in enumerate(plan["rows"], 1):
        told += re.findall(r"^In place of lesson (\d+), (.+?): ", "\n".join(moodle.week(plan, number)), re.M)
        known |= {n for n, _ in told}
        for lesson in (*row["lectured"], *row["before"]):
            left = {each["number"] for each, _ in plan["told"] if each["slug"] in lesson["after"]}
            assert left <= known, lesson["slug"]
    assert sorted(told) == [(each["number"], each["title"]) for each, _ in plan["told"]]  # once
    if key == "today-14-90":  # lesson 08 is homework of week 4
        assert "In place of lesson 07, " in str(moodle.week(plan, 4))


def test_a_meeting_of_ones_own_has_its_title():
    plan = planned(ROOT, "core-14-90")
    row = plan["rows"][0] | {"order": [], "own": "Tagging"}
    assert moodle.week(plan | {"rows": [row, *plan["rows"][1:]]}, 1)[0] == "Tagging"


def test_slashes_do_not_split_a_category():
    bank = ElementTree.Element("quiz")
    moodle.begin(bank, "a/b")
    assert bank.findtext("question/category/text").endswith("Transformer/a//b")
