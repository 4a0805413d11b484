"""A picture of the suspects: where in the model each wrong import makes its mistake."""

from collections.abc import Mapping
from itertools import pairwise

from exformer_lessons.diagrams import (
    Diagram,
    Shape,
    arrow,
    blank,
    box,
    column,
    dot,
    draw,
    frame,
    operator,
    place,
    row,
    text,
)

#: Names of mistakes that are too long for a picture.
SHORT = {"gain read as 1 + gain": "gain as 1 + gain"}
#: At which height each of them is.
_HEIGHTS = {
    "ids off by one": -36, "biases dropped": -72, "norms exchanged": -98, "q and k exchanged": -140,
    "rotary halves": -171, "rotary base": -193, "w_o not transposed": -262,
    "gain read as 1 + gain": -302, "ReLU for ReLU²": -338, "last layer new": -370, "output tied": -448,
}  # fmt: skip
#: What each kind of mistake gets wrong, and its color.
_KINDS = {"name": "focus", "order": "low", "setting": "high"}
_KIND = {
    "ids off by one": "order", "rotary halves": "order", "w_o not transposed": "order",
    "gain read as 1 + gain": "setting", "ReLU for ReLU²": "setting", "rotary base": "setting",
}  # fmt: skip


def model_of_suspects(letters: Mapping[str, str]) -> Diagram:
    """Draw the model from ids to logits, and the letter of each mistake at its place, in its kind's color.

    Args:
        letters: The letter of each mistake, by its name.

    Raises:
        ValueError: If a mistake has no letter.

    >>> from exformer_lessons.pretrained_weights.imports import lettered
    >>> model_of_suspects({name: letter for letter, name in lettered().items()}).width < 390
    True
    """
    if missing := _HEIGHTS.keys() - letters.keys():
        raise ValueError(f"no letter for {', '.join(sorted(missing))}: give one for each mistake")
    ids, logits = text("ids"), text("logits")
    embedding, output = box("embedding", size=12), box("output", size=12)
    forks, joins = [dot(), dot()], [operator("+", role="plain"), operator("+", role="plain")]
    norms = [box("norm", width=58, height=26) for _ in range(3)]
    q, k, v = (
        box(f"*W*^{{{name}}}", role=role, width=42, height=28, size=15.5)
        for name, role in (("Q", "query"), ("K", "key"), ("V", "value"))
    )
    turned = [box("rotate", role=role, width=48, height=26, size=12) for role in ("query", "key")]
    softmax = box("softmax", width=84, height=26, size=13)
    mean = box("mean", role="value", width=44, height=26, size=12)
    w_o = box("*W*^{O}", width=48, height=28, size=15.5)
    network = box("MLP with ReLU²", width=116, height=28, size=13)
    shapes = [
        (frame(blank(198, 310), padding=4), 75, -226), (text("four layers", size=12, bold=True), 124, -370),
        (ids, 0, 0), (embedding, 0, -36), (forks[0], 0, -80), (norms[0], 96, -98),
        (q, 40, -140), (k, 96, -140), (v, 148, -140), (turned[0], 40, -182), (turned[1], 96, -182),
        (softmax, 68, -222), (mean, 148, -222), (w_o, 148, -262), (joins[0], 0, -262),
        (forks[1], 0, -284), (norms[1], 92, -300), (network, 92, -338), (joins[1], 0, -338),
        (norms[2], 0, -410), (output, 0, -448), (logits, 0, -482),
    ]  # fmt: skip
    tags = [(_suspect(name, letters[name]), y) for name, y in _HEIGHTS.items()]
    legend = [
        row(operator("", role=role, radius=6), text(kind, size=12, muted=True), gap=4)
        for kind, role in _KINDS.items()
    ]
    tags.append((column(*legend, gap=2, align="left"), -502))
    placed = [(tag, 188 + tag.width / 2, y) for tag, y in tags]
    stream = [embedding, forks[0], joins[0], forks[1], joins[1], norms[2]]
    thick = [arrow(a, b, width=3.0, role="encoder", head=b.width != 5) for a, b in pairwise(stream)]
    steps = [
        (ids, embedding), (norms[0], q), (norms[0], k), (norms[0], v), (q, turned[0]), (k, turned[1]),
        (softmax, mean), (v, mean), (mean, w_o), (w_o, joins[0]), (norms[1], network), (network, joins[1]),
        (norms[2], output), (output, logits),
    ]  # fmt: skip
    turns = [
        arrow(turned[0], softmax.at(1 / 6, 1)),
        arrow(turned[1], softmax.at(5 / 6, 1)),
        arrow(forks[0].right, norms[0].left, route="elbow"),
        arrow(forks[1].right, norms[1].left, route="elbow"),
    ]
    return draw(place([*shapes, *placed]), thick, [arrow(a, b) for a, b in steps], turns, padding=4)


def _suspect(name: str, letter: str) -> Shape:
    role = _KINDS[_KIND.get(name, "name")]
    return row(operator(letter, role=role, radius=10), text(SHORT.get(name, name), size=12), gap=5)
