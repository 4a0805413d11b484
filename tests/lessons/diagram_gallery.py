"""What the mechanisms of the lessons look like, each in a few lines of the diagram kit."""

import math
from itertools import pairwise

import numpy as np

from exformer_lessons.diagrams import (
    arrow,
    bars,
    blank,
    box,
    brace,
    clock,
    column,
    dot,
    draw,
    frame,
    grid,
    label,
    links,
    matrix,
    operator,
    outline,
    place,
    row,
    text,
    tokens,
    tree,
    vectors,
)


def chain(states):
    """Return the arrows from each state to the next."""
    return [arrow(one, other) for one, other in pairwise(states)]


def bottleneck():
    """An encoder and a decoder, and between them one vector."""
    english, italian = ["the", "cat", "is", "sleeping"], ["il", "gatto", "dorme"]
    words = [text(word) for word in english]
    h = [box(f"*h*_{{{t}}}", role="encoder", width=46) for t in range(1, 5)]
    s = [box(f"*s*_{{{t}}}", role="decoder", width=46) for t in range(1, 4)]
    said = [text(word) for word in italian]
    vector = matrix([[0.3, -0.8, 0.1, 0.5, -0.2]], digits=1, limits=(-1, 1))
    seen = label(vector, left="all that the\ndecoder sees", right="*c* = *h*_{4}", muted=False)
    return draw(
        column(grid([words, h], gap=(28, 22)), seen, grid([s, said], gap=(34, 22)), gap=38),
        [arrow(word, state) for word, state in zip(words, h, strict=True)],
        chain(h),
        arrow(h[3].bottom, vector.at(0.9, 0), route="curve"),
        arrow(vector.at(0.1, 1), s[0].top, route="curve"),
        chain(s),
        [arrow(state, word) for state, word in zip(s, said, strict=True)],
    )


def lstm_cell():
    """A cell of an LSTM: the upper line forgets and adds, the lower one computes the gates."""
    at = (34, 98, 162, 226)
    names = (("σ", "forget"), ("σ", "input"), ("tanh", "new"), ("σ", "output"))
    forget, write, new, show = gates = [box(name, note=note, width=54) for name, note in names]
    keep, add, admit, emit = (operator(sign) for sign in "×+××")
    squash, fork, bus = box("tanh", width=44), dot(), [dot() for _ in at]
    c_old, h_old, x = text("*c*_{t−1}"), text("*h*_{t−1}"), text("*x*_{t}")
    c_new, h_new = text("*c*_{t}"), text("*h*_{t}")
    circuit = [
        (c_old, -22, 0),
        (keep, 34, 0),
        (add, 130, 0),
        (fork, 268, 0),
        (c_new, 300, 0),
        (admit, 130, 50),
    ]
    circuit += [(squash, 268, 38), (emit, 268, 84), (h_old, -22, 190), (x, -22, 220), (h_new, 300, 190)]
    circuit += [
        (shape, x, y) for row_, y in ((gates, 130), (bus, 190)) for shape, x in zip(row_, at, strict=True)
    ]
    return draw(
        place(circuit),
        [arrow(a, b, role="encoder", width=2.5) for a, b in ((c_old, keep), (keep, add), (add, c_new))],
        arrow(forget, keep),
        arrow(write.top, admit.left, route="elbow"),
        arrow(new.top, admit.right, route="elbow"),
        arrow(admit, add),
        arrow(fork, squash),
        arrow(squash, emit),
        arrow(show.top, emit.left, route="elbow"),
        arrow(emit.bottom, h_new.left, route="elbow"),
        arrow(h_old, bus[3], head=False),
        arrow(x.right, bus[0].bottom, route="elbow", head=False),
        [arrow(point, gate) for point, gate in zip(bus, gates, strict=True)],
    )


