"""Plans meeting by meeting: what is lectured or read at home, where tests lie, which exercises are homework.

A plan is a row of ``book/courses.yml``, whose first lines say what it holds. A meeting joins by `` + `` the
slug of a lesson that is lectured, ``read SLUG`` for one that was read at home before, the name of a test in
``book/teach/mock``, a step of the challenge of ``book/teach/doubt.md``, ``lab``, and ``catch up`` for
exercises that would be homework. Directive ``{weeks} key`` is its table, ``{weeks} key short`` a list of
topics with the hours, ``{plans}`` a table of all plans, ``{forms}`` a line for each form of a course,
``{told}`` what a class hears in place of a lesson, and ``{bundles} key ...`` a table of what may count, by
``book/bundles.yml``. Role ``{workload}`total key``` says what hours a plan takes, ``{workload}`longer key```
with ``book/teach/project.md`` in place of challenge and assignments.
"""

import re
from functools import cache
from math import ceil
from pathlib import Path

import yaml
from course import EXERCISES, HTML, SLACK, VOTE, Directive, meeting, parts, size, written
from docutils import nodes
from ledger import raw
from ledger_data import cells_of
from questions import left_out
from sphinx.util.docutils import SphinxRole

from exformer_lessons.teacher.exams import FACTOR, read_exams
from exformer_lessons.teacher.mock import mocks, read_mock
from exformer_lessons.teacher.questions import read_questions
from exformer_lessons.teacher.sheets import saved

#: For exercises in a meeting with a lesson, at least and at most, in steps of five minutes.
AT_LEAST, AT_MOST, STEP = 20, 50, 5
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
#: In a tutorial: minutes at the board for an exercise that was homework; questions of the bank at most, of
#: different kinds, these first.
AT_BOARD, BANK, KINDS = 8, 3, ("apply", "prove", "design", "recall")
#: Hours of a student: for an assignment, and for each lesson to prepare for the exam.
ASSIGNMENT, PREPARE = 7, 2
#: Groups of a tutorial, and an assistant's hours to prepare one.
GROUPS, READY = 3, 1
#: Hours of the staff for what 60 students hand in: those of one person, and those that all share equally. For
#: each assignment, the grader, then written parts and conversations; for 20 pages of the challenge and 30
#: projects, reading and conversations.
STAFF = {"assignment": (1, 9), "challenge": (0, 5), "project": (0, 33)}
#: In which weeks the project runs beside the course.
BESIDE = 6, 14
#: On which lessons an assignment is, and the fewest weeks for it.
NEEDED = {
    "gradients": {"recurrence", "first_attention", "self_attention"},
    "tokenizer": {"tokens"},
    "decoder": {"language_model", "generation"},
    "tuning": {"language_model", "adapting", "preferences"},
}
WEEKS = 2
NUMBERS = {2: "two", 3: "three", 4: "four"}
#: What a page may ask about the work of a plan.
HOURS = ("class", "home", "again", "assigned", "exam_hours", "total", "credits", "project", "longer", "more")
HOURS += ("both", "most", "alone", "weekly", "weekly_both", "project_staff", "both_staff")
#: Hours of work that make a credit of the ECTS, at least and at most.
CREDIT = 25, 30
NUMBER = re.compile(r"^> \*\*Exercise (\d+\.\d) ", flags=re.M)
ON_PAPER = re.compile(r"^(\d)\. \*\*(?:Recall|Apply|Prove|Design)\.\*\*", flags=re.M)
#: A step of the project, and its hours.
STEP_OF_PROJECT = re.compile(r"^\| ((?:week|two weeks|three weeks) .*?) \|.*\| (\d+) \|$", flags=re.M)
BEGIN = re.compile(r"^\(notes-(\w+)\)=.*?In class: begin Exercise (\d+\.\d)\.", flags=re.M | re.S)


def read_weeks(root):
    """Return the plans of courses.yml."""
    return yaml.safe_load(Path(root, "book", "courses.yml").read_text(encoding="utf-8"))


