"""What a visitor, a student or a teacher asks first: how long it takes, what comes before what, one picture.

Role ``{hours}`` gives the hours of all lessons: ``reading``, ``exercises`` or ``all``. Directives:
``{picture} slug name`` shows a figure of a lesson, ``{prerequisites}`` draws which lesson builds on which,
and ``{objectives}`` lists what each lesson teaches.
"""

import re
import textwrap
from pathlib import Path

from book_page import inlined
from docutils import nodes
from ledger import raw
from ledger_data import cells_of, cost_of, read_lessons
from lesson_figures import figures
from lesson_opening import PAUSE, PREDICTION, minutes, rounded
from markupsafe import Markup
from sphinx.util.docutils import SphinxDirective, SphinxRole
from templates import macros

from exformer_lessons.diagrams import arrow, box, draw, grid

HTML = macros("course.html")
#: Minutes for a lesson's exercises, graded ones and those on paper together, as a lecturer estimated them.
EXERCISES = 80
#: A prediction with options, on which a class votes.
CHOICE = re.compile(rf"{PREDICTION.pattern}(?:.|\n>)*?\(a\)", flags=re.M)
#: A vote; a vote with discussion; the board, or a live figure.
VOTE, DISCUSSED, BOARD = 3, 5, 10
#: The least that a meeting leaves unplanned.
SLACK = 10
#: Where the drawing of what builds on what has each lesson, so that all arrows are short; and a box of it.
PLACES = ("01 02 03 04", ".. 09 08 05", "13 11 10 06", "15 14 12 07", "16 17 18 ..", ".. 19 20 ..")
WIDE, HIGH = 90, 30


def written(root):
    """Return the written lessons, each with the minutes that it takes to read and what running it costs."""
    return [
        lesson
        | {"minutes": rounded(minutes(cells_of(root, lesson["page"]))), "cost": cost_of(root, lesson["page"])}
        for lesson in read_lessons(root)
        if lesson["page"]
    ]


def parts(meeting):
    """Return what a meeting of courses.yml joins by `` + ``, each with the slug in it, ``read`` left off."""
    return [(part, part.removeprefix("read ")) for part in meeting.split(" + ")]


def hours(root, kind):
    """Return the hours of all lessons: "reading", "exercises" or "all".

    Raises:
        ValueError: If the kind is another.
    """
    lessons = written(root)
    total = {"reading": sum(lesson["minutes"] for lesson in lessons), "exercises": EXERCISES * len(lessons)}
    total["all"] = total["reading"] + total["exercises"]
    if kind not in total:
        raise ValueError(f"hours of what? one of {', '.join(total)}, got {kind!r}")
    return round(total[kind] / 60)


def direct(lessons):
    """Return {slug: the lessons that it builds on}, without those that follow from another one.

    Args:
        lessons: Of book/lessons.yml, in their order.
    """
    after = {lesson["slug"]: lesson.get("after", []) for lesson in lessons}

    def before(slug):
        return set(after[slug]).union(*map(before, after[slug]))

    return {
        slug: [one for one in of if not any(one in before(other) for other in of if other != one)]
        for slug, of in after.items()
    }


def size(plan):
    """Return how many meetings of how many minutes a plan has: 14 × 90, or 14 × (90 + 90) with tutorials."""
    minutes = f"({plan['meeting']} + {plan['tutorial']})" if plan.get("tutorial") else plan["meeting"]
    return f"{len(plan['meetings'])}\u00a0×\u00a0{minutes}".replace(" ", "\u00a0")


def meeting(root, lesson, *, flipped):
    """Return the minutes of a meeting about a lesson, exercises and slack apart.

    A lecture takes as long as reading the lesson without the pauses for its predictions, on which the class
    votes. Where the lesson is read at home before, the meeting is for votes with discussion, and the board or
    a live figure.
    """
    cells = cells_of(root, lesson["page"])
    text = "\n".join("".join(cell["source"]) for cell in cells)
    votes = len(CHOICE.findall(text))
    if flipped:
        return {"lesson": lesson, "lecture": 0, "votes": DISCUSSED * votes, "board": BOARD}
    lecture = rounded(minutes(cells) - PAUSE * votes)
    return {"lesson": lesson, "lecture": lecture, "votes": VOTE * votes, "board": 0}


