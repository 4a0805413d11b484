"""What a claim depends on is found from a lesson's text: nothing that it needs is missed."""

import json
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_tools"))

import lesson_code  # noqa: E402
import lesson_slices  # noqa: E402

IMPORTS = """
import torch
from exformer import train
from exformer_lessons.claims import claim, shown
from exformer_lessons.figures import lines
"""
CLAIM = 'claim("A01", holds=lambda share: share > 0.5, says="{share}", share=share)'


def lesson_of(tmp_path, *sources, **tags):
    cells = [
        {
            "cell_type": "code",
            "source": source,
            "metadata": {"tags": tags.get(f"c{number}", [])},
            "outputs": [],
        }
        for number, source in enumerate(sources)
    ]
    path = tmp_path / "one.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return lesson_code.load(path)


def needed(tmp_path, text):
    """Return the numbers of the lines that the claim, on the last line, needs; a line may hold several."""
    lesson = lesson_of(tmp_path, f"{text.strip()}\n{CLAIM}")
    return [each.node.lineno for each in lesson.needed(lesson.claims[0])]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a = 1\nb = 2\nshare = a", [1, 3]),
        ("share = 1\nshare = 2", [2]),  # what is bound anew needs nothing before
        ("share = 1\nif x: share = 2", [1, 2]),
        ("a = 1\nfor a in b: share = a", [2]),
        ("a = 1\nshare = [a for a in b]", [2]),
        ("a = 1\nshare = [a for b in c]", [1, 2]),
        ("x = {}\nx['a'] = 1\nshare = x", [1, 2, 3]),
        ("x = []\nx.append(1)\nshare = x", [1, 2, 3]),
        ("x = 1\nx += 1\nshare = x", [1, 2, 3]),
        ("def change(y): y.a = 1\nx = m()\nchange(x)\nshare = x", [1, 2, 3, 4]),
        ("def change(y): z = y[0]; z.a = 1\nx = m()\nchange(x)\nshare = x", [1, 2, 3, 4]),
        ("def ask(y): return y.a\nx = m()\nask(x)\nshare = x", [2, 4]),
        ("def change(y): y.a = 1\ndef both(y): change(y)\nx = m()\nboth(x)\nshare = x", [1, 2, 3, 4, 5]),
        ("def change(y): y.a = 1\nx = m()\nfor f in (change,): f(x)\nshare = x", [1, 2, 3, 4]),
        ("def change(y): y.a = 1\nx = [m()]\nfor y in x: change(y)\nshare = x", [1, 2, 3, 4]),
        ("def change(y): y.a = 1\nx = {1: m()}\n[change(y) for y in x.values()]\nshare = x", [1, 2, 3, 4]),
        ("x = m()\ny = [x]\ny[0].a = 1\nshare = x", [1, 2, 3, 4]),
        ("x = m()\ny = x.a\ny.append(1)\nshare = x", [1, 2, 3, 4]),
        ("x = m()\ny = x + 1\ny += 1\nshare = x", [1, 4]),
        ("x = m()\ny = len(x)\ny += 1\nshare = x", [1, 4]),
        ("x = m()\ny = []\ny.append(x)\ny[0].a = 1\nshare = x", [1, 2, 3, 4, 5]),
        ("x = m()\nprint(x)\nlen(x)\nshare = x", [1, 4]),
        ("x = m()\nshare = x\nx.change()", [1, 2, 3]),  # share may be x itself
        ("x = m()\nshare = x + 1\nx.change()", [1, 2]),
        ("n = 1\ndef f(): return n\nshare = f()", [1, 2, 3]),
        ("def f(): return n\nn = 1\nshare = f()", [1, 2, 3]),  # read when it is called
        ("n = 1\ndef f(n): return n\nshare = f(2)", [2, 3]),
        ("n = 1\ndef f(m=n): return m\nshare = f()", [1, 2, 3]),
        ("n = 1\nf = lambda: n\nshare = f()", [1, 2, 3]),
        ("d = {}\ndef f(): d['a'] = 1\nf()\nshare = d", [1, 2, 3, 4]),
        ("n = 1\nclass A:\n  def g(self): return n\nshare = A().g()", [1, 2, 4]),
        ("a, b = 1, 2\nc = 3\nshare = b", [1, 3]),
        ("set_seed(1)\na = 1\nshare = 2", [1, 3]),
        ("torch.manual_seed(1)\nshare = 2", [1, 2]),
        ("for i in z: set_seed(i)\nshare = 2", [2]),
        ("import a\nimport b\nshare = a.c()", [1, 3]),
        ("with a as b: share = b\nc = 1", [1]),
        ("try: share = 1\nexcept E: share = y", [1]),
    ],
)
def test_what_a_claim_needs(tmp_path, text, lines) -> None:
    assert needed(tmp_path, text) == lines


