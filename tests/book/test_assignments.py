"""Assignments with points: a small one with throwaway keys is graded; the real ones are sealed and fit."""

import csv
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("pyrage")

from exformer_lessons.teacher import __main__ as main
from exformer_lessons.teacher import assignments, grade
from exformer_lessons.teacher.answers import MARK, read_manifest
from exformer_lessons.teacher.assignments import (
    FIRST,
    agree,
    announced,
    is_open,
    notebook_of,
    sealed_name,
    told_apart,
)
from exformer_lessons.teacher.inside import decode

TEACH = Path(__file__).parents[2] / "book" / "teach"
SEALED = [name for name in assignments.names(TEACH) if not is_open(TEACH, name)]
SOLUTION = f"""{FIRST}
def running(numbers):
    total, found = 0, []
    for each in numbers:
        total += each
        found.append(total)
    return found

def counts(text):
    return {{"letters": sum(map(str.isalpha, text)), "spaces": text.count(" ")}}
"""
CHECKS = f"""{FIRST}
WITHOUT = {{"running": [".accumulate"]}}
CHECKS = {{
    "running": [
        ("Sums", 3, [([1, 2, 4],), ([5, -5, 770077],)]),
        ("An empty list", 1, [([],)]),
    ],
    "counts": [
        ("Letters", 2, [("a bé 1",), ("",)], ["letters"]),
        ("Spaces", 1, [("a b  c",)], ["spaces"]),
    ],
}}
MISTAKES = {{
    "running": {{
        "You return the numbers.": lambda numbers: list(numbers),
        "You return the total.": [lambda numbers: sum(numbers), lambda numbers: [sum(numbers)]],
    }},
    "counts": {{
        "You count all characters.": lambda text: {{"letters": len(text), "spaces": text.count(" ")}},
    }},
}}
"""
COUNTS = (
    'def counts(text):\n    return {"letters": sum(c.isalpha() for c in text), "spaces": text.count(" ")}\n'
)
RUNNING = "def running(numbers):\n    return [sum(numbers[: i + 1]) for i in range(len(numbers))]\n"
#: What is handed in: its code, the points of both parts, the results, and words of a hint.
HANDED = {
    "right": (SOLUTION.removeprefix(FIRST), (4, 3), ("passed", "passed"), "All hidden cases are right"),
    "a generator": (
        "import numpy as np\ndef running(n):\n    yield from np.cumsum(n).astype(float)\n" + COUNTS,
        (4, 3),
        ("passed", "passed"),
        "",
    ),
    "more keys": (
        RUNNING + "def counts(t):\n    return {'letters': len([c for c in t if c.isalpha()]), 'spaces': "
        "len(t.split(' ')) - 1, 'length': len(t)}",
        (4, 3),
        ("passed", "passed"),
        "",
    ),
    "the numbers": (
        "def running(n): return n\n" + COUNTS,
        (1, 3),
        ("in part", "passed"),
        "Sums (0 of 3): You return the numbers.",
    ),
    "the total": (
        "def running(n): return [sum(n)]\n" + COUNTS,
        (0, 3),
        ("refused", "passed"),
        "You return the total.",
    ),
    "characters": (
        RUNNING + "def counts(t): return {'letters': len(t), 'spaces': t.count(' ')}",
        (4, 1),
        ("passed", "in part"),
        "Letters (0 of 2): You count all characters.",
    ),
    "another": (
        "def running(n): return [0] * len(n)\n" + COUNTS,
        (1, 3),
        ("in part", "passed"),
        "In case 1 of 2: the result[0] should be 1, yours is 0.",
    ),
    "raises": (
        "def running(n): return [n[0], *n[1:]] and 1 / 0\n" + COUNTS,
        (0, 3),
        ("refused", "passed"),
        "Your function raised ZeroDivisionError",
    ),
    "hangs late": (
        "def running(n):\n    while not n: pass\n    return [sum(n[:i]) for i in range(1, len(n) + 1)]\n"
        + COUNTS,
        (3, 3),
        ("timeout", "passed"),
        "An empty list and what comes after it (0)",
    ),
    "missing": (RUNNING, (4, 0), ("passed", "error"), "counts is not defined"),
    "excluded": (
        "import itertools\ndef running(n): return list(itertools.accumulate(n))\n" + COUNTS,
        (0, 3),
        ("excluded", "passed"),
        "It uses .accumulate, which the task excludes. Otherwise: passed, 4 points.",
    ),
    "excluded elsewhere": (
        "import itertools\nprint(list(itertools.accumulate([1])))\n# %%\n" + RUNNING + COUNTS,
        (4, 3),
        ("passed", "passed"),
        "",
    ),
    "reads the cases": (
        "import glob, os\ndef running(n):\n    paths = glob.glob('{outside}/**', recursive=True)\n"
        "    return [open(p).read() for p in paths + ['{outside}/sealed'] if not os.path.isdir(p)]\n"
        "def counts(t): return open('{outside}/key').read()",
        (0, 0),
        ("refused", "refused"),
        "FileNotFoundError",
    ),
    "searches memory": (
        "import gc\ndef running(n):\n    found = filter(lambda o: isinstance(o, dict), gc.get_objects())\n"
        "    return [o for o in found if 'right' in o][0]['right']\n" + COUNTS,
        (0, 3),
        ("refused", "passed"),
        "IndexError",
    ),
    "writes the result": (
        "import json, os, struct\ndef running(n):\n"
        "    data = json.dumps(dict(key='1', value=[], points=4)).encode()\n"
        "    for each in range(3, 20):\n        try: os.write(each, struct.pack('!I', len(data)) + data)\n"
        "        except OSError: pass\n" + COUNTS,
        (0, 3),
        ("tampered", "passed"),
        "channel",
    ),
}
CAPS = ("--seconds", "3", "--megabytes", "256")


