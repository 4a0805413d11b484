"""Plans meeting by meeting: what is lectured or read at home, where tests lie, which exercises are homework.

A plan is a row of ``book/courses.yml`` with ``weekly``. A meeting joins by `` + `` the slug of a lesson that
is lectured, ``read SLUG`` for one that was read at home before, the name of a test in ``book/teach/mock``,
a step of the challenge of ``book/teach/doubt.md``, and words for anything else. Directive ``{weeks} key`` is
its table, ``{weeks} key short`` a list of topics; role ``{workload}`home key``` says how many hours it takes,
``{workload}`longer key``` with the project of ``book/teach/project.md`` in place of the challenge.
``exam`` is the mock exam of a plan, and ``a_week`` says how many meetings a week has, if not one.
"""

import re
from pathlib import Path

import yaml
from course import EXERCISES, HTML, SLACK, Directive, meeting, parts, written
from docutils import nodes
from ledger import raw
from ledger_data import cells_of
from sphinx.util.docutils import SphinxRole

from exformer_lessons.teacher.mock import mocks, read_mock

#: For exercises in a meeting with a lesson, at least and at most, in steps of five minutes.
AT_LEAST, AT_MOST, STEP = 20, 50, 5
#: The fewest points of a test whose other questions are left out.
POINTS = 15
#: Steps of the challenge: words, minutes in class, and what is homework after it, with its minutes.
CHALLENGE = {
    "choose": ("groups choose a claim", 15, "predictions", 15),
    "predictions": ("predictions are handed in", 0, "page", 240),
    "pages": ("pages are handed in", 0, "mark two pages", 40),
    "posters": ("posters", 80, "", 0),
}
#: What a page may ask about the work of a plan.
HOURS = ("class", "home", "again", "total", "credits", "project", "longer", "more")
#: Hours of work that make a credit of the ECTS, at least and at most.
CREDIT = 25, 30
NUMBER = re.compile(r"^> \*\*Exercise (\d+\.\d) ", flags=re.M)
#: A step of the project, and its hours.
STEP_OF_PROJECT = re.compile(r"^\| (?:week|two weeks|three weeks) .*\| (\d+) \|$", flags=re.M)
BEGIN = re.compile(r"^\(notes-(\w+)\)=.*?In class: begin Exercise (\d+\.\d)\.", flags=re.M | re.S)


def read_weeks(root):
    """Return the plans of courses.yml that go by weeks."""
    ways = yaml.safe_load(Path(root, "book", "courses.yml").read_text(encoding="utf-8"))
    return [way for way in ways if way.get("weekly")]


def weeks(root, key):
    """Return a plan with a row for each meeting, the minutes computed.

    Raises:
        ValueError: If there is no such plan; if a part of a meeting is unknown; if a lesson builds on one
            that neither comes before nor is told of; if a test has too few questions on lessons that came
            before; or if a meeting leaves too few minutes for exercises and slack.
    """
    plans = read_weeks(root)
    plan = next((each for each in plans if each["key"] == key), None)
    if plan is None:
        known = ", ".join(each["key"] for each in plans)
        raise ValueError(f"expected a weekly plan of courses.yml ({known}), got {key!r}")
    lessons, starts = {each["slug"]: each for each in written(root)}, starts_of(root)
    without, taught, rows = plan.get("without", {}), [], []
    for words in plan["meetings"]:
        row = {"lectured": [], "read": [], "tests": [], "steps": [], "other": []}
        for part, slug in parts(words):
            if part in mocks(Path(root, "book", "teach")):
                row["tests"].append(test_of(root, part, taught, key, least=POINTS))
            elif slug in lessons:
                row["read" if part != slug else "lectured"].append(lessons[slug])
            elif part in CHALLENGE:
                row["steps"].append(CHALLENGE[part])
            elif " " not in slug:
                raise ValueError(f"plan {key}: expected a lesson, a test, a step or words, got {part!r}")
            else:
                row["other"].append(part)
        for lesson in [*row["lectured"], *row["read"]]:
            if missing := {*lesson.get("after", [])} - {*taught, *without}:
                raise ValueError(f"plan {key}: {lesson['slug']} builds on {', '.join(sorted(missing))}")
            taught.append(lesson["slug"])
        rows.append(row | minutes_of(root, row, plan["meeting"], key, starts))
    for row, after in zip(rows, [*rows[1:], {"read": []}], strict=True):
        row["before"] = after["read"]
        row["tasks"] = [words for _, _, words, minutes in row["steps"] if minutes]
        row["minutes"] = row["home"] + sum(lesson["minutes"] for lesson in row["before"])
        row["minutes"] += sum(minutes for *_, minutes in row["steps"])
    told = [(lessons[slug], words.strip()) for slug, words in without.items() if slug not in taught]
    left_out = [each for slug, each in lessons.items() if slug not in taught]
    exam = test_of(root, plan.get("exam", "exam"), taught, key, least=0)
    made = {"exam": exam, "rows": rows, "told": told, "left_out": left_out} | load_of(rows, plan["meeting"])
    made |= longer(made, project_hours(root))
    return {"folded": False, "a_week": 1} | plan | made | {"challenge": any(row["steps"] for row in rows)}


def load_of(rows, meeting):
    """Return a student's hours: in class, at home, to read each lecture's lesson again; and the credits."""
    found = {
        "class": round(len(rows) * meeting / 60),
        "home": round(sum(row["minutes"] for row in rows) / 60),
        "again": round(sum(lesson["minutes"] for row in rows for lesson in row["lectured"]) / 60),
    }
    total = sum(found.values())
    return found | {"total": total, "credits": credits_of(total)}


