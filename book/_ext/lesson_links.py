"""“Lesson 05” in running text becomes a link once that lesson is written; until then it is plain text."""

import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

MENTION = re.compile(r"\b[Ll]essons?\s(\d\d)\b")
ANOTHER = re.compile(r"(?<=[\s,])\d\d\b")  # the second number in “lessons 03 and 07”
LIST = re.compile(r"\b[Ll]esson(?:s\s\d\d(?:(?:,\s|\sand\s|\sor\s)\d\d)*|\s\d\d)\b")
#: Where no link may stand: in other links, in code, in titles.
CLOSED = (nodes.reference, addnodes.pending_xref, nodes.literal, nodes.literal_block, nodes.title, nodes.raw)


def pieces(text, pages):
    """Cut a text into (words, page or empty): each mention of a written lesson by itself.

    Args:
        text: Running text.
        pages: {number: page} of the lessons that are written.
    """
    done, found = 0, []
    for group in LIST.finditer(text):
        first = MENTION.match(group[0])
        spans = [(0, first.end(), first[1])]
        spans += [(m.start(), m.end(), m[0]) for m in ANOTHER.finditer(group[0], first.end())]
        for start, end, number in spans:
            if number in pages:
                found.append((text[done : group.start() + start], ""))
                found.append((group[0][start:end], pages[number]))
                done = group.start() + end
    return [piece for piece in [*found, (text[done:], "")] if piece[0]]


class LessonLinks(SphinxTransform):
    """Link each mention of a lesson but those on its own page."""

    default_priority = 500

    def apply(self, **options):
        """Take the mentions of a page in turn."""
        notebooks = Path(self.env.srcdir, "notebooks").glob("[0-9][0-9]_*.ipynb")
        pages = {path.stem[:2]: f"notebooks/{path.stem}" for path in notebooks}
        pages = {number: page for number, page in pages.items() if page != self.env.docname}
        for node in self.document.findall(nodes.paragraph):
            _join_lines(node)
        for node in list(self.document.findall(nodes.Text)):
            above, inside = node.parent, False
            while above is not None and not inside:
                inside, above = isinstance(above, CLOSED), above.parent
            cut = [] if inside else pieces(node.astext(), pages)
            if any(page for _, page in cut):
                node.parent.replace(node, [link(words, page) for words, page in cut])


def _join_lines(paragraph):
    """Make one text of the lines of a paragraph: MyST has three where a line ends within “lesson 08”."""
    for place in range(len(paragraph) - 1, 0, -1):
        one, two = paragraph[place - 1], paragraph[place]
        if isinstance(one, nodes.Text) and isinstance(two, nodes.Text):
            paragraph[place - 1 : place + 1] = [nodes.Text(one.astext() + two.astext())]


def link(words, page):
    """Return a link to a lesson's page, or the bare words where there is none."""
    if not page:
        return nodes.Text(words)
    options = {"refdomain": "std", "reftype": "doc", "reftarget": f"/{page}", "refexplicit": True}
    return addnodes.pending_xref("", nodes.inline("", words), **options, refwarn=True)


def setup(app):
    """Register the extension."""
    app.add_transform(LessonLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
