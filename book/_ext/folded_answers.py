"""What answers a prediction is folded: a reader decides before the figure below the box can tell.

After a box *Predict* or *Break it* the page goes on up to a paragraph that begins "The answer is (b)" or
"It is (b)". That paragraph and the outputs before it are shown when the reader asks for them; code that is
open stays in sight. Where no such paragraph comes before the next box or section, nothing is folded.
"""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

ANSWER = re.compile(r"(The answer is|It is) \([a-e]\)")
LABEL = "Show the answer"


class Answer(nodes.container):
    """What a reader sees after deciding."""


class Answers(SphinxPostTransform):
    """Fold the answer of each prediction of a page."""

    default_priority = 180  # before cells are folded, which wraps their code

    def run(self, **options):
        """Take the boxes in their order; one whose answer does not come stays as it is."""
        for box in list(self.document.findall(nodes.admonition)):
            if {"predict", "break-it"} & set(box["classes"]):
                self._fold(box)

    def _fold(self, box):
        page = box.parent
        rest = page.children[page.index(box) + 1 :]
        end = next((i for i, node in enumerate(rest) if _ends(node)), None)
        if end is None or not isinstance(rest[end], nodes.paragraph):
            return
        start = next(i for i, node in enumerate(rest) if i == end or _output(node))
        answer = Answer()
        output = _output(rest[start])
        if output and not rest[start].get("hide_mode"):  # its code stays
            answer += nodes.container("", _cut(output), classes=["cell"])
            start += 1
        answer += [_cut(node) for node in rest[start : end + 1]]
        page.insert(page.index(box) + 1 + start, answer)


def _ends(node):
    is_answer = isinstance(node, nodes.paragraph) and ANSWER.match(node.astext())
    is_box = isinstance(node, nodes.admonition) and "dropdown" not in node["classes"]
    return is_answer or is_box or isinstance(node, nodes.section)


def _output(node):
    """Return the output of a cell of code, if it has one."""
    parts = node.children if isinstance(node, nodes.container) else []
    found = [each for each in parts if isinstance(each, nodes.container) and "cell_output" in each["classes"]]
    return found[0] if found else None


def _cut(node):
    node.parent.remove(node)
    return node


def _open(translator, node):
    translator.body.append(f'<details class="answer"><summary>{LABEL}</summary>\n')


def _close(translator, node):
    translator.body.append("</details>\n")


def setup(app):
    """Register the extension."""
    app.add_node(Answer, html=(_open, _close))
    app.add_post_transform(Answers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