def weeks(root, key):
    """Return a plan with a row for each meeting, the minutes computed.

    Raises:
        ValueError: If there is no such plan; if a part of a meeting is unknown; if a lesson builds on one
            that neither comes before nor is told of; if a test has too few questions on lessons that came
            before; if a meeting leaves too few minutes for exercises and slack; or if an assignment comes
            before its lessons, is too short, or is due when no week is left to explain it.
    """
    plans = read_weeks(root)
    plan = next((each for each in plans if each["key"] == key), None)
    if plan is None:
        known = ", ".join(each["key"] for each in plans)
        raise ValueError(f"expected a plan of courses.yml ({known}), got {key!r}")
    plan = {"a_week": 1, "tutorial": 0, "assignments": {}, "instead": {}, "order": ""} | plan
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
    made |= {"challenge": any(row["steps"] for row in rows), "taught": taught, "lab": has_lab(plan)}
    check_assignments(made)
    made |= load_of(made)
    return made | longer(made, project_steps(root))


#: A page asks for the same plans many times, and each takes a quarter of a second; a build computes it once.
planned = cache(weeks)


def row_of(root, words, lessons, taught, key):
    """Return what a meeting holds."""
    row = {"lectured": [], "read": [], "order": [], "tests": [], "steps": [], "lab": False, "catch": False}
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
        else:
            raise ValueError(f"plan {key}: expected a lesson, a test, a step, lab or catch up, got {part!r}")
    return row


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


def load_of(plan):
    """Return a student's hours: in class, at home, to read each lecture's lesson again; and the credits."""
    rows = plan["rows"]
    found = {
        "class": round(len(rows) * (plan["meeting"] + plan["tutorial"]) / 60),
        "home": round(sum(row["minutes"] for row in rows) / 60),
        "again": round(sum(lesson["minutes"] for row in rows for lesson in row["lectured"]) / 60),
        "assigned": ASSIGNMENT * len(plan["assignments"]),
        "exam_hours": PREPARE * len(plan["taught"]),
    }
    total = sum(found.values())
    room = round(GROUPS * len(rows) * plan["tutorial"] / 60)
    ready = READY * len(rows)
    heard = staff(len(plan["assignments"]), challenge=plan["challenge"])[2]
    assistant = {"room": room, "ready": ready, "heard": heard, "all": room + ready + heard}
    assistant["project"] = room + ready + staff(project=True)[2]
    return found | {"total": total, "credits": credits_of(total), "assistant": assistant, "groups": GROUPS}


def staff(assignments=0, *, challenge=False, project=False):
    """Return hours for what 60 students hand in: a lecturer's alone; with an assistant, of each of them."""
    own = assignments * STAFF["assignment"][0]
    shared = assignments * STAFF["assignment"][1]
    for name, taken in (("challenge", challenge), ("project", project)):
        own, shared = own + taken * STAFF[name][0], shared + taken * STAFF[name][1]
    return own + shared, own + shared / 2, shared / 2


def credits_of(hours):
    """Return how many credits of the ECTS hours are: 5.0 to 6.0."""
    return " to ".join(f"{hours / each:.1f}" for each in CREDIT[::-1])


def project_steps(root):
    """Return until when each step of the project is done, and its hours, as the table of its page says."""
    page = Path(root, "book", "teach", "project.md").read_text(encoding="utf-8")
    return [(when, int(hours)) for when, hours in STEP_OF_PROJECT.findall(page)]


def hours_with(plan, assignments, *, challenge=False, project=0):
    """Return a student's hours if so many assignments, the challenge, or a project of such hours count."""
    at_home = round(sum(minutes for row in plan["rows"] for *_, minutes in row["steps"]) / 60)
    lessons = plan["total"] - plan["assigned"] - at_home
    return lessons + ASSIGNMENT * assignments + at_home * challenge + project