def notebook(*sources):
    cells = [{"cell_type": "code", "source": source, "metadata": {}, "outputs": []} for source in sources]
    text = "## Part 1: `running`, 4 points\n\nSums.\n\n## Part 2: `counts`, 3 points\n"
    cells.append({"cell_type": "markdown", "source": text, "metadata": {}})
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def run(*words):
    return main.run([*map(str, words)])


def make(folder, solution=SOLUTION, checks=CHECKS):
    """Write a book with one assignment, its plain source and a key; return the words that seal it."""
    for name in ("teach/assignments", "teach/questions", "plain"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "lessons.yml").write_text("[]")
    (folder / "teach/exams.yml").write_text("[]")
    (folder / "teach/assignments/sums.ipynb").write_text(notebook())
    (folder / "plain/solution.py").write_text(solution)
    (folder / "plain/checks.py").write_text(checks)
    return "seal", "sums", "--source", folder / "plain", "--folder", folder / "teach"


def admit(folder, capsys):
    assert run("keygen", folder / "key") == 0
    (folder / "teach/recipients.txt").write_text(capsys.readouterr().out)


@pytest.fixture
def book(tmp_path, capsys):
    """Give a book with a sealed assignment."""
    words = make(tmp_path)
    admit(tmp_path, capsys)
    assert run(*words) == 0
    assert capsys.readouterr().out == "assignment_sums: 2 answers sealed, readers: 1\n"
    return tmp_path