def test_a_trainer_that_holds_a_model_is_followed(tmp_path) -> None:
    text = "from exformer import Trainer\nm = 1\nt = Trainer(m, 2)\nt.fit()\nshare = m"
    assert needed(tmp_path, text) == [1, 2, 3, 4, 5]
    text = "from torch.optim import SGD\nm = 1\no = SGD(m.parameters())\nfor x in z: o.step()\nshare = m"
    assert needed(tmp_path, text) == [1, 2, 3, 4, 5]


def test_pure_functions_change_nothing(tmp_path) -> None:
    text = f"{IMPORTS}\nx = m()\nlines(x)\ntorch.stack(x)\ntorch.nn.init.zeros_(x)\nshare = x"
    lesson = lesson_of(tmp_path, f"{text}\n{CLAIM}")
    found = [lesson.cells[0].source.splitlines()[s.node.lineno - 1] for s in lesson.needed(lesson.claims[0])]
    assert found == ["import torch", "x = m()", "torch.nn.init.zeros_(x)", "share = x"]


def test_only_what_stands_before_the_claim_counts(tmp_path) -> None:
    lesson = lesson_of(tmp_path, "x = 1", f"share = x\n{CLAIM}\nshare = 3", "x = 2")
    assert [(each.cell, each.node.lineno) for each in lesson.needed(lesson.claims[0])] == [(0, 1), (1, 1)]


@pytest.mark.parametrize(
    ("text", "trains"),
    [
        ("train(m, b)\nshare = m.x", True),
        ("train(m, b)\nshare = 1", False),
        ("def learn(m): train(m, b)\nm = 1\nlearn(m)\nshare = m", True),
        ("def learn(m): train(m, b)\nm = 1\nshare = m", False),
        ("from exformer import Trainer\nt = Trainer(m, b)\nt.fit()\nshare = m", True),
        ("for model in models.values():\n  train(model, b)\nshare = models", True),
        ("from functools import partial\nfit = partial(train, b=b)\nfit(m)\nshare = m", True),
        ("import copy\nfit = lambda m: train(m, b)\nfit(m)\nshare = m", True),
        ("o = torch.optim.SGD(w)\nfor _ in z:\n  f(w).backward()\n  o.step()\nshare = w", True),
        ("from exformer.recipes.own_text import own\nm = own()\nshare = m", True),
        ("def train_it(m): pass\ntrain_it(m)\nshare = m", False),
    ],
)
def test_whether_a_claim_depends_on_a_training(tmp_path, text, trains) -> None:
    lesson = lesson_of(tmp_path, IMPORTS, f"{text}\n{CLAIM}")
    assert lesson.trains(lesson.claims[0]) == trains


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        # a name stands for one thing at a time
        ("x = {}\nx['a'] = 1\nx = {}\nx['b'] = 2\nshare = x", [3, 4, 5]),
        ("x = []\ny = x\nx = {}\nx['b'] = 2\nshare = y", [1, 2, 5]),
        ("x = []\ny = x\nx.append(1)\nx = {}\nshare = y", [1, 2, 3, 5]),
        ("x = 1\ndef f(): return x\nx = 2\nshare = f()", [1, 2, 3, 4]),  # it may be called before
        ("x = 1\nf = lambda: x\na = f()\nx = 2\nshare = a", [1, 2, 3, 4, 5]),
        ("x = [1]\ng = (x for _ in y)\nx = [2]\nshare = g", [1, 2, 3, 4]),
        ("x = 1\nfor x in y: pass\nshare = x", [1, 2, 3]),
        ("x = 1\nif y: x = 2\nshare = x", [1, 2, 3]),
        ("a, b = 1, 2\nb = 3\nshare = a", [1, 3]),
        ("x = m()\nx = x.a\nx.append(1)\nshare = x", [1, 2, 3, 4]),
        ("def f(y): x = y.b; x.append(1)\nx = m()\nf(z)\nshare = x", [2, 4]),
        ("x = m()\n[x.append(1) for x in z]\nshare = x", [1, 3]),
        ("def f():\n  global x\n  x = 2\nx = 1\nf()\nshare = x", [1, 4, 5, 6]),
        # a function changes some of what it is given
        ("def change(y, z): y.a = z.b\nx, w = m(), n()\nchange(w, x)\nshare = x", [1, 2, 3, 4]),  # w holds it
        ("def change(y, z): y.a = 1\nx = m()\nw = n()\nchange(w, 2)\nshare = x", [2, 5]),
        ("def change(y, z): z.a = y.b\nx, w = m(), n()\nchange(w, x)\nshare = x", [1, 2, 3, 4]),
        ("def change(y, z): z.a = y.b\nx, w = m(), n()\nchange(y=w, z=x)\nshare = x", [1, 2, 3, 4]),
        ("def change(y, z): z.a = y.b\nx = m()\nchange(*[w, x])\nshare = x", [1, 2, 3, 4]),
        ("def change(*y): y[0].a = 1\nx = m()\nchange(x)\nshare = x", [1, 2, 3, 4]),
        ("def change(**y): y['z'].a = 1\nx = m()\nchange(z=x)\nshare = x", [1, 2, 3, 4]),
        ("def keep(y, z): y.a = z\nx, w = m(), n()\nkeep(w, x)\nw.a.b = 1\nshare = x", [1, 2, 3, 4, 5]),
        ("x = m()\ny = {}\ny['a'] = x\ny['a'].append(1)\nshare = x", [1, 2, 3, 4, 5]),
        ("def change(y): y[0].a = 1\nx = m()\nchange([x])\nshare = x", [1, 2, 3, 4]),
        (
            "def change(y): y.a = 1\ndef both(w, y): change(y)\nx = m()\nboth(1, x)\nshare = x",
            [1, 2, 3, 4, 5],
        ),
    ],
)
def test_names_stand_for_one_thing_and_functions_change_what_they_do(tmp_path, text, lines) -> None:
    assert needed(tmp_path, text) == lines


