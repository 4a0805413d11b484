"""The ledger, the misconceptions and the plan of lessons, from book/claims.yml and the stored outputs.

Directives: ``{ledger}`` writes a line for each claim, with its trial, control and sabotage folded;
``{misconception} A16`` one that is often believed, and what was measured; ``{lessons}`` writes the plan of
the book. On the lessons' pages each claim's card gets its verdict and a link to its row.
"""

import re
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from ledger_data import entries_of, read_claims, read_lectures, read_lessons
from sphinx.util.docutils import SphinxDirective
from templates import macros

from exformer_lessons.formatting import typeset

CARD = re.compile(
    r'<div class="claim" id="claim-(\w+)" style="[^"]*"><strong>(Claim|Shown) \w+</strong> (.*?)</div>',
    re.S,
)
HTML = macros("ledger.html")


def raw(text):
    """Wrap HTML as a node."""
    return nodes.raw("", str(text), format="html")


class Ledger(SphinxDirective):
    """Every claim, in the section of the lesson that measures it first."""

    def run(self):
        """Return a summary and one section a lesson."""
        found = entries_of(self.env)
        sections = [section(lesson, found) for lesson in read_lessons(self.env.srcdir)]
        script = raw('<script src="../_static/ledger.js"></script>')
        return [raw(HTML.summary(found, read_lectures(self.env.srcdir))), *filter(None, sections), script]


def section(lesson, found):
    """Return the section of a lesson; nothing where it measures no claim first."""
    own = [entry for entry in found if entry.topics[:1] == [lesson["slug"]]]
    if not own:
        return None
    title = f"Lesson {lesson['number']}. {lesson['title']}" if lesson["page"] else lesson["title"]
    made = nodes.section(ids=[f"lesson-{lesson['slug']}"])
    made += nodes.title("", title)
    made += raw(HTML.claims(own))
    return made


class Misconception(SphinxDirective):
    """What is often believed, where it is said, and what was measured: three paragraphs.

    In the last ``{name:.0%}`` is a value of the claim.
    """

    required_arguments = 1
    has_content = True

    def run(self):
        """Return a container with the three, and a link to the row."""
        entry = next((each for each in entries_of(self.env) if each.row["id"] == self.arguments[0]), None)
        if entry is None:
            raise self.error(f"no row of the ledger is {self.arguments[0]!r}")
        box = nodes.container(classes=["misconception"])
        try:
            lines = [filled(entry, line) for line in self.content]
        except ValueError as error:
            raise self.error(str(error)) from error
        self.state.nested_parse(StringList(lines, self.content.source(0)), self.content_offset, box)
        if [type(each) for each in box] != [nodes.paragraph] * 3:
            raise self.error(
                "expected three paragraphs: what is believed, where it is said, what was measured"
            )
        for paragraph, name in zip(box, ("belief", "source", "measured"), strict=True):
            paragraph["classes"].append(name)
        box[2].insert(0, raw(HTML.verdict(entry.row)))
        box[2] += raw(HTML.settled(entry))
        return [box]


def filled(entry, line):
    """Write a claim's values into a line of Markdown, in bold; formulas stay as they are."""
    told = re.split(r"(\$[^$]+\$)", line)
    told[::2] = [
        "".join(f"**{part}**" if n % 2 else part for n, part in enumerate(entry.parts(one)))
        for one in told[::2]
    ]
    return "".join(told)


class Lessons(SphinxDirective):
    """The plan of the book: title and question of each lesson, a link to those that are written."""

    def run(self):
        """Return a list."""
        self.env.note_dependency(str(Path(self.env.srcdir, "book", "lessons.yml")))
        return [raw(HTML.plan(read_lessons(self.env.srcdir)))]


def cards(app, pagename, templatename, context, doctree):
    """Give each claim's card its verdict and a link to its row of the ledger."""
    if not pagename.startswith("notebooks/") or not context.get("body"):
        return
    rows = {row["id"]: row for row in read_claims(app.srcdir)}

    def replace(match):
        row = rows.get(match[1])
        up = "../" * pagename.count("/")
        return HTML.card(row, match[2].lower(), typeset(match[3]), up) if row else match[0]

    context["body"] = CARD.sub(replace, context["body"])


def setup(app):
    """Register the extension."""
    app.add_directive("ledger", Ledger)
    app.add_directive("misconception", Misconception)
    app.add_directive("lessons", Lessons)
    app.connect("html-page-context", cards, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