@pytest.fixture(scope="module", params=["sealed", "open"])
def marks(sandbox_kind, tmp_path_factory, request):
    """Grade what is handed in; return the rows by name, and all that was sent into sandboxes."""
    base = tmp_path_factory.mktemp("course")
    seals, key = make(base), []
    from exformer_lessons.teacher.sealing import make_key

    (base / "teach/recipients.txt").write_text(make_key(base / "key"))
    if request.param == "open":
        (base / "plain").rename(base / "teach/assignments/sums")
    else:
        assert run(*seals) == 0
        key = ["--key", base / "key"]
    (base / "sealed").write_text("ours")
    (base / "in").mkdir()
    for name, (code, *_) in HANDED.items():
        (base / "in" / f"{name}.ipynb").write_text(
            notebook(*code.replace("{outside}", str(base)).split("# %%\n"))
        )
    sent, send = [], grade.send
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grade, "send", lambda out, message: (sent.append(message), send(out, message))[1])
        words = ("--csv", base / "marks.csv", "--assignment", "sums", *key)
        assert run("grade", base / "in", *words, "--teach", base / "teach", *CAPS) == 0
    rows = {}
    with (base / "marks.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["student"].removesuffix(".ipynb"), []).append(row)
    return rows, sent


@pytest.mark.parametrize("name", HANDED)
def test_points_results_and_hint(marks, name):
    _, points, results, hint = HANDED[name]
    *rows, total = marks[0][name]
    assert [row["exercise"] for row in rows] == ["running", "counts"]
    assert tuple(int(row["points"]) for row in rows) == points, rows
    assert tuple(row["result"] for row in rows) == results, rows
    assert any(hint in row["hint"] for row in rows), rows
    assert [row["of"] for row in rows] == ["4", "3"]
    assert (total["exercise"], int(total["points"]), total["of"]) == ("total", sum(points), "7")


def test_no_right_result_is_sent_into_a_sandbox(marks):
    sent = json.dumps(marks[1])
    assert "770077" in sent  # a hidden case
    assert "[0, 770077]" not in sent
    assert {frozenset(message) for message in marks[1]} == {
        frozenset(("cells", "wanted", "caps", "torch")),
        frozenset(("key", "name", "arguments")),
    }


def test_the_sealed_file_tells_parts_and_points_alone(book):
    entry = read_manifest(book / "teach")["assignment_sums"]
    assert entry["asks"] == [["running", 4], ["counts", 3]]
    assert set(entry) == {"asks", "file", "recipients"}
    sealed = (book / "teach/questions/assignment_sums.age").read_bytes()
    assert b"isalpha" not in sealed
    assert b"770077" not in sealed


def test_an_open_assignment_is_shown_without_a_key(tmp_path, capsys):
    make(tmp_path)
    words = "assignment", "sums", "--folder", tmp_path / "teach"
    assert run(*words) == 2
    assert "assignment sums is sealed: expected --key FILE" in capsys.readouterr().err
    (tmp_path / "plain").rename(tmp_path / "teach/assignments/sums")
    assert run(*words) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"# sums\n\n```python\n{SOLUTION.strip()}\n```\n\n## running, 4 points\n")
    assert "- 3 for Sums: 2 cases\n    - You return the numbers." in told


def test_what_is_open_is_not_sealed_as_well(tmp_path, capsys):
    words = make(tmp_path)
    admit(tmp_path, capsys)
    (tmp_path / "teach/assignments/sums").mkdir()
    assert run(*words) == 2
    assert "assignment sums is open" in capsys.readouterr().err
    assert not (tmp_path / "teach/questions/answers.json").exists()


def test_a_part_knows_what_was_handed_out(book):
    path = book / "teach/assignments/sums.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = json.loads(notebook("def running(numbers):\n    return numbers[::2]\n"))["cells"]
    path.write_text(json.dumps({"cells": cells + [each for each in code if each["cell_type"] == "code"]}))
    [running, counts] = assignments.read_parts(book / "teach", "sums", book / "key")
    assert (running.given[0], counts.given) == ("FunctionDef", ())


def test_who_has_the_key_reads_the_solution(book, capsys):
    words = "assignment", "sums", "--folder", book / "teach", "--key"
    assert run(*words, book / "key") == 0
    told = capsys.readouterr().out
    assert told.startswith(MARK)
    assert "total += each" in told
    assert "- 3 for Sums: 2 cases\n    - You return the numbers." in told
    assert run("keygen", book / "other") == 0
    capsys.readouterr()
    assert run(*words, book / "other") == 2
    assert "sealed for other keys" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--assignment", "sums"), "assignment sums is sealed: expected --key FILE"),
        (("--assignment", "other", "--key"), "expected one of the assignments (sums), got 'other'"),
    ],
)
def test_grading_refuses(book, words, says, capsys):
    key = [book / "key"] * (words[-1] == "--key")
    assert run("grade", book, "--csv", book / "out.csv", *words, *key, "--teach", book / "teach") == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"Sums", 3', '"Sums", 2', "announces [('running', 4), ('counts', 3)], but the checks have"),
        ("list(numbers),", "running(numbers),", "running: no check sees ('You return the numbers.', 0)"),
        (
            ": lambda numbers: list(numbers)",
            ": [list, lambda n: [sum(n)]]",
            "do not tell apart: 'You return the numbers.' and",
        ),
        ("([],)", "({1},)", "expected numbers, texts, tensors and what is nested of them"),
        (FIRST, "# mine", f"expected the first line {FIRST!r} in checks.py"),
    ],
)
def test_sealing_refuses(tmp_path, capsys, old, new, says):
    assert CHECKS.count(old) == 1
    assert run(*make(tmp_path, checks=CHECKS.replace(old, new))) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "teach/questions/answers.json").exists()


