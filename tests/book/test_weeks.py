"""Plans week by week: minutes add up, tests come after their lessons, and what does not work is refused."""

import re
from pathlib import Path

import homework
import pytest
import workload
import yaml
from course import HTML, SLACK, meeting, written
from notes import MINUTES, read_notes, timed
from plans import (
    CHALLENGE,
    LAB,
    LAB_EXERCISES,
    NUMBERS,
    bundles,
    overview,
    plan_of,
    read_plans,
    told_in_place,
    work,
)

ROOT = Path(__file__).parents[2]
KEYS = [plan["key"] for plan in read_plans(ROOT)]


@pytest.fixture(scope="module")
def plans():
    """Give all plans of the book."""
    return {key: plan_of(ROOT, key) for key in KEYS}


@pytest.fixture
def book(tmp_path):
    """Give the book with other plans."""
    (tmp_path / "book").mkdir()
    for name in ("notebooks", "book/lessons.yml", "book/teach"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def plan_with(book, *meetings, minutes=90, **more):
    """Return a plan of these meetings."""
    row = {"key": "k", "title": "T", "meeting": minutes, "meetings": [*meetings]} | more
    (book / "book" / "courses.yml").write_text(yaml.safe_dump([row]), encoding="utf-8")
    return plan_of(book, "k")


def test_there_is_a_plan_for_each_length():
    sizes = {(way, 14, minutes) for way in ("core", "today", "language") for minutes in (90, 180)}
    sizes |= {("all", 28, 90), ("half", 8, 90), ("nlp", 8, 90), ("nlp", 8, 180), ("today", 12, 75)}
    assert {tuple(int(part) if part.isdigit() else part for part in key.split("-")) for key in KEYS} == sizes
    shown = str(HTML.plans(overview(ROOT)))
    assert sorted(re.findall(r'href="teach/plans.html#plan-([\w-]+)"', shown)) == sorted(KEYS)
    page = (ROOT / "book" / "teach" / "plans.md").read_text(encoding="utf-8")
    assert re.findall(r"^```\{weeks\} (\S+)(?: open)?$", page, flags=re.M) == KEYS
    assert page.count("{weeks} core-14-90 open") == page.count(" open\n") == 1
    assert "<details open><summary>" in str(HTML.weeks(plan_of(ROOT, KEYS[0]), "open"))
    assert "<details><summary>" in str(HTML.weeks(plan_of(ROOT, KEYS[0])))


@pytest.mark.parametrize("key", KEYS)
def test_the_minutes_of_a_week_add_up(plans, key):
    plan = plans[key]
    _, meetings, minutes = key.split("-")
    assert (len(plan["rows"]), plan["meeting"] + plan["tutorial"]) == (int(meetings), int(minutes))
    for row in plan["rows"]:
        parts = [row[name] for name in ("lecture", "votes", "test", "challenge", "exercises", "slack")]
        assert sum(parts) == plan["meeting"]
        assert row["slack"] >= 10
        least = 20 if plan["meeting"] == 90 else 10
        assert row["exercises"] >= (least if row["lectured"] or row["read"] or row["tests"] else 0)
        if held := row["tutorial"]:
            spent = [held[name] for name in ("on_board", "on_sheet", "on_lab", "slack")]
            assert sum(spent) + sum(test["minutes"] for test in held["tests"]) == plan["tutorial"]
            assert held["slack"] >= 10
    shown = str(HTML.weeks(plan))
    for table in shown.split("<table>")[1:]:
        head, *rows = table.split("<tr>")[1:]
        assert len(rows) == len(plan["rows"]) + ("homework" in head)  # and the exam
        assert all(len(re.findall("<t[hd][ >]", row)) == head.count("<th ") for row in rows)
    assert ("#plans-told" in shown) == (key.split("-")[0] not in ("core", "all"))
    once = plan["a_week"] == 1
    assert ('class="words">week</th>' in shown, 'class="words">meeting</th>' in shown) == (once, not once)
    assert (", 2 a week</summary>" in shown) == (not once)
    assert (", with a tutorial</summary>" in shown) == (minutes == "180")


@pytest.mark.parametrize("key", KEYS)
def test_the_challenge_has_its_place_in_a_long_term(plans, key):
    every = [[words for words, *_ in row["steps"]] for row in plans[key]["rows"]]
    steps = every[plans[key]["a_week"] - 1 :: plans[key]["a_week"]]  # the last meeting of each week
    assert sum(map(len, every)) == sum(map(len, steps))
    wanted = [[step[0]] for step in CHALLENGE.values()] if len(steps) == 14 else [[]] * 4
    assert len(steps) in (6, 8, 14)
    assert steps == [[]] * (len(steps) - 4) + wanted
    homework = (ROOT / "book" / "teach" / "doubt.md").read_text(encoding="utf-8")
    at_home = [int(found) for found in re.findall(r"\| (\d+) at home", homework)]
    found = re.findall(r"\| (?:(\d) × )?(\d+) \|$", homework, flags=re.M)
    in_class = [int(times or 1) * int(minutes) for times, minutes in found]
    assert at_home == [minutes for *_, minutes in CHALLENGE.values() if minutes]
    assert sum(in_class) == sum(minutes for _, minutes, *_ in CHALLENGE.values())


def named(words):
    """Return the exercises that words of a plan name."""
    found, lesson = set(), ""
    for part in re.split("[;,] ", words):
        whole = re.fullmatch(r"(?:(\d+)(?:\.| (?=on)))?(?:on paper\u00a0)?(\d)(?:–(?:\d+\.)?(\d))?", part)
        lesson = whole[1] or lesson
        kind = "paper " if "paper" in part else ""
        found |= {f"{lesson}.{kind}{n}" for n in range(int(whole[2]), int(whole[3] or whole[2]) + 1)}
    return found


@pytest.mark.parametrize("key", KEYS)
def test_each_exercise_has_its_place_and_none_is_made_up(plans, key):
    rows = plans[key]["rows"]
    starts = homework.starts_of(ROOT)
    for lesson in (lesson for row in rows for lesson, _ in row["order"]):
        number = f"{int(lesson['number'])}."
        wanted = homework.exercises_of(ROOT, lesson, starts)
        assert len(wanted) == (5 if number in ("14.", "20.") else 6)
        cells = [row[name] for row in rows for name in ("here", "there") if row[name] != "of the lab"]
        told = [each for words in filter(None, cells) for each in named(words) if each.startswith(number)]
        assert sorted(told) == sorted(wanted)
    home = sum(row["minutes"] for row in rows)
    assert abs(plans[key]["home"] - home / 60) <= 0.5


def test_what_is_caught_up_is_no_homework(book):
    one, two, last = plan_with(book, "recurrence", "first_attention", "catch up")["rows"]
    alone, _ = plan_with(book, "recurrence", "first_attention")["rows"]
    assert (alone["there"], alone["home"]) == ("1.3–1.6", 50)
    assert (one["there"], two["there"], last["here"]) == ("1.3", "2.3", "1.4–1.6; 2.4–2.6")
    assert one["home"] == two["home"] == round(50 / 4)
    assert (last["exercises"], last["slack"]) == (75, 15)


def test_a_plan_of_all_lessons_has_tests_and_time(plans):
    rows = plans["all-28-90"]["rows"]
    lectured = [" ".join(lesson["slug"] for lesson in row["lectured"]) for row in rows]
    assert [*filter(None, lectured)] == [lesson["slug"] for lesson in written(ROOT)]
    tests = [(test["name"], test["without"]) for row in rows for test in row["tests"]]
    assert tests == [("test_1", []), ("test_2", []), ("test_3", []), ("test_4", [])]
    free = [row["exercises"] for row in rows if row["catch"]]
    assert len(free) == 6  # as the page says
    assert min(free) >= 45


def test_plans_with_a_tutorial_or_all_lessons_have_the_lab(plans):
    with_lab = {key for key, plan in plans.items() if plan["lab"]}
    others = {"all-28-90", "language-14-90"}
    assert with_lab == {key for key, plan in plans.items() if plan["tutorial"]} | others
    assert "Lab: answers from texts" in str(HTML.topics(plans["language-14-90"]))
    lab = (ROOT / "notebooks" / "labs" / "island.ipynb").read_text(encoding="utf-8")
    notes = (ROOT / "book" / "teach" / "notes.md").read_text(encoding="utf-8").partition("(lab-notes)=")[2]
    assert f"The lab takes {LAB} minutes, and as long for the exercises" in lab
    assert f"takes {LAB} minutes, six for two votes, and {LAB_EXERCISES}" in notes


@pytest.mark.parametrize("key", KEYS)
def test_lessons_come_in_their_order_or_the_plan_says_why(plans, key):
    numbers = [lesson["number"] for row in plans[key]["rows"] for lesson, _ in row["order"]]
    assert (numbers == sorted(numbers)) != bool(plans[key]["order"])


def test_plans_are_listed_by_course_with_their_hours(plans):
    shown_as = str(HTML.plans(overview(ROOT)))
    head, *rows = shown_as.split("<tr>")[1:]
    assert (
        re.sub("&shy;|<[^>]+>", "", head).split("\n")[-1].strip()
        == "examassignments, examproject, examall three"
    )
    heads = [re.findall(r"#plan-([\w-]+)", row) for row in rows]
    assert [key for keys in heads for key in keys] == KEYS
    shown, group = {}, []
    for row, keys, before in zip(rows, heads, [[], *heads], strict=False):
        if keys:  # a course, whose hours stand below it, or below the next
            group = [*(group if before else []), *keys]
            continue
        for key in group:
            if f">{plans[key]['size']}<" in row:
                shown[key] = row
    assert {*shown} == {*KEYS}
    assert len({shown[f"{way}-14-90"] for way in ("core", "today", "language")}) == 1
    assert ">To today&#39;s models<" in shown["today-12-75"]
    for key, row in shown.items():
        plan = plans[key]
        cells = [re.match(r"\d+|–", cell)[0] for cell in row.split("<td>")[1:]]
        challenge = round(sum(minutes for each in plan["rows"] for *_, minutes in each["steps"]) / 60)
        graded = plan["total"] - challenge
        hours = [graded - plan["assigned"], graded if plan["assignments"] else "–"]
        timely = plan["challenge"] or plan["small"]
        hours += [plan["longer"], plan["both"]] if timely else ["–", "–"]
        assert cells == [*map(str, hours)]
        assert f'{key}">{plan["size"]}</a>' in shown_as
        assert f"""{plan["counts"]["exam"][1].replace(" to ", "–")}</span>""" in row
    assert plans["today-12-75"]["project"] == 23
    (core,) = (row for row in rows if ">The core: <" in row)
    assert "lessons 01–13; exam: N; resit: C" in core
    assert "<i>gradients</i>\xa03–6" in str(HTML.weeks(plans["core-14-90"])).replace("&nbsp;", "\xa0")
    assert "No assignment fits" in str(HTML.weeks(plans["half-8-90"]))
    assert [key for key in KEYS if not plans[key]["assignments"]] == ["half-8-90"]


def test_teach_says_what_the_numbers_of_its_table_are(plans):
    page = (ROOT / "book" / "teach.md").read_text(encoding="utf-8")
    legend = page.partition("## Choose a plan\n\n")[2].partition("\n\n")[0]
    assert len(re.sub(r"\]\([^)]*\)", "]", legend).split()) <= 60
    at_home = sum(minutes for *_, minutes in CHALLENGE.values())
    assert (round(at_home / 60), "adds five hours" in legend) == (5, True)
    about = [meeting(ROOT, each, flipped=False) for each in written(ROOT)]
    spent = [each["lecture"] + each["votes"] for each in about]
    assert f"take {min(spent)} to {max(spent)} minutes" in legend
    assert max(spent) + homework.AT_LEAST + SLACK <= 75
    assert "with 75 most exercises are homework" in legend
    rows = plans["today-12-75"]["rows"]
    kept = sum(row["exercises"] for row in rows if row["lectured"])
    assert kept < 80 / 2 * sum(len(row["lectured"]) for row in rows)


@pytest.mark.parametrize(
    ("dates", "message"),
    [
        ([2, 4], "gradients is handed out before self_attention"),
        ([3, 4], "gradients: expected 2 weeks at least, got meetings 3 to 4"),
        ([4, 6], "gradients is due at meeting 6, and no week is left to explain it"),
    ],
)
def test_an_assignment_that_does_not_fit_is_refused(book, dates, message):
    lessons = ("recurrence", "first_attention", "self_attention", "multi_head_attention")
    with pytest.raises(ValueError, match=message):
        plan_with(book, *lessons, "catch up", "catch up", assignments={"gradients": dates})


def test_what_is_read_is_homework_of_the_week_before(book):
    first, second = plan_with(book, "recurrence", "read first_attention")["rows"]
    assert [lesson["slug"] for lesson in first["before"]] == ["first_attention"]
    assert first["minutes"] == 80 - first["exercises"] + second["read"][0]["minutes"]
    assert second["lecture"] == 0
    assert second["votes"] == 3 * 5 + 10


def test_questions_on_what_was_left_out_are_dropped(book):
    lessons = ("self_attention", "multi_head_attention", "positional_encoding", "transformer_layer")
    told = {"first_attention": "a sentence"}
    rows = plan_with(book, *lessons, "test_1 + catch up", without=told)["rows"]
    assert rows[-1]["tests"] == [{"name": "test_1", "title": "First test", "without": [1], "minutes": 24}]
    assert (rows[-1]["exercises"], rows[-1]["slack"]) == (50, 16)  # four exercises do not fill 55


def test_a_long_meeting_leaves_less_for_home(book):
    (short,), (long,) = (
        plan_with(book, "recurrence")["rows"],
        plan_with(book, "recurrence", minutes=120)["rows"],
    )
    assert short["exercises"] < long["exercises"] == homework.AT_MOST
    assert (short["here"], short["there"]) == ("1.1–1.2", "1.3–1.6")
    assert (long["here"], long["there"]) == ("1.1–1.3", "1.4–1.6")


@pytest.mark.parametrize(
    ("meetings", "minutes", "message"),
    [
        (["self_attention"], 90, "self_attention builds on first_attention"),
        (["recurrence", "test_1 + catch up"], 90, "test_1 has 5 points on lessons that came before"),
        (["recurrences"], 90, "a lesson, a test, a step, lab, catch up or own TITLE, got 'recurrences'"),
        (["read nothing"], 90, "a lesson, a test, a step, lab, catch up or own TITLE, got 'read nothing'"),
        (["recurrence"], 65, "16 minutes are left for exercises and slack, fewer than 20"),
    ],
)
def test_a_plan_that_does_not_work_is_refused(book, meetings, minutes, message):
    with pytest.raises(ValueError, match=message):
        plan_with(book, *meetings, minutes=minutes)


def test_a_plan_of_ones_own_is_refused_as_the_page_says(book):
    page = (ROOT / "book" / "maintaining.md").read_text(encoding="utf-8").partition("(plans-own)=")[2]
    row = re.search(r"```yaml\n(.+?)```", page, flags=re.S)[1]
    courses = book / "book" / "courses.yml"
    before = (ROOT / "book" / "courses.yml").read_text(encoding="utf-8")
    courses.write_text(f"{before}\n{row}", encoding="utf-8")
    key = read_plans(book)[-1]["key"]
    shown = str(HTML.plans(overview(book)))
    hours = plan_of(book, key)["counts"]["assignments"][0]
    assert f"{hours} hours with assignments and exam" in page
    assert f"<td>{hours}<" in shown.partition(f"#plan-{key}")[2]
    assert all("T; resit: S (not 5)" in each for each in (page, shown, str(HTML.weeks(plan_of(book, key)))))
    refused = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| (\w.+) \|$", page, flags=re.M)
    assert len(refused) == 4
    for old, new, message in refused:
        assert row.count(old) == 1
        courses.write_text(f"{before}\n{row.replace(old, new)}", encoding="utf-8")
        with pytest.raises(ValueError, match=f"plan {key}: {re.escape(message)}"):
            plan_of(book, key)


def test_a_meeting_of_ones_own_takes_the_time_that_is_left(book):
    plan = plan_with(book, "recurrence", "own Tagging + choose", "catch up")
    row = plan["rows"][1]
    assert (row["own"], row["exercises"], row["slack"]) == ("Tagging", 0, 10)
    assert row["lecture"] + row["challenge"] == 80
    assert plan["rows"][2]["exercises"] > 0  # those of lesson 01 wait for the meeting after
    assert "Tagging<br>" in str(HTML.weeks(plan))
    assert "<li>Tagging; groups choose a claim</li>" in str(HTML.topics(plan))
    with pytest.raises(ValueError, match="10 minutes are left for exercises and slack, fewer than 20"):
        plan_with(book, "own Tagging + recurrence")


def test_an_unknown_plan_is_named(book):
    plan_with(book, "recurrence")
    with pytest.raises(ValueError, match=r"expected a plan of courses.yml \(k\), got 'l'"):
        plan_of(book, "l")


def test_neighbors_are_joined():
    assert homework.exercise_list(["18.2", "18.1", "18.3", "18.6"]) == "18.1–18.3, 18.6"
    assert homework.exercise_list(["3.2", "3.paper 1", "3.paper 2"]) == "3.2, on paper\u00a01–2"
    assert homework.exercise_list(["3.paper 2"]) == "3 on paper\u00a02"
    assert homework.exercise_list([]) == ""


def test_hours_add_up_to_credits(plans):
    for key, plan in plans.items():
        _, meetings, minutes = key.split("-")
        assert plan["class"] == round(int(meetings) * int(minutes) / 60)
        parts = ("class", "home", "again", "assigned", "exam_hours")
        assert plan["total"] == sum(plan[name] for name in parts)
        least, most = (float(number) for number in plan["credits"].split(" to "))
        assert abs(30 * least - plan["total"]) <= 1.5
        assert abs(25 * most - plan["total"]) <= 1.25


def test_a_long_plan_has_a_mock_exam_of_its_own(plans):
    for key, plan in plans.items():
        own = {"today": "exam_today", "all": "exam_today", "language": "exam_language"}
        assert plan["exam"]["name"] == own.get(key.split("-")[0], "exam")
        if len(plan["rows"]) > 8:
            assert not plan["exam"]["without"]
    page = (ROOT / "book" / "teach" / "mock.md").read_text(encoding="utf-8")
    found = re.findall(r"\(#mock-([\w-]+)\)|\*(.+?)\*", page.partition("**Students:**")[0])
    fits, exam = {}, ""
    for name, course in found:
        exam = name.replace("-", "_") or exam
        fits |= {course: exam} if course else {}
    assert fits == {plan["title"]: plan["exam"]["name"] for plan in plans.values()}
    shown = str(HTML.weeks(plans["half-8-90"]))
    assert '<a href="mock.html#mock-exam">mock exam</a> without questions 1, 6, 8</td>' in shown
    assert f"before it {plans['half-8-90']['exam']['minutes']}:" in shown
    assert '<th scope="row">exam</th><td class="words lesson">D; resit: G</td>' in shown
    assert plans["today-12-75"]["exam"]["name"] == "exam_today"


def test_the_syllabus_has_the_weeks_of_its_plans(plans):
    text = (ROOT / "book" / "teach" / "syllabus.md").read_text(encoding="utf-8")
    parts = dict(part.split(")=\n", 1) for part in text.split("\n(syllabus-")[1:])
    asked = re.findall(r"\{weeks\} ([\w-]+) short", text)
    assert asked == KEYS
    for key in asked:
        course, meetings, _ = key.split("-")
        assert f"{{weeks}} {key} short" in parts["weeks"]
        plan, topics = plans[key], str(HTML.topics(plans[key]))
        assert topics.count("<li>") == int(meetings)
        assert "without question" not in topics
        assert f"<summary>{plan['title']}: {plan['size']}<".replace("'", "&#39;") in topics
        held = [part for row in plan["rows"] if row["tutorial"] for part in row["tutorial"]["tests"]]
        assert topics.count("; in the tutorial: ") == len(held) + bool(plan["tutorial"])  # and the lab
        assert len(held) == (0 if not plan["tutorial"] else 3 if course == "today" else 2)
    assert len(parts["both"].split()) <= 500  # a page
    tests = {key: sum(len(row["tests"]) for row in plans[key]["rows"]) for key in asked if key.endswith("90")}
    assert tests == dict.fromkeys(tests, 2) | {"all-28-90": 4, "half-8-90": 1}


def test_equal_hours_have_one_row(plans):
    found = work(ROOT)
    assert sum(len(titles) for *_, titles in found) == len(KEYS)
    assert len(found) == len({(size, hours) for size, hours, *_ in found}) == 7
    assert found[0][3] == [plans[f"{way}-14-90"]["title"] for way in ("core", "today", "language")]
    for plan in plans.values():
        ((*hours, total),) = (
            hours for size, hours, _, titles in found if size == plan["size"] and plan["title"] in titles
        )
        assert (sum(hours), total) == (plan["total"], plan["total"])
        shown = f"<td>{total}</td><td>{plan['credits'].replace(' to ', '–')}</td>"
        assert shown in str(HTML.work(found))


def test_half_of_an_nlp_course_says_what_it_leaves(plans, book):
    page = (ROOT / "book" / "teach" / "plans.md").read_text(encoding="utf-8").partition("(plans-nlp)=")[2]
    plan = plans["nlp-8-180"]
    assert round((plan["total"] - plan["exam_hours"]) / 8) == 6
    assert "hours are six a week" in page
    assert f"6 ECTS leave {6 * 25 - plan['total']} to {6 * 30 - plan['total']} for" in page
    rows = {each["key"]: each for each in read_plans(ROOT)}
    assert "read 12 and 13 for meeting 7 and 15 for meeting 8" in page
    swapped = [*rows["nlp-8-90"]["meetings"][:6], "read masked_language_model + read tasks"]
    swapped += ["read adapting + test_2"]
    told = rows["language-14-90"]["without"]
    found = plan_with(book, *swapped, without=told)
    assert [lesson["number"] for lesson, _ in found["told"]] == ["01", "02", "07", "09", "14"]


def test_outcomes_are_marked_by_courses_that_teach_them(plans):
    text = (ROOT / "book" / "teach" / "syllabus.md").read_text(encoding="utf-8")
    lines = dict(re.findall(r"^- (.+?) \*\[(.+?)\]\*$", text, flags=re.M))
    assert len(lines) == 11
    names = {"core": "core", "today's models": "today", "NLP": "language", "all twenty": "all"}
    names |= {"transformer alone": "half", "NLP half": "nlp"}
    needs = {"translator": "encoder_decoder", "recurrent state": "recurrence", "preferences": "preferences"}
    needs |= {
        "embeddings": "embeddings",
        "masked one": "masked_language_model",
        "compare two": "todays_block",
        "generating costs": "faster",
    }
    for words, slug in needs.items():
        (told,) = (courses for line, courses in lines.items() if words in line)
        taught = {key.split("-")[0] for key, plan in plans.items() if slug in plan["taught"]}
        assert {names[each] for each in told.split(", ")} == taught, words
    teaching = {key.split("-")[0] for key, plan in plans.items() if "tasks" in plan["taught"]}
    assert teaching == {*names.values()} - {"half"}  # all but the transformer alone


def test_the_first_meetings_are_those_of_their_plans(plans):
    page = (ROOT / "book" / "teach" / "first_class.md").read_text(encoding="utf-8")
    found = [
        [int(minute) for minute in re.findall(r"^\| (\d+) \|", part, flags=re.M)]
        for part in page.split("| Minute |")[1:]
    ]
    notes = read_notes(ROOT)
    left = re.findall(r"expect \((\w)\), it is \((\w)\)", page)
    meetings = (("core-14-90", "recurrence"), ("today-14-90", "self_attention"))
    for starts, (key, slug) in zip(found, meetings, strict=True):
        first = plans[key]["rows"][0]
        assert [lesson["slug"] for lesson in first["lectured"]] == [slug]
        rows, end = timed(MINUTES.search(notes[slug])[1])
        before, after = starts[1], first["slack"] - starts[1]
        assert starts[0] == 0
        assert starts[1:] == [
            *(before + now for now, *_ in rows),
            before + end,
            before + end + first["exercises"],
        ]
        assert starts[-1] + after == plans[key]["meeting"]
        assert f"The {first['slack']} minutes that the plan leaves free" in page
        votes = re.findall(r"^- (?:Predict|Break it) \((\w)\)\. Expect \((\w)\)", notes[slug], flags=re.M)
        told, left = left[: len(votes)], left[len(votes) :]
        assert told == [(expected, right) for right, expected in votes]
    assert not left


def test_what_is_caught_up_once_is_not_caught_up_again() -> None:
    meeting = {"lab": False, "free": 50, "exercises": 20, "left": [], "catch": True}
    first = meeting | {"left": [["1.1", "1.2", "1.3", "1.4"]], "exercises": 40, "catch": False}
    rows = [first, {**meeting}, {**meeting}]
    homework.share(rows)
    assert [row["here"] for row in rows] == ["1.1–1.2", "1.4", ""]
    assert first["left"] == [["1.3"]]


def test_the_project_brings_the_core_to_a_module(plans):
    page = (ROOT / "book" / "teach" / "project.md").read_text(encoding="utf-8")
    steps = [int(hours) for hours in re.findall(r"\| (\d+) \|$", page, flags=re.M)]
    assert sum(hours for _, hours in workload.project_steps(ROOT)) == sum(steps) == 78
    assert page.startswith(f"# A project of {sum(steps)} hours\n")
    plan = plans["core-14-90"]
    assert plan["longer"] == plan["total"] - 14 - 5 + 78  # the challenge takes 295 minutes at home
    assert plan["more"] == "4.8 to 5.8"
    for key in ("core-14-180", "today-14-180", "language-14-180"):
        assert (plans[key]["both"], plans[key]["most"]) == (180, "6.0 to 7.2")
        assert plans[key]["alone"] == 180 - plans[key]["class"]
        assert (plans[key]["only"], plans[key]["fewest"]) == (140, "4.7 to 5.6")
    assert (plan["weekly"], plans["core-14-180"]["weekly"]) == (9.5, 11.0)
    whole, weeks = plans["all-28-90"], 14 - 6 + 1  # two meetings a week: one of three is due before week 6
    assert whole["weekly_both"] - whole["weekly"] == pytest.approx(2 * workload.ASSIGNMENT / weeks, abs=0.1)
    week, plan = 8, plans["core-14-180"]
    row, dates = plan["rows"][week - 1], plan["assignments"].values()
    minutes = plan["meeting"] + plan["tutorial"] + row["minutes"]
    hours = (minutes + sum(lesson["minutes"] for lesson in row["lectured"])) / 60
    hours += dict(workload.project_steps(ROOT))[f"week {week}"]
    hours += sum(workload.ASSIGNMENT / (to - since) for since, to in dates if since <= week < to)
    assert f"week {week}, with plan and half an assignment, then takes {hours:.0f}." in page
    points = [int(found) for found in re.findall(r"^\| \w+, (\d) \|", page, flags=re.M)]
    assert sum(points) == 20
    review = int(re.search(r"^\| Review, (\d) \|", page, flags=re.M)[1])
    assert f"has {20 - review} points without *Review*" in page
    assert "take you ten minutes each for a group, so 20 groups take ten hours" in page
    assert 20 * 3 * 10 / 60 == 20 / 30 * workload.STAFF["small"][1] == 10
    rows = plans["today-12-75"]["rows"]
    taught = {each["number"]: n for n, row in enumerate(rows, 1) for each in [*row["lectured"], *row["read"]]}
    told = f"lesson 08 or 05, taught in meetings {taught['08']} and {taught['05']},"
    assert told in page


def test_an_assistant_sees_when_assignments_need_work(plans):
    for plan in (plan for plan in plans.values() if plan["tutorial"]):
        told = [
            (week, *duty) for week, row in enumerate(plan["rows"], 1) for duty in row["tutorial"]["duties"]
        ]
        assert len(told) == 3 * len({**plan["assignments"], **plan["instead"]})
        assert {(due, "due", "tokenizer", False) for due in (6, 7, 10)} & {*told}
        for name in plan["instead"]:
            assert (11, "handed out", name, True) in told
            assert (14, "conversations", name, True) in told
    page = (ROOT / "book" / "teach" / "plans.md").read_text(encoding="utf-8")
    assert f"60 × 5 minutes outside the tutorials, {60 * 5 / 60 / 2:g} hours for each of you" in page


def test_two_people_can_read_off_their_hours(plans):
    page = (ROOT / "book" / "teach" / "plans.md").read_text(encoding="utf-8")
    held = len(plans["language-14-180"]["rows"])
    room = [held * (1 + 1.5 * groups) for groups in (1, 3)]
    assert "{:g} hours in 14 weeks with one group, {:g} with three".format(*room) in page
    assert f"half of the exams, {workload.EXAMS // 2}," in page
    project = (ROOT / "book" / "teach" / "project.md").read_text(encoding="utf-8")
    told = re.search(r"about (\d+) minutes, .+ report (\d+), .+ ten", project)
    assert round(30 * int(told[1]) / 60 / 2) == 4
    assert "which takes each of you four hours in one week" in page
    assert f"Reports and their conversations take {30 * (int(told[2]) + 10) / 60 / 2:g}," in page


def test_the_second_of_two_lessons_read_has_its_exercises(plans):
    plan = plans["nlp-8-180"]
    week = [row["tutorial"] for row in plan["rows"]]
    assert (week[2]["board"], week[2]["not_on_board"]) == ("4.3–4.5; 5.1–5.2", "4.6; 5.3–5.6")  # by turns
    assert [lesson["number"] for lesson in week[1]["sheet"]] == ["04"]  # that of the first
    assert week[1]["slack"] >= 20  # for the answers


def test_homework_that_no_tutorial_has_time_for_is_named(plans):
    for plan in (plan for plan in plans.values() if plan["tutorial"]):
        for before, row in zip(plan["rows"], plan["rows"][1:], strict=False):
            held = row["tutorial"]
            told = [named(held[name]) if held[name] else set() for name in ("board", "not_on_board")]
            assert set.union(*told) == (named(before["there"]) if before["there"] else set())
    last = plans["core-14-180"]["rows"][-1]["tutorial"]
    assert (last["board"], last["not_on_board"]) == ("13.3–13.5", "13.6")
    assert "13.3–13.5; not 13.6<" in str(HTML.weeks(plans["core-14-180"]))


def test_what_students_hand_in_is_shared_by_one_rule(plans):
    assert workload.staff(2) == (20, 2 + 9, 9)
    assert workload.staff(2, challenge=True) == (25, 2 + 23 / 2, 23 / 2)
    assert workload.staff(project=True) == (33, 16.5, 16.5)
    challenge = (ROOT / "book" / "teach" / "doubt.md").read_text(encoding="utf-8")
    assert "A page takes about ten minutes to mark" in challenge
    assert "| 20 × 5 of yours |" in challenge
    assert workload.staff(challenge=True)[0] == 20 * (10 + 5) / 60
    project = (ROOT / "book" / "teach" / "project.md").read_text(encoding="utf-8")
    told = re.search(r"thirty groups\. For each, .+ about (\d+) minutes, .+ report (\d+), .+ (ten)", project)
    assert workload.staff(project=True)[0] == round(30 * (int(told[1]) + int(told[2]) + 10) / 60 + 0.1)
    syllabus = (ROOT / "book" / "teach" / "syllabus.md").read_text(encoding="utf-8")
    assert "takes ten: one to run the grader" in syllabus
    assert sum(workload.STAFF["assignment"]) == 10
    assert (
        "An exam or a midterm adds 20 minutes a student, the grader a quarter of an hour a week" in syllabus
    )
    assert (workload.EXAMS, workload.GRADER) == (60 * 20 / 60, 1 / 4)
    assert "the core* without an assistant and a tutorial" in syllabus
    assert plans["core-14-90"]["lecturer"] == round(21 + 21 + 14 / 4 + 25 + 20)


@pytest.mark.parametrize(
    ("key", "counts"),
    [(f"{course}-14-90", 2) for course in ("core", "today", "language")] + [("all-28-90", 3)],
)
def test_what_may_count_is_in_one_table(plans, key, counts):
    plan, found = bundles(ROOT, key)
    assert len(found) == 7
    assert [name for name, _ in found.pop(0)["shares"]] == [f"{NUMBERS[counts]} assignments", "exam"]
    names = [[name for name, _ in each["shares"]] for each in found]
    assert names[0] == ["challenge", "exam"]
    assert names[4] == ["project"]  # and no hours to prepare an exam
    assert names[5] == [f"{NUMBERS[counts]} assignments", "project", "exam"]
    for each in found:
        numbers = {f"{word} assignments": n for n, word in NUMBERS.items()}
        shares = [
            numbers.get(name, 1) * int(share.removesuffix(" each").rstrip("%"))
            for name, share in each["shares"]
        ]
        assert sum(shares) == 100
    rest = plan["total"] - found[1]["asked"]  # lessons and exam
    assert [rest + found[n]["asked"] for n in (3, 5)] == [plan["longer"], plan["both"]]
    shown = bundles(ROOT, "core-14-90")[1]  # one on the page for all three, with a tutorial or without
    others = (f"{way}-14-{minutes}" for way in ("core", "today", "language") for minutes in (90, 180))
    assert all(bundles(ROOT, each)[1] == shown for each in others)


def test_other_courses_are_told_what_may_count_in_them():
    page = (ROOT / "book" / "teach" / "syllabus.md").read_text(encoding="utf-8")
    shares = {
        key: [each["shares"] for each in bundles(ROOT, key)[1]]
        for key in ("all-28-90", "today-12-75", "nlp-8-90", "nlp-8-180", "half-8-90")
    }
    every = [
        dict(each)["three assignments"] for each in shares["all-28-90"] if "three assignments" in dict(each)
    ]
    assert every == ["15% each", "12% each", "8% each"]
    exams = [dict(each)["exam"] for each in shares["all-28-90"] if "three assignments" in dict(each)]
    told = "counts 15% and the exam {}, beside the challenge 12% and {}, beside the project 8% and {}."
    assert told.format(*exams) in page
    few, small, whole = bundles(ROOT, "today-12-75")[1]
    assert few == bundles(ROOT, "core-14-90")[1][0]
    assert small["shares"] == [("small project", "30%"), ("exam", "70%")]
    assert [name for name, _ in whole["shares"]] == ["two assignments", "small project", "midterm"]
    assert [each["asked"] for each in (few, small, whole)] == [14, 23, 14 + 23]
    assert [each["staff"][0] for each in (small, whole)] == [30 / 2, 20 + 30 / 2]
    assert "the staff half an hour for each group" in page
    assert sum(n * int(share[:2]) for n, (_, share) in zip((2, 1, 1), whole["shares"], strict=True)) == 100
    after = {each["slug"]: each["after"] for each in written(ROOT)}
    assert not any("preferences" in after[slug] for slug in ("todays_block", "faster"))
    assert shares["nlp-8-90"] == shares["nlp-8-180"] == [[("one assignment", "20%"), ("exam", "80%")]]
    assert "one assignment at 20%" in page
    assert shares["half-8-90"] == []


def test_words_in_place_of_a_lesson_are_the_same_in_all_plans(book):
    told = told_in_place(ROOT)
    assert [lesson["number"] for lesson, _ in told] == ["01", "02", "07", "08", "09", "14"]
    rows = [
        {"key": key, "title": "T", "meeting": 90, "meetings": ["self_attention"], "sealed": []}
        | {"without": {"first_attention": key}}
        for key in "kl"
    ]
    (book / "book" / "courses.yml").write_text(yaml.safe_dump(rows), encoding="utf-8")
    with pytest.raises(ValueError, match="plan l: other words in place of first_attention"):
        told_in_place(book)


def test_what_a_course_changes_has_all_verdicts():
    page = (ROOT / "book" / "teach" / "first_class.md").read_text(encoding="utf-8")
    asked = re.findall(r"\[(\w+)\]\(\.\./claims\.md#\1\)", page)
    rows = yaml.safe_load((ROOT / "book" / "claims.yml").read_text(encoding="utf-8"))
    found = [row["verdict"] for row in rows if row["id"] in asked]
    assert sorted(found) == ["condition"] * 2 + ["holds"] * 2 + ["wrong"] * 2