def longer(plan, steps):
    """Return hours and credits with the project: in place of assignments and challenge, or of this alone."""
    project = sum(hours for _, hours in steps)
    count = len(plan["assignments"])
    hours, both = hours_with(plan, 0, project=project), hours_with(plan, count, project=project)
    first, last = BESIDE
    rows = plan["rows"][(first - 1) * plan["a_week"] : last * plan["a_week"]]
    spent = len(rows) * (plan["meeting"] + plan["tutorial"])
    spent += sum(row["minutes"] - sum(minutes for *_, minutes in row["steps"]) for row in rows)
    spent += sum(lesson["minutes"] for row in rows for lesson in row["lectured"])
    beside = spent / 60 + sum(hours for when, hours in steps if when.startswith("week"))
    late = ASSIGNMENT * sum(to > first * plan["a_week"] for _, to in plan["assignments"].values())
    weeks_beside = last - first + 1
    return {
        "project": project,
        "longer": hours,
        "more": credits_of(hours),
        "both": both,
        "most": credits_of(both),
        "alone": both - plan["class"],
        "weekly": round(beside / weeks_beside, 1),
        "weekly_both": round((beside + late) / weeks_beside, 1),
        "project_staff": staff(project=True)[0],
        "both_staff": staff(count, project=True)[0],
    }


def bundles(root, *keys):
    """Return what may count in a course: its shares of the grade, a student's hours, and the staff's.

    The plans are forms of one course, with as many assignments; hours and credits are given for each.
    """
    plans = [planned(root, key) for key in keys]
    found = []
    for each in yaml.safe_load(Path(root, "book", "bundles.yml").read_text(encoding="utf-8")):
        count = {"none": 0, "plan": len(plans[0]["assignments"])}.get(each["assignments"])
        count = len(plans[0]["assignments"]) + 1 if count is None else count
        if count not in each["each"]:
            continue
        challenge, project = each.get("challenge", 0), each.get("project", 0)
        exam = 100 - count * each["each"][count] - challenge - project
        own = {"challenge": bool(challenge), "project": plans[0]["project"] * bool(project)}
        hours = [hours_with(plan, count, **own) for plan in plans]
        shares = [(f"{NUMBERS[count]} assignments", f"{each['each'][count]}% each")] if count else []
        shares += [("challenge", f"{challenge}%")] * bool(challenge)
        shares += [("project", f"{project}%")] * bool(project)
        none = hours_with(plans[0], 0)
        found.append(
            {
                "shares": [*shares, ("exam", f"{exam}%")],
                "asked": hours[0] - none,
                "hours": [(one, credits_of(one)) for one in hours],
                "staff": staff(count, challenge=bool(challenge), project=bool(project)),
            }
        )
    return plans, found


def told_in_place(root):
    """Return what a class is told in place of each lesson that a plan leaves out and others build on."""
    found = {}
    for plan in (planned(root, each["key"]) for each in read_weeks(root)):
        for lesson, words in plan["told"]:
            if found.setdefault(lesson["slug"], (lesson, words))[1] != words:
                raise ValueError(f"plan {plan['key']}: other words in place of {lesson['slug']}")
    return sorted(found.values(), key=lambda each: each[0]["number"])


def forms(root):
    """Return the plans by their size, the shortest term first."""
    found = {}
    for plan in read_weeks(root):
        found.setdefault(size(plan), []).append(plan)
    return sorted(found.items(), key=lambda each: (len(each[1][0]["meetings"]), -len(each[0])), reverse=True)


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