def attention_weights():
    """The decoder looks back at every state of the encoder: thick where the weight is large."""
    weights = [0.04, 0.89, 0.05, 0.02]
    words = [text(word) for word in ("the", "cat", "is", "sleeping")]
    h = [box(f"*h*_{{{t}}}", role="encoder", width=46) for t in range(1, 5)]
    context = box("*c*_{2} = Σ *α*_{2j} *h*_{j}", role="focus")
    s = [box(f"*s*_{{{t}}}", role="decoder", width=46) for t in (1, 2, 3)]
    said = [text(word) for word in ("il", "gatto", "dorme")]
    return draw(
        column(grid([words, h], gap=(26, 22)), context, grid([s, said], gap=(44, 22)), gap=58),
        [arrow(word, state) for word, state in zip(words, h, strict=True)],
        chain(h),
        [
            arrow(
                state.bottom,
                context.at(at, 0),
                weight=w,
                role="encoder",
                label=f"{w:.2f}",
                route="curve",
                along=0.2,
            )
            for state, w, at in zip(h, weights, (0.2, 0.4, 0.6, 0.8), strict=True)
        ],
        arrow(context, s[1], width=2.5, role="encoder"),
        chain(s),
        [arrow(state, word) for state, word in zip(s, said, strict=True)],
    )


def bahdanau_and_luong():
    """Who asks: the last state of the decoder, or the new one."""
    frames, marks = [], []
    for name, asks, score, after in (
        (
            "Bahdanau (2015)",
            "*s*_{t−1}",
            "*v*^{⊤}tanh(*Ws*_{t−1} + *Uh*_{j})",
            "*s*_{t} = GRU(*s*_{t−1}, *c*_{t})",
        ),
        ("Luong (2015)", "*s*_{t}", "*s*_{t}^{⊤}*W h*_{j}", "tanh(*W*[*c*_{t}; *s*_{t}])"),
    ):
        h, asking = box("*h*_{1} … *h*_{n}", role="encoder"), box(asks, role="decoder", width=44)
        scores, context, new = (
            box(score, size=12, width=138),
            box("Σ *α*_{*tj*}*h*_{j}"),
            box(after, role="decoder", size=12.5),
        )
        inside = column(row(asking, h, gap=12), scores, label(context, left="*c*_{t} ="), new, gap=34)
        frames.append(frame(inside, title=name, width=166, padding=6))
        marks += [
            arrow(h, scores),
            arrow(asking, scores),
            arrow(scores, context, label="softmax"),
            arrow(context, new),
        ]
    return draw(row(*frames, gap=6, align="top"), marks)


def queries_keys_values():
    """Three projections of the same input, and the shapes that follow."""
    x = box("*X*", note="*n* × *d*_{model}", width=120)
    q, k, v = (
        box(f"*{name}*", role=role, note=f"*n* × *d*_{{{name.lower() if name != 'Q' else 'k'}}}", width=72)
        for name, role in (("Q", "query"), ("K", "key"), ("V", "value"))
    )
    scores = box("*QK*^{⊤} / √*d*_{k}", note="*n* × *n*", width=120)
    weights = box("weights", note="*n* × *n*", width=120)
    out = box("weights · *V*", role="value", note="*n* × *d*_{v}")
    places = [(x, 116, 0), (q, 0, 88), (k, 116, 88), (v, 226, 88), (scores, 58, 172), (weights, 58, 256)]
    return draw(
        place([*places, (out, 226, 256)]),
        [
            arrow(x.at(at, 1), shape.top, label=f"*W*^{{{name}}}", role=role, side=side)
            for shape, at, name, role, side in (
                (q, 0.15, "Q", "query", "left"),
                (k, 0.5, "K", "key", "right"),
                (v, 0.85, "V", "value", "right"),
            )
        ],
        arrow(q.bottom, scores.at(0.25, 0), role="query"),
        arrow(k.bottom, scores.at(0.75, 0), role="key"),
        arrow(scores, weights, label="softmax over each row"),
        arrow(weights, out),
        arrow(v, out, role="value"),
    )


