"""Diagrams: boxes, matrices, tokens and turned vectors, in rows and columns, joined by arrows.

A few lines in a folded cell draw one; `draw` returns the picture, which follows the page's theme and can be
read on a phone. Shapes come first, then where they are, then the marks between them:

    >>> from exformer_lessons.diagrams import arrow, box, column, draw
    >>> scores, weights = box("scores", note="query × key"), box("weights")
    >>> draw(column(scores, weights, gap=34), arrow(scores, weights, label="softmax"))
    <Diagram 115 × 125>
"""

from exformer_lessons.diagrams.around import frame, label
from exformer_lessons.diagrams.arrows import arrow
from exformer_lessons.diagrams.bars import bars
from exformer_lessons.diagrams.dials import clock, vectors
from exformer_lessons.diagrams.drawing import Diagram, draw
from exformer_lessons.diagrams.groups import brace, outline
from exformer_lessons.diagrams.layout import column, grid, place, row
from exformer_lessons.diagrams.links import links
from exformer_lessons.diagrams.matrices import matrix
from exformer_lessons.diagrams.shapes import Shape, blank, box, dot, operator, text
from exformer_lessons.diagrams.tokens import tokens

__all__ = [
    "Diagram", "Shape", "arrow", "bars", "blank", "box", "brace", "clock", "column", "dot", "draw", "frame",
    "grid", "label", "links", "matrix", "operator", "outline", "place", "row", "text", "tokens",
    "vectors",
]  # fmt: skip