PICTURE = "import matplotlib.pyplot as plt\nfrom exformer_lessons.diagrams import box, draw\nx = m()\n"


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("ax = plt.figure().gca()\nax.plot(x)\nax.set(title='A')", False),
        ("fig, (left, right) = plt.subplots(1, 2)\nright.plot(x)\nfig.tight_layout()", False),
        ("fig, axes = plt.subplots(1, 2)\nfor ax, y in zip(axes, x): ax.plot(y)", False),
        ("fig, axes = plt.subplots(1, 2)\nfor n, ax in enumerate(axes): ax.plot(x)", False),
        ("def show(ax, y): ax.plot(y)\nshow(plt.figure().gca(), x)", False),
        ("b = [box('a') for _ in x]\nb.append(box(x))\ndraw(*b)", False),
        ("right = plt.figure()\nright.plot(x)\ndef f():\n  right = []\n  right.append(1)", False),
        # what is no picture, or perhaps none
        ("ax = m()\nax.plot(x)", True),
        ("ax = plt.figure().gca()\nax = m()\nfor ax in z: ax.plot(x)", True),
        ("ax = plt.figure().gca()\nif z: ax = m()\nax.plot(x)", True),
        ("fig, axes = plt.subplots(1, 2)\nfor ax, y in zip(axes, x): y.plot(1)", True),
        ("fig, axes = plt.subplots(1, 2)\nfor y, ax in zip(axes, x): ax.plot(y)", True),
        ("def show(ax, y): ax.plot(y)\nshow(x, 1)\nshow(plt.figure(), 1)", True),
        ("def show(ax, y): ax.append(y)\nfor f in (show,): f(x, 1)", True),
        ("def show(ax, y): y.append(1)\nshow(plt.figure(), x)", True),
        ("line = plt.figure().get_data(x)\nline.append(1)\ny = line\ny += x", None),
        ("def plt(y): y.a = 1\nplt(x)", True),
    ],
)
def test_pictures_change_nothing_but_pictures(tmp_path, text, needs) -> None:
    found = needed(tmp_path, f"{PICTURE}{text}\nshare = x")
    assert needs is None or any(line > 3 for line in found[:-1]) == needs


