"""Plans meeting by meeting: what is lectured or read at home, where tests lie, and what a tutorial does.

A plan is a row of ``book/courses.yml``, whose first lines say what it holds. A meeting joins by `` + `` the
slug of a lesson that is lectured, ``read SLUG`` for one that was read at home before, the name of a test in
``book/teach/mock``, a step of the challenge of ``book/teach/doubt.md``, ``lab``, ``catch up`` for exercises
that would be homework, and ``own TITLE`` for a topic that the book lacks, or a holiday.
"""

from functools import cache
from itertools import zip_longest
from math import ceil
from pathlib import Path

import yaml
from course import SLACK, VOTE, meeting, parts, size, written
from homework import (
    AT_LEAST,
    AT_MOST,
    STEP,
    by_lesson,
    exercises_of,
    join_neighbors,
    listed,
    share,
    starts_of,
)
from mocks import TUTORIAL
from questions import left_out
from workload import hours_with, load_of, longer, project_steps, staff

from exformer_lessons.teacher.exams import FACTOR, read_exams
from exformer_lessons.teacher.mock import mocks, read_mock
from exformer_lessons.teacher.sheets import saved

#: The least part of a test's points that is left when questions are dropped.
LEAST = 0.5
#: Steps of the challenge: words, minutes in class, and what is homework after it, with its minutes.
CHALLENGE = {
    "choose": ("groups choose a claim", 15, "predictions", 15),
    "predictions": ("predictions are handed in", 0, "page", 240),
    "pages": ("pages are handed in", 0, "mark two pages", 40),
    "posters": ("posters", 80, "", 0),
}
#: The lab: minutes to run it, its votes, and minutes for its exercises.
LAB, LAB_VOTES, LAB_EXERCISES = 25, 2, 25
#: Minutes at the board of a tutorial for an exercise that was homework, and how many there are at most.
AT_BOARD, SHOWN = 8, 5
#: On which lessons an assignment is, and the fewest weeks for it.
NEEDED = {
    "gradients": {"recurrence", "first_attention", "self_attention"},
    "tokenizer": {"tokens"},
    "decoder": {"language_model", "generation"},
    "tuning": {"language_model", "adapting", "preferences"},
}
WEEKS = 2
NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four"}


def read_plans(root):
    """Return the plans of courses.yml."""
    return yaml.safe_load(Path(root, "book", "courses.yml").read_text(encoding="utf-8"))


def plan_of(root, key):
    """Return a plan with a row for each meeting, the minutes computed.

    Raises:
        ValueError: If there is no such plan; if a part of a meeting is unknown; if a lesson builds on one
            that neither comes before nor is told of; if a test has too few questions on lessons that came
            before; if a meeting leaves too few minutes for exercises and slack; or if an assignment comes
            before its lessons, is too short, or is due when no week is left to explain it.
    """
    plans = read_plans(root)
    plan = next((each for each in plans if each["key"] == key), None)
    if plan is None:
        known = ", ".join(each["key"] for each in plans)
        raise ValueError(f"expected a plan of courses.yml ({known}), got {key!r}")
    plan = {"a_week": 1, "tutorial": 0, "assignments": {}, "instead": {}} | plan
    plan = {"order": "", "sealed": [], "small": False} | plan
    lessons, starts = {each["slug"]: each for each in written(root)}, starts_of(root)
    without, taught, rows = plan.get("without", {}), [], []
    for words in plan["meetings"]:
        row = row_of(root, words, lessons, taught, key)
        for lesson in [*row["lectured"], *row["read"]]:
            if missing := {*lesson.get("after", [])} - {*taught, *without}:
                raise ValueError(f"plan {key}: {lesson['slug']} builds on {', '.join(sorted(missing))}")
            taught.append(lesson["slug"])
        row |= minutes_of(root, row, plan["meeting"], key)
        row["left"] = [exercises_of(root, each, starts) for each in [*row["lectured"], *row["read"]]]
        rows.append(row | {"tutorial": None, "taught": {*taught}})
    share(rows)
    if plan["tutorial"]:
        add_tutorials(root, rows, plan)
    for row, after in zip(rows, [*rows[1:], {"read": []}], strict=True):
        row["there"] = listed(row["left"])
        row["before"] = after["read"]
        row["tasks"] = [words for _, _, words, minutes in row["steps"] if minutes]
        row["minutes"] = row["home"] + sum(lesson["minutes"] for lesson in row["before"])
        row["minutes"] += sum(minutes for *_, minutes in row["steps"])
    told = [(each, without[slug].strip()) for slug, each in lessons.items() if slug in {*without} - {*taught}]
    out = [each for slug, each in lessons.items() if slug not in taught]
    exam = test_of(root, plan.get("exam", "exam"), taught, key, least=0)
    made = plan | {"exam": exam, "rows": rows, "told": told, "left_out": out, "size": size(plan)}
    every = {each.key: each for each in read_exams(Path(root, "book", "teach"))}
    made["exams"] = [(each, left_out(every[each], taught)) for each in plan["sealed"]]
    made |= {"challenge": any(row["steps"] for row in rows), "taught": taught, "lab": has_lab(plan)}
    check_assignments(made)
    made |= load_of(made)
    return made | longer(made, project_steps(root, small=plan["small"]))


