"""The ledger of claims and the plan of lessons, made from book/claims.yml and from the stored outputs.

Directives: ``{ledger}`` writes every claim with what the lessons measured, ``{highlights}`` some of them, and
``{counts}`` how many there are; ``{lessons}`` writes the plan of the book. On the lessons' pages each claim's
card gets its verdict and a link to its row.
"""

import json
import re
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from templates import macros

LINE = re.compile(r"(?:claim|shown) ([A-Z]\d\d) \| (.+)")
CARD = re.compile(
    r'<div class="claim" id="claim-(\w+)" style="[^"]*"><strong>(?:Claim|Shown) \w+</strong> (.*?)</div>',
    re.S,
)
HTML = macros("ledger.html")


def read_claims(root):
    """Return the rows of the ledger, in their order; none where the list is not written."""
    path = Path(root, "book", "claims.yml")
    return (yaml.safe_load(path.read_text(encoding="utf-8")) or []) if path.is_file() else []


def read_lessons(root):
    """Return the plan: number, title and question of each lesson, and the page's name where it is written."""
    lessons = yaml.safe_load(Path(root, "book", "lessons.yml").read_text(encoding="utf-8"))
    for lesson in lessons:
        found = sorted(Path(root, "notebooks").glob(f"{lesson['number']}_*.ipynb"))
        lesson["page"] = f"notebooks/{found[0].stem}" if found else ""
    return lessons


def measured(root, page):
    """Return {claim id: sentence} from the outputs that are stored in a lesson."""
    found = {}
    notebook = json.loads(Path(root, f"{page}.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            text = "".join(output.get("data", {}).get("text/plain", output.get("text", "")))
            found |= {m[1]: m[2] for m in map(LINE.fullmatch, text.splitlines()) if m}
    return found


def raw(text):
    """Wrap HTML as a node."""
    return nodes.raw("", str(text), format="html")


class Ledger(SphinxDirective):
    """Every claim, grouped by lesson, with what was measured."""

    def run(self):
        """Return a summary and one section a lesson."""
        root = self.env.srcdir
        rows, lessons = read_claims(root), read_lessons(root)
        for name in ("claims.yml", "lessons.yml"):
            self.env.note_dependency(str(Path(root, "book", name)))
        outputs = {lesson["number"]: self._outputs(lesson["page"]) for lesson in lessons}
        seen = set()
        sections = [self._section(lesson, rows, outputs[lesson["number"]], seen) for lesson in lessons]
        done = [row for row in rows if any(row["id"] in outputs[n] for n in row["lessons"])]
        return [raw(HTML.summary(rows, done)), *[section for section in sections if section]]

    def _outputs(self, page):
        if not page:
            return {}
        self.env.note_dependency(str(Path(self.env.srcdir, f"{page}.ipynb")))
        return measured(self.env.srcdir, page)

    def _section(self, lesson, rows, outputs, seen):
        rows = [row for row in rows if lesson["number"] in row["lessons"]]
        if not rows:
            return None
        section = nodes.section(ids=[f"lesson-{lesson['number']}"])
        section += nodes.title("", f"Lesson {lesson['number']}. {lesson['title']}")
        if not lesson["page"]:
            section += raw('<p class="ledger-note">This lesson is not written yet: nothing is measured.</p>')
        told = [(row, outputs.get(row["id"]), row["id"] not in seen) for row in rows]
        seen |= {row["id"] for row in rows}
        section += raw(HTML.claims(told, lesson["page"]))
        return section


class Highlights(SphinxDirective):
    """What some claims measured, named by their ids; those of lessons that are not written are left out."""

    has_content = True

    def run(self):
        """Return a list of sentences, each with the claim that it measures."""
        root, found = self.env.srcdir, {}
        for lesson in read_lessons(root):
            if lesson["page"]:
                self.env.note_dependency(str(Path(root, f"{lesson['page']}.ipynb")))
                found |= {key: (says, lesson) for key, says in measured(root, lesson["page"]).items()}
        rows = {row["id"]: row for row in read_claims(root)}
        wanted = [key for key in " ".join(self.content).split() if key in found and key in rows]
        return [raw(HTML.highlights([(rows[key], *found[key]) for key in wanted]))] if wanted else []


class Counts(SphinxDirective):
    """One sentence with the number of claims and of those that are measured."""

    def run(self):
        """Return the sentence."""
        root = self.env.srcdir
        rows = read_claims(root)
        pages = [lesson["page"] for lesson in read_lessons(root) if lesson["page"]]
        done = {key for page in pages for key in measured(root, page)}
        verdicts = [row["verdict"] for row in rows]
        text = (
            f"Five university lectures make {len(rows)} statements about transformers that can be tested. "
            f"{verdicts.count('care')} of them hold only under conditions, and {verdicts.count('wrong')} "
            f"are not true as they stand. So far {len(done)} are measured, in {len(pages)} "
            f"{'lesson' if len(pages) == 1 else 'lessons'}."
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
        return HTML.card(row, match[2]) if row else match[0]

    context["body"] = CARD.sub(replace, context["body"])


def setup(app):
    """Register the extension."""
    app.add_directive("ledger", Ledger)
    app.add_directive("lessons", Lessons)
    app.add_directive("highlights", Highlights)
    app.add_directive("counts", Counts)
    app.connect("html-page-context", cards, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