RANDOM = "import random\nimport torch\nfrom torch import nn\nfrom exformer import DecoderLM, translate\n"
RANDOM += "from exformer.training.loop import set_seed\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("print(random.random())\nshare = torch.rand(1)", [6, 7]),
        ("print(random.random())\nshare = 1", [7]),
        ("share = torch.rand(1)\nprint(random.random())", [6]),
        ("a = torch.rand(1)\nprint(a)\nshare = nn.Linear(1, 1)", [6, 8]),
        ("a = torch.ones(1)\nshare = nn.Linear(1, 1)", [7]),
        ("a = nn.Module()\nshare = nn.Linear(1, 1)", [7]),
        ("a = DecoderLM(z)\nshare = torch.rand(1)", [6, 7]),
        ("a = translate(z)\nshare = torch.rand(1)", [7]),
        ("a = torch.empty(1).normal_()\nshare = torch.rand(1)", [6, 7]),
        ("def f(): return torch.rand(1)\nf()\nshare = torch.rand(1)", [6, 7, 8]),
        ("def f(): return g()\ndef g(): return torch.rand(1)\nf()\nshare = torch.rand(1)", [6, 7, 8, 9]),
        ("a = (random.random() for _ in z)\nnext(a)\nshare = torch.rand(1)", [6, 7, 8]),
        ("class A:\n  def f(self): return torch.rand(1)\nA().f()\nshare = torch.rand(1)", [6, 8, 9]),
        ("f = lambda: torch.rand(1)\nf()\nshare = torch.rand(1)", [6, 7, 8]),
        ("torch.rand(1)\nset_seed(0)\nshare = torch.rand(1)", [7, 8]),
        ("random.random()\ntorch.manual_seed(0)\nshare = torch.rand(1)", [6, 7, 8]),
        ("torch.rand(1)\nfor _ in z: set_seed(0)\nshare = torch.rand(1)", [6, 7, 8]),
    ],
)
def test_what_draws_random_numbers_before_is_needed(tmp_path, text, lines) -> None:
    assert [line for line in needed(tmp_path, f"{RANDOM}{text}") if line > 5] == lines


def prints(tmp_path, *sources):
    lesson = lesson_of(tmp_path, *sources)
    return lesson.fingerprint(next(each for each in lesson.claims if each.claim_id == "A01"))


def test_a_fingerprint_sees_what_matters_and_nothing_else(tmp_path) -> None:
    base = prints(tmp_path, "x = 1\ny = 2", f"share = x\n{CLAIM}")
    same = [
        ["x = 1  # one\ny = 2", f"share = (x)\n{CLAIM}"],
        ["x = 1\ny = 3", f"share = x\n{CLAIM}"],
        ["x = 1", "y = 2\nprint(x)", f"share = x\n{CLAIM}", "share = 4"],
        ["x = 1", f"share = x\n{CLAIM.replace('{share}', 'It is {share:.0%}')}"],
    ]
    other = [
        ["x = 2\ny = 2", f"share = x\n{CLAIM}"],
        ["x = 1\ny = 2", f"share = x\n{CLAIM.replace('0.5', '0.4')}"],
        ["x = 1\ny = 2", f"share = x\n{CLAIM.replace('share=share', 'share=share / 2')}"],
        ["x = 1\ny = 2", f"share = x\n{CLAIM.replace('says', 'budget=True, says')}"],
        ["x = 1.0\ny = 2", f"share = x\n{CLAIM}"],
    ]
    assert [prints(tmp_path, *each) for each in same] == [base] * len(same)
    assert base not in [prints(tmp_path, *each) for each in other]