def graph(lessons):
    """Draw which lesson builds on which: an arrow from each that comes directly before.

    Raises:
        ValueError: If a lesson has no place, or if an arrow would not lead to a neighbor.
    """
    places = {number: (x, y) for y, line in enumerate(PLACES) for x, number in enumerate(line.split())}
    at = {each["slug"]: places.get(each["number"]) for each in lessons}
    if missing := [slug for slug, place in at.items() if place is None]:
        raise ValueError(f"no place in the drawing of prerequisites: {', '.join(missing)}")
    boxes = {}
    for each in lessons:
        title = (
            each["title"]
            .partition(",")[0]
            .removeprefix("The ")
            .removeprefix("decoder-only ")
            .removeprefix("From 2017 to ")
            .removesuffix(" with attention")
        )
        lines = textwrap.wrap(f"{each['number']} {title[0].upper()}{title[1:]}", 11)
        boxes[at[each["slug"]]] = box("\n".join(lines), width=WIDE, height=HIGH)
    marks = []
    for slug, of in direct(lessons).items():
        for one in of:
            (x, y), (to_x, to_y) = at[one], at[slug]
            if max(abs(x - to_x), abs(y - to_y)) > 1:
                raise ValueError(f"{slug} builds on {one}, which is no neighbor in the drawing")
            start, end = boxes[x, y], boxes[to_x, to_y]
            marks.append(arrow(start, end) if y == to_y else arrow(start.bottom, end.top))
    every = [[boxes.get((x, y)) for x in range(len(line.split()))] for y, line in enumerate(PLACES)]
    return draw(grid(every, gap=(12, 16)), *marks, padding=4)


class Hours(SphinxRole):
    """``{hours}`reading```: a whole number."""

    def run(self):
        """Return the number."""
        return [nodes.Text(str(hours(self.env.srcdir, self.text)))], []


class Directive(SphinxDirective):
    """What depends on the plan of the book and on its lessons."""

    def note(self):
        """Say that the page changes with them."""
        root = Path(self.env.srcdir)
        for path in (root / "book" / "lessons.yml", root / "book" / "courses.yml"):
            self.env.note_dependency(str(path))
        for lesson in read_lessons(root):
            if lesson["page"]:
                self.env.note_dependency(str(root / f"{lesson['page']}.ipynb"))


class Picture(Directive):
    """A figure of a lesson, by its name, with the caption of the page that shows it."""

    required_arguments = 2
    has_content = True

    def run(self):
        """Return the figure, linked to the lesson."""
        self.note()
        slug, name = self.arguments
        lesson = next((each for each in written(self.env.srcdir) if each["slug"] == slug), None)
        cells = cells_of(self.env.srcdir, lesson["page"]) if lesson else []
        figure = next((each for each in figures(cells) if each.name == name), None)
        if figure is None:
            raise self.error(f"lesson {slug} has no figure {name!r} with an SVG")
        picture = inlined(figure.svg, prefix=f"{name}-", alt=figure.alt)
        link = f"../{lesson['page']}.html#{name}"
        where = f"Lesson {lesson['number']}: {lesson['title']}"
        return [raw(HTML.picture(Markup(picture), " ".join(self.content), link, where))]


class Prerequisites(Directive):
    """Which lesson builds on which, as a drawing; and in words, for who does not see it."""

    def run(self):
        """Return the drawing."""
        self.note()
        lessons = written(self.env.srcdir)
        after, number = direct(lessons), {each["slug"]: each["number"] for each in lessons}
        told = [
            f"{number[slug]} builds on {' and '.join(number[one] for one in of)}"
            for slug, of in after.items()
            if of
        ]
        alt = f"Lessons, and what they build on: {', '.join(told)}."
        return [raw(HTML.drawing(Markup(inlined(graph(lessons).svg, prefix="prerequisites-", alt=alt))))]


class Objectives(Directive):
    """What each lesson needs and teaches, and how long it takes."""

    def run(self):
        """Return a list."""
        self.note()
        return [raw(HTML.objectives(written(self.env.srcdir)))]


def setup(app):
    """Register the extension."""
    app.add_role("hours", Hours())
    app.add_directive("picture", Picture)
    app.add_directive("prerequisites", Prerequisites)
    app.add_directive("objectives", Objectives)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