def heads():
    """The queries cut into strips of columns, one per head, and put together again."""
    heads, n = (1, 2, 3, 4), 3
    cut, own, merged = (
        [matrix([[f"{h}"] * 2] * n, fill=role, cell=(24, 20)) for h in heads]
        for role in ("query", "query", "value")
    )
    named = [label(m, above=f"head {h}") for m, h in zip(own, heads, strict=True)]
    output = box("*W*^{O}", note="*d*_{model} × *d*_{model}")
    whole = row(*merged, gap=3)
    return draw(
        column(
            label(row(*cut, gap=3), left="*n*", above="*d*_{model} = 8"),
            row(*named, gap=30),
            label(whole, left="*n*"),
            output,
            gap=40,
        ),
        [arrow(a.bottom, b.top.moved(0, -20), role="query") for a, b in zip(cut, own, strict=True)],
        [
            arrow(a.bottom, b.top, role="value", label="attention" * (a is own[3]), side="right", along=0.6)
            for a, b in zip(own, merged, strict=True)
        ],
        arrow(whole, output, label="concatenated"),
    )


def layer_pre_and_post():
    """The residual stream of a layer: normed on its way, or only where a branch reads it."""

    def layer(order):
        stream, y, marks = [text("*x*")], 0, []
        shapes = [(stream[0], 0, 0)]
        for part in ("Attention", "Feed-forward"):
            fork, join, work = dot(), operator("+"), box(part, width=98)
            norm = box("LayerNorm", role="focus", width=90)
            inside = [norm, work] if order == "pre" else [work]
            shapes += [(fork, 0, y - 24), *((each, 72, y - 46 - 38 * n) for n, each in enumerate(inside))]
            y -= 66 + 38 * len(inside)
            shapes.append((join, 0, y))
            stream += [fork, join]
            marks += [arrow(fork.right, inside[0].bottom, route="elbow"), *chain(inside)]
            marks += [arrow(inside[-1].top, join.right, route="elbow")]
            if order == "post":
                y -= 38
                shapes.append((norm, 0, y))
                stream.append(norm)
        end = blank(0, 0)
        steps = zip(stream, [*stream[1:], end], strict=True)
        wires = [arrow(a, b, width=3.0, role="encoder", head=b.width != 5) for a, b in steps]
        return place([*shapes, (end, 0, y - 40)]), [*marks, *wires]

    (post, one), (pre, two) = layer("post"), layer("pre")
    frames = [
        frame(post, title="Post-norm (2017)", padding=9),
        frame(pre, title="Pre-norm (today)", padding=9),
    ]
    return draw(row(*frames, gap=8, align="top"), one, two)


def teacher_forcing():
    """The target is the input, shifted by one position."""
    said = ["<s>", "il", "gatto", "dorme", "</s>"]
    inputs = [box(word, width=60, literal=True) for word in said[:4]]
    model = [box(f"*s*_{{{t}}}", role="decoder", width=60) for t in (1, 2, 3, 4)]
    targets = [box(word, width=60, role="focus", literal=True) for word in said[1:]]
    rows = [
        [text("target", size=12, muted=True), *targets],
        [text("decoder", size=12, muted=True), *model],
        [text("input", size=12, muted=True), *inputs],
    ]
    return draw(
        grid(rows, gap=(12, 30)),
        [arrow(a, b) for a, b in zip(inputs, model, strict=True)],
        [
            arrow(a, b, label="loss" if n == 3 else "", side="right")
            for n, (a, b) in enumerate(zip(model, targets, strict=True))
        ],
        [arrow(a.at(0.85, 1), b.at(0.15, 0), dashed=True) for a, b in zip(targets, inputs[1:], strict=False)],
    )


def causal_triangle():
    """Scores of later positions are −∞, so that their weights are 0; one query is outlined."""
    words = ["the", "cat", "sat", "down"]
    scores = np.array(
        [[1.2, 0.3, 0.8, 0.1], [0.4, 2.0, 1.1, 0.6], [0.2, 1.7, 0.9, 0.3], [0.5, 0.8, 1.4, 1.0]]
    )
    scores[np.triu_indices(4, 1)] = -math.inf
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    before = matrix(scores, rows=words, columns=words, digits=1)
    after = matrix(weights, rows=words, columns=words)
    return draw(
        column(before, after, gap=40),
        outline(before[2, 0], before[2, 3]),
        outline(after[2, 0], after[2, 3]),
        arrow(before.bottom.moved(16), after.top.moved(16), label="softmax over each row"),
    )


