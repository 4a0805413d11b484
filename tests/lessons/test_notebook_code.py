"""The code that a claim rests on: cells that count, and a hash that sees what matters and nothing else."""

import ast
import builtins
import json
from pathlib import Path

import pytest
import yaml

from exformer_lessons import notebook

ROOT = Path(__file__).parents[2]
CLAIM = 'claim("A01", holds=lambda share: share > 0.5, says="{share}", share=share)'


def book_of(tmp_path, *sources):
    """Write and read a notebook; the source of a folded cell begins with #, that of an exercise with %."""
    tags = {"#": ["hide-input"], "%": ["exercise"]}
    cells = [
        {
            "cell_type": "code",
            "source": source.removeprefix("%"),
            "metadata": {"tags": tags.get(source[0], [])},
            "outputs": [],
        }
        for source in sources
    ]
    path = tmp_path / "01_one.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return notebook.load(path)


@pytest.mark.parametrize(
    ("sources", "counted"),
    [
        (["a = 1", "b = 2", f"#\n{CLAIM}"], [0, 1]),  # open cells count, read or not
        (["a = 1", "# a picture\nplot(a)", f"#\n{CLAIM}"], [0]),
        (["a = 1", "#\nshare = a", f"#\n{CLAIM}"], [0, 1]),  # a claim reads it
        (["#\na = 1", "share = a", f"#\n{CLAIM}"], [0, 1]),
        (["#\na = 1", "#\nshare = a", f"#\n{CLAIM}"], [0, 1]),
        (["#\na = 1", "#\nb = a", f"#\n{CLAIM}"], []),  # nobody reads b
        (["share = 1", f"#\n{CLAIM}", "#\nshare = 2"], [0]),  # after the claim
        (["share = {}", "#\nshare['a'] = 1", f"#\n{CLAIM}"], [0, 1]),
        (["share = m()", "#\nshare.a = 1", f"#\n{CLAIM}"], [0, 1]),
        (["share = 1", "#\nshare += 1", f"#\n{CLAIM}"], [0, 1]),
        (["share = 1", "#\nfor share in b: pass", f"#\n{CLAIM}"], [0, 1]),
        (["share = 1", "#\nwith a as share: pass", f"#\n{CLAIM}"], [0, 1]),
        (["#\ndef share(): pass", f"#\n{CLAIM}"], [0]),
        (["#\nfrom a import b as share", f"#\n{CLAIM}"], [0]),
        (["share = 1", "#\nplot(torch.randn(3))", f"#\n{CLAIM}"], [0, 1]),  # it moves the random numbers
        (["share = 1", f"#\nx = 2\n{CLAIM}", f"#\n{CLAIM.replace('A01', 'A02')}"], [0]),
        (["share = 1", f"#\nx = 2\n{CLAIM}", "#\nshare = x", f"#\n{CLAIM.replace('A01', 'A02')}"], [0, 1, 2]),
        (["%share = 1", f"{CLAIM}"], [1]),
    ],
)
def test_cells_that_count(tmp_path, sources, counted) -> None:
    assert [cell.number for cell in book_of(tmp_path, *sources).counted] == counted


def code(tmp_path, *sources):
    return book_of(tmp_path, *sources).codes["A01"]


BASE = ["from a import m\nx = 1\ny = 2", "# a picture\nplot(x)", f"share = x\n{CLAIM}"]


@pytest.mark.parametrize(
    "sources",
    [
        ["from b import m\nx = 1  # one\n\ny = 2", *BASE[1:]],
        ["import n\nx = 1\ny = (2)", *BASE[1:]],
        [BASE[0], "# another picture\nplot(y)", BASE[2]],
        [BASE[0], BASE[2]],
        [*BASE[:2], f"share = x\n{CLAIM.replace('{share}', 'It is {share:.0%}')}"],
        [*BASE[:2], f"share = x\n{CLAIM.replace('0.5', '0.4')}"],  # recorded values are judged anew
        [*BASE[:2], f"share = x\n{CLAIM.replace('says', 'budget=True, says')}"],
        [*BASE[:2], f"share = x\n{CLAIM}\nz = 3"],
        [*BASE, "share = 4"],
    ],
)
def test_changes_that_keep_the_hash(tmp_path, sources) -> None:
    assert code(tmp_path, *sources) == code(tmp_path, *BASE)


@pytest.mark.parametrize(
    "sources",
    [
        ["x = 2\ny = 2", *BASE[1:]],
        ["x = 1.0\ny = 2", *BASE[1:]],
        ["x = 1\ny = 3", *BASE[1:]],  # an open cell counts, read or not
        ["x = True\ny = 2", *BASE[1:]],
        ["y = 2\nx = 1", *BASE[1:]],
        ["from a import m, n as k\nx = 1\ny = 2", *BASE[1:]],  # another n may be k
        [BASE[0], "#\nx = plot(x)", BASE[2]],
        [*BASE[:2], "z = 1", BASE[2]],
        [*BASE[:2], f"share = y\n{CLAIM}"],
        [*BASE[:2], f"share = x\n{CLAIM.replace('share=share', 'share=share / 2')}"],
        [*BASE[:2], f"share = x\n{CLAIM.replace('share=share', 'share=share, more=1')}"],
    ],
)
def test_changes_that_change_the_hash(tmp_path, sources) -> None:
    assert code(tmp_path, *sources) != code(tmp_path, *BASE)


def test_different_hashes_of_0_none_and_no_value() -> None:
    texts = ["x = 0", "x = 1", "x = None", "x = ''", "x = []", "x = [0]", "x = False", "x"]
    assert len({notebook.fingerprint([ast.parse(text)]) for text in texts}) == len(texts)


