"""The ledger of claims and the plan of lessons, made from book/claims.yml and from the stored outputs.

Directives: ``{ledger}`` writes every claim with what the lessons measured, ``{by-lecture} A`` those of a
lecture slide by slide, ``{misconceptions}`` those that are often believed, ``{highlights}`` some of them, and
``{counts}`` how many there are; ``{lessons}`` writes the plan of the book. On the lessons' pages each claim's
card gets its verdict and a link to its row.
"""

import re
from pathlib import Path

import yaml
from docutils import nodes
from ledger_data import entries, read_claims, read_lessons, sources
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


def note(env):
    """Say that a page depends on the files that the ledger is made from."""
    for path in sources(env.srcdir):
        env.note_dependency(str(path))


class Ledger(SphinxDirective):
    """Every claim, grouped by lesson, with what was measured."""

    def run(self):
        """Return a summary and one section a lesson."""
        note(self.env)
        found, seen = entries(self.env.srcdir), set()
        sections = [self._section(lesson, found, seen) for lesson in read_lessons(self.env.srcdir)]
        script = raw('<script src="../_static/ledger.js"></script>')
        return [raw(HTML.summary(found)), *[section for section in sections if section], script]

    def _section(self, lesson, found, seen):
        own = [entry for entry in found if entry.belongs_to(lesson)]
        if not lesson["page"]:  # a lesson to come repeats nothing
            own = [entry for entry in own if entry.row["id"] not in seen]
        if not own:
            return None
        section = nodes.section(ids=[f"lesson-{lesson['slug']}"])
        title = f"Lesson {lesson['number']}. {lesson['title']}" if lesson["page"] else lesson["title"]
        section += nodes.title("", title)
        told = [(entry, entry.places_in(lesson), entry.row["id"] not in seen) for entry in own]
        seen |= {entry.row["id"] for entry in own}
        section += raw(HTML.claims(told, lesson["page"]))
        return section


class ByLecture(SphinxDirective):
    """The statements of one lecture, in its order, with the slide and where each is measured."""

    required_arguments = 1

    def run(self):
        """Return a table."""
        note(self.env)
        letter = self.arguments[0]
        rows = [entry for entry in entries(self.env.srcdir) if entry.row["lecture"] == letter]
        if not rows:
            raise self.error(f"no statement is of lecture {letter!r}")
        return [raw(HTML.lecture(rows))]


class Misconceptions(SphinxDirective):
    """What is often believed, by topic, and the rows of the ledger that settle it."""

    def run(self):
        """Return a section for each topic."""
        note(self.env)
        path = Path(self.env.srcdir, "book", "misconceptions.yml")
        self.env.note_dependency(str(path))
        found = {entry.row["id"]: entry for entry in entries(self.env.srcdir)}
        sections = []
        for number, topic in enumerate(yaml.safe_load(path.read_text(encoding="utf-8")), start=1):
            section = nodes.section(ids=[f"topic-{number}"])
            section += nodes.title("", topic["topic"])
            rows = [(each["belief"], found[each["row"]]) for each in topic["beliefs"]]
            section += raw(HTML.misconceptions(rows))
            sections.append(section)
        return sections


class Highlights(SphinxDirective):
    """What some claims measured, named by their ids; those of lessons that are not written are left out."""

    has_content = True

    def run(self):
        """Return a list of sentences, each with the claim that it measures."""
        note(self.env)
        found = {entry.row["id"]: entry for entry in entries(self.env.srcdir) if entry.places}
        wanted = [found[key] for key in " ".join(self.content).split() if key in found]
        return [raw(HTML.highlights([(entry.row, entry.places[-1]) for entry in wanted]))] if wanted else []


class Counts(SphinxDirective):
    """One sentence with the number of claims and of those that are measured."""

    def run(self):
        """Return the sentence."""
        note(self.env)
        found = entries(self.env.srcdir)
        kinds = [entry.kind for entry in found]
        verdicts = [entry.row["verdict"] for entry in found]
        shown = f", and {kinds.count('shown')} shown, as they are true by definition" * ("shown" in kinds)
        text = (
            f"Five university lectures make {len(found)} statements about transformers. "
            f"{verdicts.count('care')} of them hold only under conditions, and {verdicts.count('wrong')} "
            f"are not true as they stand. {kinds.count('claimed')} are measured{shown}."
        )
        return [nodes.paragraph("", text)]


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
    app.add_directive("by-lecture", ByLecture)
    app.add_directive("misconceptions", Misconceptions)
    app.add_directive("lessons", Lessons)
    app.add_directive("highlights", Highlights)
    app.add_directive("counts", Counts)
    app.connect("html-page-context", cards, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