def tokens_by_loss():
    """How well a model expects each token, in nats."""
    words = ["The", " cat", " that", " the", " dogs", " chase", " is", " asleep", "."]
    loss = [3.91, 4.46, 2.73, 0.88, 5.02, 3.37, 1.64, 4.2, 0.21]
    return draw(tokens(words, values=loss, digits=1))


def alignment():
    """Which English words each Italian word looks at."""
    english = tokens(["the", "white", "cat", "is", "sleeping"], role="encoder", gap=12)
    italian = tokens(["il", "gatto", "bianco", "dorme"], role="decoder", gap=14)
    weights = [
        [0.9, 0.02, 0.08, 0, 0],
        [0.02, 0.1, 0.86, 0, 0.02],
        [0, 0.93, 0.07, 0, 0],
        [0, 0, 0.04, 0.31, 0.65],
    ]
    return draw(column(english, italian, gap=80), links(italian, english, weights, role="encoder"))


def self_attention_arcs():
    """To what a pronoun looks back."""
    words = tokens(["the", "animal", "slept", "because", "it", "was", "tired"], gap=3, size=13)
    weights = np.zeros((7, 7))
    weights[4] = [0.06, 0.71, 0.05, 0.03, 0.12, 0.0, 0.03]
    return draw(words, links(words, words, weights, role="query"))


def merges():
    """How byte-pair encoding builds one word: in the order of its merges."""
    node = lambda word, n: box(word, note=f"merge {n}", role="focus")  # noqa: E731
    low = (node("low", 2), (node("lo", 1), "l", "o"), "w")
    est = (node("est", 4), (node("es", 3), "e", "s"), "t")
    return draw(tree((node("lowest", 5), low, est), gap=(14, 26)))


def beam():
    """Two hypotheses are kept at each step; the dashed ones are dropped."""

    def node(word, score, kept=True, role="focus"):
        return box(word, note=score, dashed=not kept, role=role if kept else "masked", width=62)

    the = (
        node("the", "−0.5"),
        (node("cat", "−1.4"), node("slept", "−2.1", role="decoder"), node("sat", "−3.0", False)),
        node("dog", "−2.2", False),
    )
    a = (
        node("a", "−0.9"),
        (node("cat", "−1.7"), node("slept", "−2.3"), node("ran", "−3.4", False)),
        node("man", "−2.6", False),
    )
    return draw(tree((box("<s>", literal=True), the, a), direction="right", gap=(8, 26)))


def growing_cache():
    """At each step one key and one value are new; the others are read from the cache."""
    words, rows, marks = ["the", "cat", "sat"], [], []
    for t in (1, 2, 3):
        query = box(f"*q*_{{{t}}}", role="query", width=40)
        names = [[f"*{v}*_{{{i}}}" for i in range(1, t + 1)] + [None] * (3 - t) for v in "kv"]
        fills = [[*[role] * t, *["masked"] * (3 - t)] for role in ("key", "value")]
        cache = matrix(names, fill=fills, cell=(44, 28), size=14)
        rows.append(
            [
                text(f"step {t}\n“{words[t - 1]}”", size=12),
                query,
                label(cache, above="cache") if t == 1 else cache,
            ]
        )
        marks.append(arrow(query, cache, role="query"))
        marks.append(brace(cache[0, t - 1], cache[1, t - 1], "new", side="below"))
    return draw(grid(rows, gap=(26, 36)), marks)


def masked_inputs():
    """What an encoder reads, what it must predict, and where the loss counts."""
    true = ["the", "cat", "sat", "on", "the", "mat"]
    read = ["the", "[MASK]", "sat", "dog", "the", "mat"]
    chosen = {1: "mask", 3: "random", 5: "keep"}
    roles = ["focus" if n in chosen else "plain" for n in range(6)]
    top = [box(word, role=role, width=50, size=12) for word, role in zip(read, roles, strict=True)]
    kinds = [text(chosen.get(n, ""), size=12, muted=True) for n in range(6)]
    goal = [
        text(true[n], bold=True) if n in chosen else text("no\nloss", size=12, muted=True) for n in range(6)
    ]
    words = grid([kinds, top], gap=(4, 3))
    model = box("encoder", role="encoder", width=words.width)
    step = [shape.width + 4 for shape in top]
    under = place([(shape, sum(step[:n]) + top[n].width / 2, 0) for n, shape in enumerate(goal)])
    return draw(
        column(words, model, under, gap=26),
        [arrow(t, model) for t in top],
        [arrow(model, goal[n]) for n in chosen],
    )


