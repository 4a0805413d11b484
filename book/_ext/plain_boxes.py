"""Plain Markdown becomes boxes: quotations with a bold first word, and what ``<details>`` folds away.

A lesson reads right wherever a notebook is shown, as its Markdown has no directive. Here, on the parsed page,

- ``> **Predict.** …`` becomes a box with that title; the names are in ``BOXES``, and a bold beginning with a
  full stop that is not among them fails the build;
- ``> **Exercise 3.1 (Attention).** …`` becomes the box of an exercise; the number must be right;
- ``<details><summary>Solution</summary>`` becomes the folded solution of the exercise before it; with
  another summary, a folded box of that title.
"""

import re

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

LOG = logging.getLogger(__name__)
BOXES = (
    *("Question", "Predict", "Try it", "Break it", "Tested", "Correction", "Definition", "Note", "Warning"),
    *("In short", "Exercise"),
)
TITLE = re.compile(rf"(?P<name>{'|'.join(BOXES)})(?: (?P<number>\d+(?:\.\d+)?))?(?: \(.+\))?\.")
OPEN = re.compile(r"\s*<details>\s*<summary>([^<]+)</summary>\s*")
HARD_BREAK = "<br />\n"  # what MyST makes of a backslash at the end of a line
CLOSE = re.compile(r"\s*</details>\s*")


class Boxes(SphinxTransform):
    """Turn quotations and folded parts into boxes."""

    default_priority = 400

    def apply(self, **options):
        """Take quotations first, as a solution may need the exercise before it, and fold from within."""
        for quote in list(self.document.findall(nodes.block_quote)):
            self._quotation(quote)
        for part in [*self.document.findall(nodes.raw)][::-1]:
            if part.parent is not None and OPEN.fullmatch(part.astext()):
                self._details(part)
        if self.env.docname.startswith("notebooks/"):
            for part in self.document.findall(nodes.raw):
                if part["format"] == "html" and part.astext() != HARD_BREAK and not _in_output(part):
                    LOG.warning(
                        "raw HTML in a lesson, or <details> that is not closed: %s",
                        " ".join(part.astext().split()),
                        location=part,
                    )

    def _quotation(self, quote):
        first = quote[0]
        inside = [node for node in first.children if node.astext()]  # MyST leaves an empty text before it
        strong = inside[0] if isinstance(first, nodes.paragraph) and inside else None
        if not isinstance(strong, nodes.strong) or not strong.astext().endswith("."):
            return
        title = TITLE.fullmatch(strong.astext())
        if title is None:
            words = "a quotation begins with the bold words “%s”: expected one of %s, each with a full stop"
            LOG.warning(words, strong.astext(), ", ".join(BOXES), location=quote)
            return
        if len(inside) > 1 and isinstance(inside[1], nodes.Text):
            inside[1] = nodes.Text(inside[1].astext().lstrip())
        if len(inside) > 1:
            quote.replace(first, nodes.paragraph("", "", *inside[1:]))
        else:
            quote.remove(first)
        heading = nodes.title("", "", *strong.children)
        last = heading[-1]
        heading.replace(last, nodes.Text(last.astext().removesuffix(".")))
        box = nodes.admonition(
            "", heading, *quote.children, classes=[title["name"].lower().replace(" ", "-")]
        )
        if title["name"] == "Exercise":
            box["number"] = title["number"]
            box["ids"] = [nodes.make_id(f"exercise-{title['number'] or heading.astext()}")]
        box.source, box.line = quote.source, quote.line
        quote.replace_self(box)

    def _details(self, opening):
        parent, start = opening.parent, opening.parent.index(opening)
        rest = parent.children[start + 1 :]
        ends = [
            i for i, node in enumerate(rest) if isinstance(node, nodes.raw) and CLOSE.fullmatch(node.astext())
        ]
        if not ends:
            return  # reported with all other raw HTML
        inside, words = rest[: ends[0]], OPEN.fullmatch(opening.astext())[1].strip()
        heading = nodes.title("", words)
        box = nodes.admonition("", heading, classes=["dropdown"])
        if words == "Solution":
            box["classes"].insert(0, "solution")
            self._name_solution(heading, opening)
        for node in [*inside, rest[ends[0]]]:
            parent.remove(node)
        box += inside
        box.source, box.line = opening.source, opening.line
        parent.replace(opening, box)

    def _name_solution(self, heading, opening):
        """Write the exercise before it into the title of a solution, as a link."""
        before = None
        for node in self.document.findall():
            if node is opening:
                break
            if isinstance(node, nodes.admonition) and "exercise" in node["classes"]:
                before = node
        if before is None:
            LOG.warning("a solution without an exercise before it", location=opening)
            return
        link = nodes.reference("", "", *before[0].deepcopy().children, refid=before["ids"][0], internal=True)
        heading.children = []
        heading += [nodes.Text("Solution to "), link]


def _in_output(node):
    while node is not None:
        if isinstance(node, nodes.container) and node.get("nb_element") == "cell_code_output":
            return True
        node = node.parent
    return False


class ExerciseNumbers(SphinxPostTransform):
    """Compare the number that an exercise bears with the right one: lesson, then place in the lesson."""

    default_priority = 8

    def run(self, **options):
        """Report each number that is wrong."""
        lesson = self.env.toc_secnumbers.get(self.env.docname, {}).get("", ())
        found = [box for box in self.document.findall(nodes.admonition) if "exercise" in box["classes"]]
        for place, box in enumerate(found, start=1):
            right = ".".join(map(str, [*lesson[:1], place]))
            if box.get("number") != right:
                words = "“%s” is number %s: write Exercise %s"
                LOG.warning(words, box[0].astext(), right, right, location=box)


def setup(app):
    """Register the extension."""
    app.add_transform(Boxes)
    app.add_post_transform(ExerciseNumbers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