def test_the_same_hash_for_every_python() -> None:
    text = 'def f(x: int, *, y=1) -> str:\n    """D."""\n    return f"{x:.2f} {y!r}"\nclass A: b = [1]\n'
    assert notebook.fingerprint(ast.parse(text).body) == "3a05cab664f116f1"


def test_claims_that_are_tried(tmp_path) -> None:
    claims = [CLAIM.replace("A01", f"A0{n}") for n in range(1, 5)]
    book = book_of(tmp_path, claims[0], "train(m)", claims[1], 'shown("A09", says="x")')
    assert [each.claim_id for each in book.tried] == ["A02"]
    assert book_of(tmp_path, claims[0], claims[1]).tried == []
    assert [each.claim_id for each in book_of(tmp_path, "train(m)", *claims).tried] == [
        "A01",
        "A02",
        "A03",
        "A04",
    ]
    book = book_of(tmp_path, "Trainer(m, b)", claims[0])
    assert len(book.tried) == 1
    tagged = notebook.Cell(1, claims[0], ("hide-input", "untrained"))
    assert notebook.Notebook("one", book.path, [book.cells[0], tagged]).tried == []


def test_cells_up_to_some_names(tmp_path) -> None:
    book = book_of(tmp_path, "a = 1", "b = 2", "# a picture\nplot(b)", "a = 3", "c = 4")
    assert [cell.number for cell in book.up_to(["a"])] == [0, 1, 3]
    assert [cell.number for cell in book.up_to(["b"])] == [0, 1]
    assert book.up_to(["unknown"]) == []


HEAD = "from a import b\nstart(seed=0)"


def test_sections_stand_on_their_own(tmp_path) -> None:
    first, second = [HEAD, "a = 1", "train(a)", CLAIM], [HEAD, "share = 2", CLAIM.replace("A01", "A02")]
    both = book_of(tmp_path, *first, *second)
    assert [len(section.cells) for section in both.sections] == [4, 3]
    assert both.section_of("A02").bound == {"b", "share"}
    assert both.codes == book_of(tmp_path, *first).codes | book_of(tmp_path, *second).codes
    assert [each.claim_id for each in both.tried] == ["A01"]  # nothing is trained in the second section
    assert len(book_of(tmp_path, HEAD, "start(seed=0)\na = 1", CLAIM).sections) == 1
    with pytest.raises(ValueError, match="one states no claim B01"):
        both.section_of("B01")


@pytest.mark.parametrize("path", notebook.paths(ROOT), ids=lambda path: path.stem)
def test_no_section_reads_names_of_one_before_it(path) -> None:
    before: set[str] = set()
    for section in notebook.load(path).sections:
        nodes = [node for cell in section.cells for node in ast.walk(cell.tree)]
        own = section.bound | {node.arg for node in nodes if isinstance(node, ast.arg)}
        read = {name for cell in section.cells for name in cell.names}
        assert not (read & before) - own - set(dir(builtins)), path.stem
        before |= section.bound


def test_claims_with_their_options(tmp_path) -> None:
    last = CLAIM.replace("A01", "A04").replace("says", "budget=True, says")
    text = f'{CLAIM}\nclaim("A02", holds=good, says="{{x}}", x=x)\nshown("A03", says="x")\n{last}'
    claims = book_of(tmp_path, text).claims
    assert [(each.claim_id, each.kind, each.budget) for each in claims] == [
        ("A01", "claim", False),
        ("A02", "claim", False),
        ("A03", "shown", False),
        ("A04", "claim", True),
    ]
    with pytest.raises(ValueError, match="A02 must have a condition on named values: write holds=lambda"):
        claims[1].judge({"x": 1})


@pytest.mark.parametrize(("share", "holds"), [(0.6, True), (0.5, False), ("nan", False), ("inf", False)])
def test_the_verdict_of_a_claim_on_recorded_values(tmp_path, share, holds) -> None:
    assert book_of(tmp_path, CLAIM).claims[0].judge({"share": share}) == holds


@pytest.fixture
def book(tmp_path):
    """Give a book of some empty notebooks."""
    for name in ("05_positional_encoding", "06_layer", "evidence/positional_encoding"):
        path = tmp_path / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"cells": []}', encoding="utf-8")
    Path(tmp_path, "_toc.yml").touch()
    return tmp_path


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
def test_notebooks_by_number_and_by_topic(book, names, keys) -> None:
    found = notebook.find(names, book)
    assert [notebook.load(path).key for path in found] == keys


def test_an_unknown_notebook(book) -> None:
    with pytest.raises(
        ValueError, match="there is no lesson '07'; there are: positional_encoding, layer, ev"
    ):
        notebook.find(["07"], book)


def test_the_clone_in_which_we_are(book, monkeypatch) -> None:
    monkeypatch.chdir(book / "notebooks" / "evidence")
    assert notebook.book_folder() == book
    monkeypatch.chdir("/")
    with pytest.raises(ValueError, match="expected a clone of the book, with its folder notebooks, got /"):
        notebook.paths()


def test_a_topic_of_its_own_for_every_lesson() -> None:
    keys = [notebook.key_of(path) for path in notebook.paths(ROOT)]
    assert len(set(keys)) == len(keys)
    plan = yaml.safe_load((ROOT / "book" / "lessons.yml").read_text(encoding="utf-8"))
    topics = {lesson["slug"] for lesson in plan}  # a lesson's evidence may be there before it
    assert {key.removeprefix("evidence/") for key in keys} <= topics, "evidence belongs to a lesson"