#: A page asks for the same plans many times, and each takes a quarter of a second; a build computes it once.
planned = cache(plan_of)


def row_of(root, words, lessons, taught, key):
    """Return what a meeting holds."""
    row = {"lectured": [], "read": [], "order": [], "tests": [], "steps": []}
    row |= {"lab": False, "catch": False, "own": ""}
    for part, slug in parts(words):
        if part in mocks(Path(root, "book", "teach")):
            row["tests"].append(test_of(root, part, taught, key, least=LEAST))
        elif slug in lessons:
            row["read" if part != slug else "lectured"].append(lessons[slug])
            row["order"].append((lessons[slug], part != slug))
        elif part in CHALLENGE:
            row["steps"].append(CHALLENGE[part])
        elif part in ("lab", "catch up"):
            row[part.partition(" ")[0]] = True
        elif part.startswith("own "):
            row["own"] = part.removeprefix("own ")
        else:
            known = "a lesson, a test, a step, lab, catch up or own TITLE"
            raise ValueError(f"plan {key}: expected {known}, got {part!r}")
    return row


def test_of(root, name, taught, key, least):
    """Return a test: its title, its minutes, and the numbers of the questions that a class cannot know."""
    test = read_mock(Path(root, "book", "teach"), name)
    out = [n for n, task in enumerate(test.tasks, 1) if task.question.lesson not in taught]
    lost = sum(test.tasks[n - 1].question.minutes for n in out)
    if test.points - lost < least * test.points:
        raise ValueError(f"plan {key}: {name} has {test.points - lost} points on lessons that came before")
    title = test.title.partition(":")[0]
    return {
        "name": name,
        "title": title.partition(" (")[0] if out else title,  # not the lessons that the class does not have
        "without": out,
        "minutes": test.minutes - saved(lost),
    }


def minutes_of(root, row, whole, key):
    """Return the minutes of a meeting."""
    about = [meeting(root, each, flipped=False) for each in row["lectured"]]
    about += [meeting(root, each, flipped=True) for each in row["read"]]
    lecture = sum(each["lecture"] for each in about) + LAB * row["lab"]
    votes = sum(each["votes"] + each["board"] for each in about) + VOTE * LAB_VOTES * row["lab"]
    test = sum(each["minutes"] for each in row["tests"])
    challenge = sum(minutes for _, minutes, *_ in row["steps"])
    if row["own"]:  # it fills what else the meeting leaves
        lecture = whole - votes - test - challenge - SLACK
    free = whole - lecture - votes - test - challenge
    exercises = (free - SLACK) // STEP * STEP
    if about or row["lab"]:
        exercises = min(exercises, LAB_EXERCISES if row["lab"] else AT_MOST)
    least = AT_LEAST if about or row["tests"] or row["catch"] or row["lab"] else 0
    if exercises < least:
        raise ValueError(
            f"plan {key}: {free} minutes are left for exercises and slack, fewer than {least + SLACK}"
        )
    found = {"lecture": lecture, "votes": votes, "test": test, "challenge": challenge}
    return found | {"exercises": exercises, "free": free}