def credits_of(hours):
    """Return how many credits of the ECTS hours are: 5.0 to 6.0."""
    return " to ".join(f"{hours / each:.1f}" for each in CREDIT[::-1])


def project_hours(root):
    """Return how many hours the project asks of a student, as the table of its page says."""
    page = Path(root, "book", "teach", "project.md").read_text(encoding="utf-8")
    return sum(map(int, STEP_OF_PROJECT.findall(page)))


def longer(plan, project):
    """Return hours and credits of a plan with the project; what the challenge takes at home falls away."""
    challenge = sum(minutes for row in plan["rows"] for *_, minutes in row["steps"])
    hours = plan["total"] + project - round(challenge / 60)
    return {"project": project, "longer": hours, "more": credits_of(hours)}


def test_of(root, name, taught, key, least):
    """Return a test: its title, its minutes, and the numbers of the questions that a class cannot know."""
    test = read_mock(Path(root, "book", "teach"), name)
    out = [n for n, task in enumerate(test.tasks, 1) if task.question.lesson not in taught]
    lost = sum(test.tasks[n - 1].question.minutes for n in out)
    if test.points - lost < least:
        raise ValueError(f"plan {key}: {name} has {test.points - lost} points on lessons that came before")
    title = test.title.partition(":")[0]
    return {
        "name": name,
        "title": title.partition(" (")[0] if out else title,  # not the lessons that the class does not have
        "without": out,
        "minutes": test.minutes - lost,
    }


def minutes_of(root, row, whole, key, starts):
    """Return the minutes of a meeting, and which exercises are for the class and for home."""
    about = [meeting(root, each, flipped=False) for each in row["lectured"]]
    about += [meeting(root, each, flipped=True) for each in row["read"]]
    lecture = sum(each["lecture"] for each in about)
    votes = sum(each["votes"] + each["board"] for each in about)
    test = sum(each["minutes"] for each in row["tests"])
    challenge = sum(minutes for _, minutes, *_ in row["steps"])
    free = whole - lecture - votes - test - challenge
    exercises = (free - SLACK) // STEP * STEP
    if about:
        exercises = min(exercises, AT_MOST)
    least = AT_LEAST if about or row["tests"] or row["other"] else 0
    if exercises < least:
        raise ValueError(
            f"plan {key}: {free} minutes are left for exercises and slack, fewer than {least + SLACK}"
        )
    found = {
        "lecture": lecture,
        "votes": votes,
        "test": test,
        "challenge": challenge,
        "exercises": exercises,
        "slack": free - exercises,
    }
    order = [exercises_of(root, each, starts) for each in [*row["lectured"], *row["read"]]]
    count = max(1, 6 * exercises // EXERCISES)
    home = [exercise_list(each[count * (n == 0) :]) for n, each in enumerate(order)]
    return found | {
        "here": exercise_list(order[0][:count]) if order else "",
        "there": "; ".join(filter(None, home)),
        "home": EXERCISES * len(order) - exercises * bool(order),
    }


def exercises_of(root, lesson, starts):
    """Return the six exercises of a lesson, first the one with which a class begins.

    Two are graded, and four on paper: exercises with numbers, or a list, whose items have none.
    """
    text = "\n".join("".join(cell["source"]) for cell in cells_of(root, lesson["page"]))
    found = NUMBER.findall(text)
    found += [f"{int(lesson['number'])}.paper {n}" for n in range(1, 7 - len(found))]
    return sorted(found, key=lambda number: (number != starts.get(lesson["slug"]), found.index(number)))


def starts_of(root):
    """Return with which exercise a class begins, by lesson, as the lecturer's notes say."""
    return dict(BEGIN.findall(Path(root, "book", "teach", "notes.md").read_text(encoding="utf-8")))


def exercise_list(exercises):
    """Return exercises of a lesson in a few words, neighbors joined.

    >>> exercise_list(["18.2", "18.1", "18.3", "18.6"])
    '18.1–18.3, 18.6'
    """
    graded = sorted((each for each in exercises if "paper" not in each), key=lambda each: each.split(".")[1])
    paper = [each.split("paper ")[1] for each in exercises if "paper" in each]
    parts = [join_neighbors(graded), f"on paper\u00a0{join_neighbors(paper)}" if paper else ""]
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


class Weeks(Directive):
    """A plan, week by week."""

    required_arguments = 1
    optional_arguments = 1

    def run(self):
        """Return a table, or a list of topics."""
        self.note()
        teach = Path(self.env.srcdir, "book", "teach")
        for path in (teach / "notes.md", teach / "project.md", *teach.glob("mock/*.yml")):
            self.env.note_dependency(str(path))
        try:
            plan = weeks(self.env.srcdir, self.arguments[0])
        except ValueError as error:
            raise self.error(str(error)) from error
        return [raw(HTML.topics(plan) if self.arguments[1:] else HTML.weeks(plan))]


class Workload(SphinxRole):
    """``{workload}`home today-14-90```: hours at home, in class, again, in total; credits; lessons read.

    ``project`` is what the project takes, ``longer`` the hours with it, and ``more`` their credits.
    """

    def run(self):
        """Return the number."""
        kind, _, key = self.text.partition(" ")
        try:
            plan = weeks(self.env.srcdir, key)
            told = {"read": sum(len(row["read"]) for row in plan["rows"])}
            told |= {name: plan[name] for name in HOURS}
            return [nodes.Text(str(told[kind]))], []
        except (KeyError, ValueError) as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]


def setup(app):
    """Register the extension."""
    app.add_directive("weeks", Weeks)
    app.add_role("workload", Workload())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