LESSON = """
import random
import matplotlib.pyplot as plt
import torch
from exformer import train
from exformer_lessons.claims import claim
from exformer_lessons.diagrams import box, column, draw
from exformer_lessons.setup import start
start(seed=0)
def sentence(n): return [random.random() for _ in range(n)]
print(sentence(3))
def learn(model, steps, peak=0.02):
    train(model, [torch.randn(8, 1) for _ in range(steps)], peak)
    return model
one = learn(torch.nn.Linear(1, 1), steps=10)
def draw_one(ax, model, title):
    ax.barh(["a"], model(torch.ones(1, 1)).tolist(), color="C0")
    ax.set(title=title)
draw_one(plt.figure(figsize=(4, 2)).gca(), one, "Before")
rows = {"one": one.weight.item()}
rows["two"] = 2.0
other = learn(torch.nn.Linear(1, 1), steps=20)
rows = {"one": one, "other": other}
fig, (left, right) = plt.subplots(1, 2)
for name, model in rows.items():
    right.plot([1], model.weight.tolist(), label=name)
right.text(1, 2, "label")
draw(column(*[box(name, width=30) for name in rows]))
claim("A02", holds=lambda weight: weight > 3, says="Other {weight}", weight=other.weight.item())
def score(model): right = torch.zeros(2); right += model.weight.item(); return right.sum().item()
share = score(other)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("figsize=(4, 2)", "figsize=(5, 2)"),
        ('"Before"', '"After"'),
        ('color="C0"', 'color="C1"'),
        ('"label"', '"another"'),
        ('rows["two"] = 2.0', 'rows["two"] = 3.0'),
        ("width=30", "width=40"),
        ("plt.subplots(1, 2)", "plt.subplots(1, 2, sharey=True)"),
        ("label=name", 'label=name + "!"'),
        ('says="Other {weight}"', 'says="The other one {weight}"'),
    ],
)
def test_a_change_of_a_picture_or_a_table_costs_no_trial(tmp_path, old, new) -> None:
    assert LESSON.count(old) == 1
    assert prints(tmp_path, LESSON.replace(old, new), CLAIM) == prints(tmp_path, LESSON, CLAIM)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("seed=0", "seed=1"),
        ("print(sentence(3))", "print(sentence(4))"),  # moves the random numbers
        ("print(sentence(3))\n", ""),
        ("steps=10", "steps=11"),  # the first training moves those of the second
        ("steps=20", "steps=21"),
        ("peak=0.02", "peak=0.01"),
        ("torch.randn(8, 1)", "torch.randn(4, 1)"),
        ("torch.zeros(2)", "torch.zeros(3)"),
        ("score(other)", "score(one)"),
        ("score(other)", "score(rows['one'])"),
        ("draw_one(plt", "learn(other := one, 1)\ndraw_one(plt"),
        ('right.text(1, 2, "label")', "other.weight.data.zero_()"),
        ('right.text(1, 2, "label")', "for each in rows.values(): each.weight = None"),
        ('right.text(1, 2, "label")', "learn(rows['other'], 1)"),
        ("    ax.set(title=title)", "    torch.rand(1)"),
    ],
)
def test_a_change_of_what_a_claim_measures_changes_its_hash(tmp_path, old, new) -> None:
    assert LESSON.count(old) == 1
    assert prints(tmp_path, LESSON.replace(old, new), CLAIM) != prints(tmp_path, LESSON, CLAIM)


def test_a_fingerprint_is_the_same_for_every_python() -> None:
    import ast

    text = 'def f(x: int, *, y=1) -> str:\n    """D."""\n    return f"{x:.2f} {y!r}"\nclass A: b = [1]\n'
    assert lesson_slices.fingerprint(ast.parse(text).body) == "3a05cab664f116f1"


def test_exercises_and_the_set_up_are_no_part_of_a_lesson(tmp_path) -> None:
    lesson = lesson_of(tmp_path, "x = 1", "y = 1", "z = 1", c0=["setup"], c2=["exercise"])
    assert [cell.number for cell in lesson.cells] == [1]


def test_claims_are_read_with_their_options(tmp_path) -> None:
    text = f'{CLAIM}\nclaim("A02", holds=x > 1, says="x")\nshown("A03", says="x")\n' + CLAIM.replace(
        "A01", "A04"
    ).replace("says", "budget=True, says")
    claims = lesson_of(tmp_path, text).claims
    assert [(each.claim_id, each.kind, each.measures_values, each.budget) for each in claims] == [
        ("A01", "claim", True, False),
        ("A02", "claim", False, False),
        ("A03", "shown", False, False),
        ("A04", "claim", True, True),
    ]


def book_of(folder):
    """Write a plan and some empty notebooks; return their folder."""
    for name in ("05_positional_encoding", "06_layer", "evidence/positional_encoding"):
        path = folder / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"cells": []}', encoding="utf-8")
    plan = '- {number: "05", slug: positional_encoding}\n- {number: "06", slug: layer}\n'
    (folder / "book").mkdir()
    (folder / "book" / "lessons.yml").write_text(plan, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        ([], ["positional_encoding", "layer", "evidence/positional_encoding"]),
        (["05"], ["positional_encoding"]),
        (["05_positional_encoding"], ["positional_encoding"]),
        (["positional_encoding"], ["positional_encoding", "evidence/positional_encoding"]),
        (["evidence/positional_encoding"], ["evidence/positional_encoding"]),
        (["06_layer.ipynb", "05"], ["positional_encoding", "layer"]),
    ],
)
def test_notebooks_are_found_by_number_and_by_topic(tmp_path, names, keys) -> None:
    found = lesson_code.find(names, book_of(tmp_path))
    assert [lesson_code.load(path).key for path in found] == keys


def test_an_unknown_notebook_is_refused(tmp_path) -> None:
    with pytest.raises(
        ValueError, match="there is no lesson '07'; there are: positional_encoding, layer, ev"
    ):
        lesson_code.find(["07"], book_of(tmp_path))


def test_every_lesson_of_the_book_has_a_topic_of_its_own() -> None:
    keys = [lesson_code.key_of(path) for path in lesson_code.paths()]
    assert len(set(keys)) == len(keys)
    assert not [key for key in keys if key[:2].isdigit()]
    plan = yaml.safe_load((lesson_code.ROOT / "book" / "lessons.yml").read_text(encoding="utf-8"))
    topics = {lesson["slug"] for lesson in plan}  # a lesson's evidence may be there before it
    assert {key.removeprefix("evidence/") for key in keys} <= topics, "evidence belongs to a lesson"
