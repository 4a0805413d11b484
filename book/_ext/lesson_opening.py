"""The top of a lesson's page: title, what the reader needs and will be able to do, minutes.

The title is “Concept: claim”; the claim is marked, so that the sidebar can show it smaller, below.
What is needed and learned stands in book/lessons.yml; the minutes are counted from the lesson itself.
"""

import re
from pathlib import Path

from docutils import nodes
from ledger_data import FENCE, cells_of, read_lessons
from lesson_links import link
from sphinx.transforms import SphinxTransform

EXERCISES = re.compile(r"^## Exercises$.*?(?=^## |\Z)", flags=re.M | re.S)
ADDRESS = re.compile(r"\]\([^()\s]*\)")  # of a link, whose words are read
TABLE_ROW = re.compile(r"^\|.*\|\s*$\n?", flags=re.M)
TABLE = re.compile(r"^\|[-: |]+\|\s*$", flags=re.M)
PREDICTION = re.compile(r"^> \*\*(Predict|Break it)\.\*\*", flags=re.M)
#: How fast a lesson is read: words and lines of code per minute; minutes for a figure, table and prediction.
#: Fitted to readers' estimates for all twenty lessons, 34 to 50 minutes; it misses them by 4 on average.
WORDS, LINES, FIGURE, PAUSE = 80, 15, 1.25, 1.5


def minutes(cells):
    """Return how long a lesson takes to read, exercises apart.

    Words, those of captions too, over 80, open lines of code over 15, one and a quarter minutes for a figure,
    one and a half for a table and for a prediction.

    Args:
        cells: The cells of its notebook.
    """
    prose = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for part in (EXERCISES, FENCE):
        prose = part.sub("", prose)
    pauses = len(PREDICTION.findall(prose)) + len(TABLE.findall(prose))
    for part, instead in ((TABLE_ROW, ""), (ADDRESS, "]"), (re.compile("^>", flags=re.M), "")):
        prose = part.sub(instead, prose)
    lines = figures = 0
    for cell in cells:
        if cell["cell_type"] == "code":
            if not {"hide-input", "exercise"} & set(cell["metadata"].get("tags", [])):
                lines += sum(bool(line.strip()) for line in "".join(cell["source"]).splitlines())
            shown = [output.get("data", {}) for output in cell["outputs"]]
            figures += sum(bool({"image/png", "image/svg+xml"} & set(data)) for data in shown)
            pauses += sum("<table" in "".join(data.get("text/html", "")) for data in shown)
            prose += " " + cell["metadata"].get("mystnb", {}).get("figure", {}).get("caption", "")
    return len(prose.split()) / WORDS + lines / LINES + figures * FIGURE + pauses * PAUSE


def rounded(number):
    """Return minutes as they are told: to the nearest five, at least five."""
    return max(5, 5 * round(number / 5))


class Heading(SphinxTransform):
    """Mark the claim in the title of each lesson; the sidebar takes the title from here."""

    default_priority = 600

    def apply(self, **options):
        """Find the lesson by its page; other pages, and a title without a claim, stay as they are."""
        lesson = any(row["page"] == self.env.docname for row in read_lessons(self.env.srcdir))
        title = next(iter(self.document.findall(nodes.title)), None)
        concept, colon, claim = title.astext().partition(": ") if lesson and title is not None else ("",) * 3
        if claim:
            marks = nodes.inline("", colon, classes=["colon"]), nodes.inline("", claim, classes=["claimed"])
            title.children = []
            title += [nodes.Text(concept), *marks]


class Opening(SphinxTransform):
    """Write the box after the title of each lesson."""

    default_priority = 300

    def apply(self, **options):
        """Find the lesson by its page; other pages stay as they are."""
        lessons = read_lessons(self.env.srcdir)
        lesson = next((row for row in lessons if row["page"] == self.env.docname), None)
        title = next(iter(self.document.findall(nodes.title)), None)
        if lesson is None or title is None:
            return
        self.env.note_dependency(str(Path(self.env.srcdir, "book", "lessons.yml")))
        box = nodes.container(classes=["lesson-opening"])
        needs = self._needs(lesson, {row["slug"]: row for row in lessons})
        read = rounded(minutes(cells_of(self.env.srcdir, lesson["page"])))
        line = nodes.paragraph("", "", classes=["needs"])
        if needs:
            line += [nodes.strong("", "You need"), nodes.Text(" "), *needs, nodes.Text(". ")]
        line += nodes.Text(f"About {read} minutes to read, exercises apart.")
        box += line
        if lesson.get("able"):
            able = "; ".join(lesson["able"])
            box += nodes.paragraph("", "", nodes.strong("", "Afterwards you can"), nodes.Text(f" {able}."))
        title.parent.insert(title.parent.index(title) + 1, box)

    def _needs(self, lesson, lessons):
        """Return the words of what is needed, and links to the lessons before."""
        found = []
        for place, slug in enumerate(lesson.get("after", []), start=1):
            before = lessons[slug]
            last = place == len(lesson["after"])
            found += [nodes.Text("" if place == 1 else " and " if last else ", ")]
            found += [link(f"lesson {before['number']} ({before['title']})", before["page"])]
        words = [nodes.Text(lesson["needs"])] if lesson.get("needs") else []
        return [*words, *([nodes.Text(", and ")] if words and found else []), *found]


def setup(app):
    """Register the extension."""
    app.add_transform(Heading)
    app.add_transform(Opening)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