def clock_hands():
    """Each pair of entries is a clock; the next one turns more slowly."""
    frequencies = {"*ω*_{0} = 1": 1.0, "*ω*_{1} = 0.1": 0.1, "*ω*_{2} = 0.01": 0.01}
    rows = [
        [text(name, size=12), *(clock(n * w, radius=19) for n in range(6))] for name, w in frequencies.items()
    ]
    head = [text("position *n*", size=12, muted=True), *(text(str(n), size=12, muted=True) for n in range(6))]
    return draw(grid([head, *rows], gap=(7, 12)))


def sum_of_word_and_position():
    """The input of the first layer is a sum, entry by entry."""
    word = np.array([[0.4], [-0.7], [0.1], [0.9]])
    position = np.array([[0.91], [-0.42], [0.02], [1.0]])
    shown = [matrix(v, digits=2, limits=(-2, 2), cell=(50, 26)) for v in (word, position, word + position)]
    names = ["word vector\n“cat”", "position 2", "input"]
    cells = [label(m, below=name, muted=False) for m, name in zip(shown, names, strict=True)]
    return draw(row(cells[0], text("+", size=20), cells[1], text("=", size=20), cells[2], gap=18))


def turned_together():
    """Queries and keys turned by their positions keep the angle between them."""
    turns = []
    for start in (0, 5):
        angle = 0.35 * start
        hands = [
            (f"*q*_{{{start + 3}}}", angle + 0.3 + 1.05, "query"),
            (f"*k*_{{{start}}}", angle + 0.3, "key"),
        ]
        picture = vectors(hands, between="60°", radius=54)
        turns.append(label(picture, below=f"positions {start + 3} and {start}", muted=False))
    return draw(row(*turns, gap=2))


def binary_and_sinusoids():
    """A binary counter's digits alternate at different rates; so do sinusoids."""
    n, waves = np.arange(8), [1.6, 0.8, 0.4]
    bits = matrix(
        np.stack([n >> 2 & 1, n >> 1 & 1, n & 1], axis=1), rows=list(n), columns=["4", "2", "1"], cell=(34, 0)
    )
    sines = matrix(
        np.sin(np.outer(n, sorted(waves))),
        columns=["0.4", "0.8", "1.6"],
        digits=1,
        cell=(38, 0),
        limits=(-1, 1),
    )
    names = [
        label(bits, above="binary", muted=False, bold=True),
        label(sines, above="sin(*ω n*)", muted=False, bold=True),
    ]
    return draw(row(*names, gap=34))


def signed_offsets():
    """What is added to the scores: a slope times the distance, or a learned number per offset."""
    n = np.arange(5)
    offset = n[None, :] - n[:, None]
    slope = matrix(np.where(offset <= 0, 0.5 * offset, -math.inf), rows=list(n), columns=list(n), digits=1)
    learned = np.array([-1.1, 0.2, 0.9, 1.4, 0.6, 0.3, -0.2, -0.5, -0.9])
    buckets = matrix(learned[offset + 4], rows=list(n), columns=list(n), digits=1)
    both = [
        label(slope, above="ALiBi, slope ½", bold=True, muted=False),
        label(buckets, above="T5, one number per offset", bold=True, muted=False),
    ]
    return draw(column(*both, gap=24))


def next_token():
    """From the last state to a distribution."""
    state = box("*h*_{3}", role="decoder")
    chances = bars({"slept": 0.62, "sat": 0.21, "ran": 0.12, "is": 0.05}, width=120)
    return draw(row(state, chances, gap=60), arrow(state, chances, label="softmax"))


GALLERY = {
    name: made
    for name, made in list(globals().items())
    if callable(made) and getattr(made, "__module__", "") == __name__ and name != "chain"
}
