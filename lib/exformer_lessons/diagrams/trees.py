"""Trees: merges of byte pairs, hypotheses of a beam."""

import math

from exformer_lessons.diagrams.lettering import Number, short
from exformer_lessons.diagrams.pen import Pen, Point
from exformer_lessons.diagrams.shapes import Shape, box

Node = str | Shape | tuple
DIRECTIONS = ("down", "right")


def tree(root: Node, *, direction: str = "down", gap: tuple[Number, Number] = (10, 26)) -> Shape:
    r"""Make a tree out of nested tuples: a node, then its subtrees.

    Args:
        root: A leaf (a word or a shape), or a tuple of a word or a shape and of subtrees.
        direction: Where the leaves are from the root: ``"down"`` or ``"right"``.
        gap: Between neighbors of one level, and between two levels.

    Raises:
        ValueError: If the direction is unknown, or a node is neither a word, a shape nor a tuple of them.

    Examples:
        >>> from exformer_lessons.diagrams import draw, tree
        >>> merges = tree(("lower", ("low", ("lo", "l", "o"), "w"), ("er", "e", "r")))
        >>> draw(merges).svg.count("<rect class=\"x-plain")
        9
    """
    if direction not in DIRECTIONS:
        raise ValueError(f"direction must be one of {', '.join(DIRECTIONS)}, got {direction!r}")
    nodes: list[tuple[Shape, int, list[int]]] = []
    _collect(root, 0, nodes)
    depths = [depth for _, depth, _ in nodes]
    sideways = direction == "right"
    along = [node.width if sideways else node.height for node, _, _ in nodes]
    across = [node.height if sideways else node.width for node, _, _ in nodes]
    centers = _centers(nodes, across, float(gap[0]))
    tall = [
        max((a for a, d in zip(along, depths, strict=True) if d == n), default=0)
        for n in range(max(depths) + 1)
    ]
    starts = [sum(tall[:n]) + n * gap[1] for n in range(len(tall))]
    length = starts[-1] + tall[-1]
    corners = []
    for (node, _, _), depth, center in zip(nodes, depths, centers, strict=True):
        down = starts[depth] + (0 if sideways else (tall[depth] - node.height) / 2)
        if sideways:
            corners.append((down, center - node.height / 2))
        else:
            corners.append((center - node.width / 2, down))
    low = min(center - a / 2 for center, a in zip(centers, across, strict=True))
    wide = max(center + a / 2 for center, a in zip(centers, across, strict=True)) - low
    shift = (0.0, -low) if sideways else (-low, 0.0)
    children = tuple(
        (node, x + shift[0], y + shift[1]) for (node, _, _), (x, y) in zip(nodes, corners, strict=True)
    )

    def ink(pen: Pen, x: Number, y: Number) -> None:
        for (_, _, below), (node, left, top) in zip(nodes, children, strict=True):
            for child in below:
                other, other_left, other_top = children[child]
                if sideways:
                    start = (x + left + node.width, y + top + node.height / 2)
                    end = (x + other_left, y + other_top + other.height / 2)
                else:
                    start = (x + left + node.width / 2, y + top + node.height)
                    end = (x + other_left + other.width / 2, y + other_top)
                _branch(pen, start, end, gap=gap[1], sideways=sideways)

    size = (length, wide) if sideways else (wide, length)
    return Shape(*size, ink, children)


def _branch(pen: Pen, start: Point, end: Point, *, gap: Number, sideways: bool) -> None:
    """Draw a line that turns to its child within the first gap, clear of the levels between."""
    main = 0 if sideways else 1
    way = math.copysign(min(abs(end[main] - start[main]), gap), end[main] - start[main])
    turned = (start[0] + way, end[1]) if sideways else (end[0], start[1] + way)
    half = [
        (p[0] + f * way, p[1]) if sideways else (p[0], p[1] + f * way)
        for p, f in ((start, 0.5), (turned, -0.5))
    ]
    words = [f"{short(a)} {short(b)}" for a, b in (start, *half, turned, end)]
    pen.path([start, end], steps=f"M{words[0]}C{words[1]} {words[2]} {words[3]}L{words[4]}", role="plain")


def _collect(node: Node, depth: int, nodes: list[tuple[Shape, int, list[int]]]) -> int:
    """List the nodes, each after its parent; return the number of this one."""
    name, *below = node if isinstance(node, tuple) and node else (node,)
    if not isinstance(name, str | Shape):
        raise ValueError(f"expected a word, a shape, or (node, subtree, …), got {node!r}")
    shape = box(name, literal=True) if isinstance(name, str) else name
    own = len(nodes)
    children: list[int] = []
    nodes.append((shape, depth, children))
    children += [_collect(each, depth + 1, nodes) for each in below]
    return own


def _centers(nodes: list[tuple[Shape, int, list[int]]], across: list[Number], gap: Number) -> list[Number]:
    """Return where each node is across the levels: leaves one after the other, a node over its children."""
    spans = [0.0] * len(nodes)
    for n in reversed(range(len(nodes))):
        below = nodes[n][2]
        spans[n] = max(across[n], sum(spans[child] for child in below) + gap * (len(below) - 1))
    centers = [0.0] * len(nodes)

    def put(n: int, start: Number) -> None:
        below = nodes[n][2]
        total = sum(spans[child] for child in below) + gap * (len(below) - 1)
        edge = start + (spans[n] - total) / 2
        for child in below:
            put(child, edge)
            edge += spans[child] + gap
        first_last = [centers[below[0]], centers[below[-1]]] if below else [start + spans[n] / 2] * 2
        centers[n] = sum(first_last) / 2

    put(0, 0.0)
    return centers