def add_tutorials(root, rows, plan):
    """Give each week its tutorial: last week's homework at the board, and the sheet of the lesson."""
    teach, before = Path(root, "book", "teach"), []
    for number, row in enumerate(rows, 1):
        words = plan.get("tutorials", {}).get(number)
        held = row_of(root, words, {}, row["taught"], plan["key"]) if words else {"tests": [], "lab": False}
        lab = (LAB + VOTE * LAB_VOTES + LAB_EXERCISES) * held["lab"]
        left = plan["tutorial"] - SLACK - lab - sum(each["minutes"] for each in held["tests"])
        board = before[: min(left // AT_BOARD, SHOWN)]
        left -= AT_BOARD * len(board)
        sheet = [lesson for lesson, _ in row["order"][:1]]
        tasks = read_mock(teach, sheet_of(sheet[0])).tasks if sheet else ()
        spent = [ceil(FACTOR * task.question.minutes) for task in tasks]  # as long as an exam gives
        solved = [n for n in range(1, 1 + len(spent)) if sum(spent[:n]) <= left]
        used = sum(spent[: len(solved)])
        row["tutorial"] = held | {"board": listed(by_lesson(board)), "on_board": AT_BOARD * len(board)}
        row["tutorial"] |= {"sheet": sheet, "solved": solved, "all": len(solved) == len(spent)}
        row["tutorial"] |= {"on_sheet": used, "on_lab": lab, "slack": SLACK + left - used}
        row["tutorial"]["not_on_board"] = listed(by_lesson(before[len(board) :]))
        row["tutorial"]["duties"] = duties_of(plan, number)
        before = [each for some in zip_longest(*row["left"]) for each in some if each]  # by turns


def duties_of(plan, number):
    """Return what happens to assignments in a week: what, which, and whether it replaces the challenge."""
    found = []
    for replaces, dates in enumerate((plan["assignments"], plan["instead"])):
        for name, (first, last) in dates.items():
            what = {first: "handed out", last: "due", last + 1: "conversations"}.get(number)
            found += [(what, name, bool(replaces))] if what else []
    return found


def sheet_of(lesson):
    """Return the name of the sheet for a tutorial on a lesson."""
    return f"{TUTORIAL}{lesson['slug']}"


def has_lab(plan):
    """Return whether a plan has the lab."""
    held = [*plan["meetings"], *plan.get("tutorials", {}).values()]
    return any(part == "lab" for words in held for part, _ in parts(words))


def check_assignments(plan):
    """Check that assignments come after their lessons, take two weeks at least, and can be explained."""
    for name, (first, last) in (plan["assignments"] | plan["instead"]).items():
        where = f"plan {plan['key']}: {name}"
        if missing := NEEDED[name] - plan["rows"][first - 1]["taught"]:
            raise ValueError(f"{where} is handed out before {', '.join(sorted(missing))}")
        if last - first < WEEKS * plan["a_week"]:
            raise ValueError(f"{where}: expected {WEEKS} weeks at least, got meetings {first} to {last}")
        if last + plan["a_week"] > len(plan["rows"]):
            raise ValueError(f"{where} is due at meeting {last}, and no week is left to explain it")


def told_in_place(root):
    """Return what a class is told in place of each lesson that a plan leaves out and others build on."""
    found = {}
    for plan in (planned(root, each["key"]) for each in read_plans(root)):
        for lesson, words in plan["told"]:
            if found.setdefault(lesson["slug"], (lesson, words))[1] != words:
                raise ValueError(f"plan {plan['key']}: other words in place of {lesson['slug']}")
    return sorted(found.values(), key=lambda each: each[0]["number"])


def overview(root):
    """Return courses in groups that ask the same hours in meetings of the same size, with a row for each.

    A course has its title, its lessons in numbers, exam and resit, and its plans; a row names the course if
    others of its group have no meetings of this size.
    """
    numbers = {each["slug"]: each["number"] for each in written(root)}
    courses = {}
    for plan in (planned(root, each["key"]) for each in read_plans(root)):
        told = {"title": plan["title"], "exams": plan["exams"]}
        told["numbers"] = join_neighbors(sorted(numbers[slug] for slug in plan["taught"]))
        courses.setdefault(str(told), told | {"plans": []})["plans"].append(plan)
    groups = []
    for (
        course
    ) in courses.values():  # it joins the group before if the hours of all sizes that both have agree
        asked = {plan["size"]: plan["counts"] for plan in course["plans"]}
        found = groups[-1]["rows"] if groups else {}
        shared = [each for each in asked if each in found]
        if not shared or any(asked[each] != found[each]["counts"] for each in shared):
            groups.append({"courses": [], "rows": {}})
        groups[-1]["courses"].append(course)
        for each, counts in asked.items():
            row = groups[-1]["rows"].setdefault(each, {"counts": counts, "titles": []})
            row["titles"].append(course["title"])
    for group in groups:
        for row in group["rows"].values():
            row["of"] = "" if len(row["titles"]) == len(group["courses"]) else ", ".join(row["titles"])
    return groups


def work(root):
    """Return size, hours, credits and titles: hours in class, at home, for assignments, the exam, and all."""
    found = {}
    for plan in (planned(root, each["key"]) for each in read_plans(root)):
        hours = (
            plan["class"],
            plan["home"] + plan["again"],
            plan["assigned"],
            plan["exam_hours"],
            plan["total"],
        )
        found.setdefault((plan["size"], hours, plan["credits"]), []).append(plan["title"])
    return [(*key, titles) for key, titles in found.items()]


def bundles(root, key):
    """Return a plan, and what may count in it: shares of the grade, a student's hours, and the staff's."""
    plan, found = planned(root, key), []
    dates = plan["assignments"] | plan["instead"]
    for each in yaml.safe_load(Path(root, "book", "bundles.yml").read_text(encoding="utf-8")):
        count = {"none": 0, "plan": len(plan["assignments"])}.get(each["assignments"])
        count = len(plan["assignments"]) + 1 if count is None else count
        if count not in each["each"]:
            continue
        names = ("challenge", "project", "small", "midterm")
        challenge, project, small, midterm = (each.get(part, 0) for part in names)
        if ((challenge or project) and not plan["challenge"]) or count > len(dates):
            continue
        if small and not plan["small"]:
            continue
        exam = 100 - count * each["each"][count] - challenge - project - small - midterm
        own = {"challenge": bool(challenge), "project": plan["project"] * bool(project or small)}
        name = f"{NUMBERS.get(count)} assignment{'s' * (count > 1)}"
        shares = [(name, f"{each['each'][count]}%{' each' * (count > 1)}")] if count else []
        shares += [("challenge", f"{challenge}%")] * bool(challenge)
        shares += [("project", f"{project}%")] * bool(project)
        shares += [("small project", f"{small}%")] * bool(small)
        shares += [("midterm", f"{midterm}%")] * bool(midterm)
        found.append(
            {
                "shares": shares + [("exam", f"{exam}%")] * bool(exam),
                "asked": hours_with(plan, count, **own) - hours_with(plan, 0),
                "staff": staff(count, challenge=bool(challenge), project=bool(project), small=bool(small)),
            }
        )
    return plan, found