def share(rows):
    """Give each exercise its place: the meeting of its lesson, one to catch up, or home.

    What is caught up is not homework: the last exercises of the lessons since the last such meeting.
    """
    waiting = []
    for row in rows:
        row["here"], row["each"] = "", []
        if row["left"]:
            first = row["left"][0]
            count = max(1, len(first) * row["exercises"] // EXERCISES)
            row["here"], row["left"][0] = listed([first[:count]]), first[count:]
            own = [EXERCISES - row["exercises"] * (n == 0) for n in range(len(row["left"]))]
            row["each"] = [minutes / len(some) for minutes, some in zip(own, row["left"], strict=True)]
            waiting.append(row)
        elif row["lab"]:
            row["here"] = "of the lab"
        elif row["catch"]:
            row["here"], used = catch_up(waiting, row["exercises"])
            row["exercises"] = min(row["exercises"], ceil(used / STEP) * STEP)
            waiting = []
        row["slack"] = row.pop("free") - row["exercises"]
    for row in rows:
        row["home"] = round(
            sum(len(some) * each for some, each in zip(row["left"], row["each"], strict=True))
        )


def catch_up(rows, minutes):
    """Take exercises that were left to home, from the longest lists first; return them, and their minutes."""
    places = [(row, n) for row in rows for n in range(len(row["left"]))]
    taken, used = [[] for _ in places], 0
    while True:
        open_ones = [
            (len(row["left"][n]), -i)
            for i, (row, n) in enumerate(places)
            if row["left"][n] and used + row["each"][n] <= minutes
        ]
        if not open_ones:
            return listed(taken), used
        place = -max(open_ones)[1]
        row, n = places[place]
        taken[place].insert(0, row["left"][n].pop())
        used += row["each"][n]


def add_tutorials(root, rows, plan):
    """Give each week its tutorial: last week's homework at the board, and questions of the bank."""
    teach, before = Path(root, "book", "teach"), []
    for number, row in enumerate(rows, 1):
        words = plan.get("tutorials", {}).get(number)
        held = row_of(root, words, {}, row["taught"], plan["key"]) if words else {"tests": [], "lab": False}
        lab = (LAB + VOTE * LAB_VOTES + LAB_EXERCISES) * held["lab"]
        left = plan["tutorial"] - SLACK - lab - sum(each["minutes"] for each in held["tests"])
        board = before[: left // AT_BOARD]
        left -= AT_BOARD * len(board)
        bank, used = [], 0
        for each in bank_of(teach, row["lectured"][0]["slug"]) if row["lectured"] else []:
            minutes = ceil(FACTOR * each.minutes)  # as long as an exam gives
            if used + minutes <= left:
                bank.append(each.id)
                used += minutes
        row["tutorial"] = held | {"board": listed([board]), "on_board": AT_BOARD * len(board), "bank": bank}
        row["tutorial"] |= {"on_bank": used, "on_lab": lab, "slack": SLACK + left - used}
        row["tutorial"]["not_on_board"] = listed([before[len(board) :]])
        before = [each for some in row["left"] for each in some]


def bank_of(teach, slug):
    """Return questions of different kinds on a lesson, which no public exam has."""
    taken = {name for exam in read_exams(teach) for name in exam.questions}
    free = [each for each in read_questions(teach, slug) if each.name not in taken]
    first = [next((each for each in free if each.kind == kind), None) for kind in KINDS]
    return [each for each in first if each][:BANK]


def exercises_of(root, lesson, starts):
    """Return the exercises of a lesson, first the one with which a class begins.

    Some have numbers; those on paper may be a list, whose items have none.
    """
    text = "\n".join("".join(cell["source"]) for cell in cells_of(root, lesson["page"]))
    found = NUMBER.findall(text)
    found += [f"{int(lesson['number'])}.paper {n}" for n in ON_PAPER.findall(text)]
    return sorted(found, key=lambda number: (number != starts.get(lesson["slug"]), found.index(number)))


def starts_of(root):
    """Return with which exercise a class begins, by lesson, as the lecturer's notes say."""
    return dict(BEGIN.findall(Path(root, "book", "teach", "notes.md").read_text(encoding="utf-8")))


def listed(lists):
    """Return the exercises of some lessons in words."""
    return "; ".join(filter(None, map(exercise_list, lists)))


def exercise_list(exercises):
    """Return exercises of a lesson in a few words, neighbors joined.

    >>> exercise_list(["18.2", "18.1", "18.3", "18.6"])
    '18.1–18.3, 18.6'
    """
    graded = sorted((each for each in exercises if "paper" not in each), key=lambda each: each.split(".")[1])
    paper = [each for each in exercises if "paper" in each]
    lesson = f"{paper[0].partition('.')[0]} " if paper and not graded else ""
    on_paper = join_neighbors([each.split("paper ")[1] for each in paper])
    parts = [join_neighbors(graded), f"{lesson}on paper\u00a0{on_paper}" if paper else ""]
    return ", ".join(filter(None, parts))


def join_neighbors(numbers):
    """Return numbers with neighbors joined: 2, 4–6."""
    groups = []
    for number in numbers:
        place = int(number.rpartition(".")[2])
        if groups and groups[-1][2] + 1 == place:
            groups[-1][1:] = [number, place]
        else:
            groups.append([number, number, place])
    return ", ".join(first if first == last else f"{first}–{last}" for first, last, _ in groups)


def overview(root):
    """Return all plans, the longest term first, each with its lessons in numbers, its exam and the resit."""
    exams = {each.key: each for each in read_exams(Path(root, "book", "teach"))}
    numbers = {each["slug"]: each["number"] for each in written(root)}
    found = []
    for plan in (planned(root, each["key"]) for each in read_weeks(root)):
        told = {"exams": [(key, left_out(exams[key], plan["taught"])) for key in plan["sealed"]]}
        told["numbers"] = join_neighbors(sorted(numbers[slug] for slug in plan["taught"]))
        found.append(plan | told)
    return sorted(found, key=lambda plan: (-len(plan["rows"]) / plan["a_week"], plan["class"]))


class Made(Directive):
    """What depends on the plans, the notes, the exams and the bank."""

    def note(self):
        """Say that the page changes with them."""
        super().note()
        teach = Path(self.env.srcdir, "book", "teach")
        more = [teach / "notes.md", teach / "project.md", teach / "exams.yml", teach.parent / "bundles.yml"]
        for path in (*more, *teach.glob("mock/*.yml"), *teach.glob("questions/*.yml")):
            self.env.note_dependency(str(path))


class Weeks(Made):
    """A plan, week by week."""

    required_arguments = 1
    optional_arguments = 1

    def run(self):
        """Return a table, or a list of topics."""
        self.note()
        try:
            plan = planned(self.env.srcdir, self.arguments[0])
        except ValueError as error:
            raise self.error(str(error)) from error
        return [raw(HTML.topics(plan) if self.arguments[1:] else HTML.weeks(plan))]


class Plans(Made):
    """All plans in one table."""

    def run(self):
        """Return the table."""
        self.note()
        return [raw(HTML.plans(overview(self.env.srcdir)))]


class Forms(Made):
    """Where the plan of each form is."""

    def run(self):
        """Return a list of links."""
        self.note()
        return [raw(HTML.forms(forms(self.env.srcdir)))]


class Told(Made):
    """What a class is told in place of a lesson."""

    def run(self):
        """Return a list."""
        self.note()
        return [raw(HTML.told(told_in_place(self.env.srcdir)))]


class Bundles(Made):
    """What may count in a course, and what that costs."""

    required_arguments = 1
    optional_arguments = 1

    def run(self):
        """Return a table."""
        self.note()
        return [raw(HTML.bundles(*bundles(self.env.srcdir, *self.arguments)))]


class Workload(SphinxRole):
    """``{workload}`home today-14-90```: hours at home, in class, again, in total; credits.

    ``project`` is what the project takes, ``longer`` the hours with it, and ``more`` their credits; ``both``
    and ``most`` are those with assignments too, ``alone`` without the class; ``weekly`` is a week of it.
    """

    def run(self):
        """Return the number."""
        kind, _, key = self.text.partition(" ")
        try:
            plan = planned(self.env.srcdir, key)
            found = {name: plan[name] for name in HOURS}[kind]
            return [nodes.Text(f"{found:g}" if isinstance(found, float) else str(found))], []
        except (KeyError, ValueError) as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]


def setup(app):
    """Register the extension."""
    app.add_directive("weeks", Weeks)
    app.add_directive("plans", Plans)
    app.add_directive("forms", Forms)
    app.add_directive("told", Told)
    app.add_directive("bundles", Bundles)
    app.add_role("workload", Workload())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