def test_a_solution_that_empties_its_list_changes_no_hidden_case():
    def emptied(numbers):
        return [numbers.pop() for _ in range(len(numbers))]

    (row,) = assignments._computed("emptied", emptied, [("All of them", 1, [([1, 2],)])], {})
    assert [decode(row[each]) for each in ("cases", "right")] == [[([1, 2],)], [[2, 1]]]


def test_nothing_for_one_case_of_several_is_told_as_such():
    (row,) = assignments._computed("length", len, [("All of them", 1, [([1],), ([],)])], {})
    told = assignments._fault(lambda numbers: len(numbers) or None, row)
    assert told == "In case 2 of 2: the result should be 0, yours is None."


def test_plain_assignments_stay_out_of_repositories(tmp_path, capsys):
    words = make(tmp_path)
    (tmp_path / ".git").mkdir()
    assert run(*words) == 2
    assert "outside any repository" in capsys.readouterr().err


def test_what_agrees():
    import torch

    row = torch.tensor([0.5, 2.0], dtype=torch.float64)
    assert agree({"a": [0.5, 2.0 + 1e-8]}, {"a": row})
    assert agree(row.float(), (0.5, 2.0))
    assert agree(row[:0].reshape(0, 3), [])
    assert not agree(row[None], row)
    assert not agree(["ab"], ["a"])
    assert agree({"a": 1, "b": 2}, {"a": 1})
    assert not agree({"a": 1}, {"a": 1, "b": 2})
    assert not agree("ab", b"ab")
    assert not agree([None], [1])
    assert not agree(float("nan"), 1.0)
    assert not agree(row * 1j, row)
    assert not agree([1], 1)
    assert agree(row.numpy(), "ab") is False
    assert told_apart([3], 4) == "the result should be 4, yours is [3]."
    assert told_apart(row * 1j, row) == "the result should be Tensor, yours is Tensor."
    assert "the result['a'][1] should be 'x', yours is None." in told_apart({"a": [1, None]}, {"a": [1, "x"]})
    assert "largest difference is 1" in told_apart([row, row + 1], [row, row])


@pytest.mark.parametrize("name", SEALED)
def test_an_assignment_is_sealed_as_its_notebook_announces(name):
    entry = read_manifest(TEACH)[sealed_name(name)]
    assert [tuple(each) for each in entry["asks"]] == announced(notebook_of(TEACH, name))
    assert sum(points for _, points in entry["asks"]) == 32


@pytest.mark.parametrize("name", assignments.names(TEACH))
def test_a_notebook_is_handed_out_empty(name):
    cells = json.loads(notebook_of(TEACH, name).read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")
    names: dict[str, object] = {}
    for part, _ in announced(notebook_of(TEACH, name)):
        empty = next(each for each in code if each.startswith(f"def {part}("))
        assert empty.rstrip().endswith('"""\n    ...')
        exec(empty, names)
        assert callable(names[part])
        assert any(f"{part}(" in each for each in code if "assert" in each), f"{part} has no case to run"


def test_the_page_offers_each_assignment():
    page = (TEACH / "assignments.md").read_text(encoding="utf-8")
    for name in assignments.names(TEACH):
        assert re.search(rf"\| \*{name}\* .*{{download}}`ipynb <assignments/{name}\.ipynb>`", page)
        written = notebook_of(TEACH, name).read_text(encoding="utf-8")
        assert "There are 40 points: 32 for" in written
        points = [int(each) for each in re.findall(r"\*\*\[(\d)\]\*\*", written)]
        assert sum(points) == int(re.search(r"on paper, (\d) points", written)[1]) == 8
        asked = page.partition(f"on <em>{name}</em></summary>")[2].partition("</details>")[0]
        rows = [row for row in asked.splitlines() if re.fullmatch(r"\| .+ \| .+ \|", row)][1:]
        assert len({*rows}) >= 6, f"{name} has too few questions for conversations"
