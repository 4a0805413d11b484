"""Thirty notebooks, ten of them hostile, are graded in a sandbox: each is named, and nothing outside changes.

No hostile line is ever run outside the sandbox, and in it with small caps: 3 seconds, 256 MB, 20 processes.
"""

import csv
import hashlib
import json
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from folded_solutions import solutions
from rotation import rotating_part

from exformer_lessons.notebook import find
from exformer_lessons.teacher import __main__ as main
from exformer_lessons.teacher import grade, sandbox
from exformer_lessons.teacher.likeness import alike

CAPS = {"seconds": 3, "megabytes": 256, "processes": 20}
IMPORT = "from exformer_lessons.tokens.grader import grade_encode\n"
RIGHT = """
def my_encode(word, merges):
    word = list(word)
    for pair, new in merges.items():
        done = []
        while word:
            step = 2 if tuple(word[:2]) == pair else 1
            done, word = done + ([new] if step == 2 else word[:1]), word[step:]
        word = done
    return word
"""
CALL = "\ngrade_encode(my_encode)"
#: Right answers, written in many ways.
PASS = {
    "plain": [RIGHT],
    "a tuple": [RIGHT.replace("return word", "return tuple(word)")],
    "a generator": [RIGHT.replace("return word", "yield from word")],
    "an array": [RIGHT.replace("return word", "import numpy as np; return np.array(word)")],
    "a tensor": ["import torch\n" + RIGHT.replace("return word", "return torch.tensor(word)")],
    "helper before": ["def first(w):\n    return w[:1]\n", RIGHT.replace("word[:1]", "first(word)")],
    "constant before": ["TWO = 2\n", RIGHT.replace("step == 2", "step == TWO")],
    "lambda": [RIGHT.replace("my_encode", "encode") + "my_encode = lambda w, m: encode(w, m)"],
    "magic": ["%matplotlib inline\n", "!ls\n" + RIGHT],
    "a broken cell beside": ["def nothing(:\n", RIGHT],
    "a slow cell beside": ["import time\ntime.sleep(60)\n", RIGHT],
    "changes its argument": [RIGHT.replace("return word", "merges.clear(); return word")],
}
#: What else is handed in: its code, the result, and words of the hint.
OTHER = {
    "untouched": (["def my_encode(word, merges): ...\n"], "refused", "returns nothing"),
    "as it came": (["def my_encode(word, merges): return word\n"], "refused", ""),
    "a number": (["my_encode = 3\n"], "refused", "function itself"),
    "an object": (["class Cut: pass\n", "my_encode = lambda w, m: Cut()\n"], "refused", "got Cut"),
    "raises": (
        ["def my_encode(word, merges): return 1 / 0\n"],
        "error",
        "raised ZeroDivisionError: division",
    ),
    "missing": (["x = 1\n"], "error", "my_encode is not defined"),
    "broken": (["def my_encode(word, merges:\n"], "error", "SyntaxError"),
}
#: What is hostile, with {decoy}, {other} and {port} outside; result and hint.
HOSTILE = {
    "endless loop": ("while True: pass", "timeout", "within 3 seconds"),
    "memory": ("return [bytearray(50_000_000) for _ in range(100)]", "error", "MemoryError"),
    "deletes": (
        "import os, shutil; shutil.rmtree(os.path.expanduser('~'), True); shutil.rmtree({decoy!r})",
        "error",
        "FileNotFoundError",
    ),
    "socket": (
        "import socket; socket.create_connection(('127.0.0.1', {port}), 1)",
        "error",
        "Your function raised",
    ),
    "forks": (
        "import os, time\n    for _ in range(60):\n        if not os.fork(): time.sleep(60)",
        "error",
        "BlockingIOError",
    ),
    "prints forever": ("while True: print('passed')", "timeout", "within 3 seconds"),
    "exits": ("import os; os._exit(0)", "error", "ended before"),
    "holds stdout": ("import os, time; os.fork(); time.sleep(100)", "timeout", "within 3 seconds"),
    "reads another": ("return open({other!r}).read()", "error", "FileNotFoundError"),
    "fake result": (
        "import json, os, struct\n    data = json.dumps(dict(key='1', value=[1], result='passed')).encode()\n"
        "    for n in range(3, 20):\n        try: os.write(n, struct.pack('!I', len(data)) + data)\n"
        "        except OSError: pass",
        "tampered",
        "channel",
    ),
}
CHANGES = (
    "import exformer_lessons.exercises.grading as g\nimport exformer_lessons.tokens.grader as own\n"
    "own.grade_encode = grade_encode = lambda answer: g.Verdict(True, 'passed')\n"
    "print('Right.')\nmy_encode = lambda word, merges: word\n"
)


def notebook(*sources):
    cells = [{"cell_type": "code", "source": source, "metadata": {}, "outputs": []} for source in sources]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def checksum(folder):
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(f"{path} {path.lstat().st_mode} {path.lstat().st_mtime_ns}".encode())
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


@pytest.fixture(scope="module")
def graded(sandbox_kind, tmp_path_factory):
    """Grade thirty notebooks; return the rows by name, and whether all outside is as it was."""
    base = tmp_path_factory.mktemp("outside")
    decoy, folder = base / "decoy", base / "handed in"
    decoy.mkdir()
    folder.mkdir()
    (decoy / "thesis.txt").write_text("ten years of work")
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.2)
    outside = {"decoy": str(decoy), "other": str(folder / "plain.ipynb"), "port": listener.getsockname()[1]}
    handed = dict(PASS)
    handed |= {name: cells for name, (cells, *_) in OTHER.items()}
    for name, (body, *_) in HOSTILE.items():
        handed[name] = [f"def my_encode(word, merges):\n    {body.format(**outside)}\n"]
    handed["changes the grader"] = [CHANGES]
    assert len(handed) == 30
    for name, cells in handed.items():
        (folder / f"{name}.ipynb").write_text(notebook(*cells[:-1], IMPORT + cells[-1] + CALL))
    before = checksum(base)
    exercise = grade.exercises()["tokens"][:1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grade, "exercises", lambda: {"tokens": exercise})
        counts = grade.write(
            grade.grade_folder(folder, caps=CAPS, kind=sandbox_kind), base.parent / "marks.csv"
        )
    assert sum(counts.values()) == 30
    with pytest.raises(TimeoutError):
        listener.accept()
    listener.close()
    with (base.parent / "marks.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["student"].removesuffix(".ipynb"): row for row in csv.DictReader(file)}
    return rows, before == checksum(base)


def test_the_sandbox_holds_with_the_mildest_program(sandbox_kind, tmp_path):
    mild = tmp_path / "mild.txt"
    program = f"print(open({str(mild)!r}, 'w'))"
    with sandbox.opened(["-I", "-c", program], kind=sandbox_kind) as process:
        _, said = process.communicate(timeout=10)
    assert process.returncode == 1
    assert b"No such file" in said
    assert not mild.exists()


@pytest.mark.parametrize("name", PASS)
def test_a_right_answer_passes(graded, name):
    assert graded[0][name]["result"] == "passed", graded[0][name]


@pytest.mark.parametrize("name", OTHER)
def test_what_is_not_right_is_named(graded, name):
    row, (_, result, hint) = graded[0][name], OTHER[name]
    assert (row["result"], hint in row["hint"]) == (result, True), row


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_hostile_is_named(graded, name):
    row, (_, result, hint) = graded[0][name], HOSTILE[name]
    assert (row["result"], hint in row["hint"]) == (result, True), row


def test_a_changed_grader_is_named_and_judged_from_outside(graded):
    row = graded[0]["changes the grader"]
    assert row["result"] == "tampered"
    assert "Graded from outside: refused" in row["hint"]


def test_nothing_outside_changes_and_nothing_runs_on(graded):
    assert graded[1]
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [each for each in commands if b"teacher/inside.py" in each]
    assert max(float(row["seconds"]) for row in graded[0].values()) < 60  # what sleeps for 100 was ended


def refused(*arguments, capsys):
    assert main.run(["grade", *map(str, arguments)]) == 2
    return capsys.readouterr().err


def test_what_is_no_notebook_is_named(sandbox_kind, tmp_path):
    (tmp_path / "link.ipynb").symlink_to("/etc/hostname")
    (tmp_path / "text.ipynb").write_text("[" * 100_000)
    (tmp_path / "other.ipynb").write_text(notebook("x = 1"))
    (tmp_path / "unknown.ipynb").write_text(notebook("from exformer_lessons.new.grader import grade_x"))
    (tmp_path / "list.ipynb").write_text("[]")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "list-checkpoint.ipynb").write_text("[]")
    rows = [*grade.grade_folder(tmp_path, caps=CAPS, kind=sandbox_kind)]
    assert [row.result for row in rows] == ["error"] * 5
    hints = {row.student.removesuffix(".ipynb"): row.hint for row in rows}
    assert "it is a link" in hints["link"]
    assert all("Say it with --lesson" in hints[name] for name in ("other", "unknown"))
    assert all("cannot be read" in hints[name] for name in ("text", "list"))


def test_a_hand_in_without_a_notebook_is_named(sandbox_kind, tmp_path):
    for name in ("Ada_1_assignsubmission_file_/x", "Bo_2_assignsubmission_file_/in/x", "w1/cy/x"):
        path = tmp_path / f"{name}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(notebook("x = 1"))
    lost = [
        "Di_4_assignsubmission_file_/work.zip",
        "loose.docx",
        "w1/eve/b.pdf",
        "w2/Ada_1_assignsubmission_file_/a",
    ]
    beside = [
        "Ada_1_assignsubmission_file_/data/y.txt",
        "Bo_2_assignsubmission_file_/y.txt",
        "w1/y.txt",
        "marks.csv",
    ]
    for name in [*lost, *beside, "__MACOSX/._x.ipynb", "w1/.DS_Store", "w1/eve/a.png"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    rows = [*grade.grade_folder(tmp_path, caps=CAPS, kind=sandbox_kind)]
    told = {row.student: row.hint for row in rows if row.result == "no notebook"}
    assert [*told] == [lost[0], lost[1], "w1/eve/a.png", lost[3]]
    assert told["w1/eve/a.png"] == "It has no notebook: a.png, b.pdf."
    assert sum(row.result == "error" for row in rows) == 3


def test_files_of_a_student_of_canvas_are_one_hand_in():
    names = [
        *("w1/lovelaceada_12345_678910_a.ipynb", "w1/lovelaceada_12345_678911_b.pdf"),
        *("w1/kingmartin_LATE_12347_678912_b.pdf", "w1/kingmartin_LATE_12347_678913_c.pdf"),
        *("boz_99_text.html", "boz_99_1234_a.ipynb", "w1/boz_99_text.html"),
        "w1/Di_4_assignsubmission_file_/b.pdf",  # of Moodle
    ]
    told = grade.without_notebook([Path(name) for name in names])
    assert [*told] == [names[2], names[6], names[7]]
    assert told[names[2]] == [Path(name).name for name in names[2:4]]


#: These ask for more than values: a gradient through a function, a tokenizer, an error that is passed on.
ASK_MORE = {"training", "adapting", "faster"}


@pytest.mark.parametrize("lesson", sorted({*rotating_part([*grade.exercises()], parts=4), *ASK_MORE}))
def test_the_books_own_solutions_pass(sandbox_kind, tmp_path, lesson):
    [path, *_] = find([lesson])
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    handed = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (tmp_path / "a.ipynb").write_text(notebook(*handed, *solutions(lesson).values()))
    caps = {"seconds": 60, "megabytes": 512, "processes": 20}
    rows = grade.grade_folder(tmp_path, lesson=lesson, caps=caps, kind=sandbox_kind)
    answered = {"diagnosis", "clinic"}  # by words, not by a function
    assert {row.exercise: row.hint for row in rows if row.result != "passed"}.keys() <= answered


def test_a_lesson_can_be_named(sandbox_kind, tmp_path):
    (tmp_path / "a.ipynb").write_text(notebook("def my_split(x, n): return x\n"))
    rows = [
        *grade.grade_folder(
            tmp_path, lesson="multi_head_attention", caps=CAPS | {"seconds": 30}, kind=sandbox_kind
        )
    ]
    assert [row.exercise for row in rows] == ["split", "multi_head"]
    assert "my_merge is not defined" in rows[0].hint
    assert rows[0].shape == ("FunctionDef", "arguments", "arg", "arg", "Return", "Name")


def test_untouched_notebooks_are_no_pair(sandbox_kind, tmp_path):
    [path, *_] = find(["self_attention"])
    for who in ("ada", "bo"):
        (tmp_path / f"{who}.ipynb").write_bytes(path.read_bytes())
    rows = [*grade.grade_folder(tmp_path, caps=CAPS | {"seconds": 30}, kind=sandbox_kind)]
    assert {row.exercise for row in rows} == {"masked_attention", "diagnosis"}
    assert all(row.shape == row.given for row in rows)
    assert alike([replace(row, given=()) for row in rows])  # the cell of diagnosis is long
    assert alike(rows) == {}


def test_nothing_runs_without_a_sandbox(monkeypatch, tmp_path, capsys):
    (tmp_path / "a.ipynb").write_text(notebook(IMPORT + RIGHT))
    monkeypatch.setattr(sandbox, "kinds", list)
    monkeypatch.setattr(sandbox, "opened", lambda *_, **__: pytest.fail("it ran"))
    said = refused(tmp_path, "--csv", tmp_path / "out.csv", capsys=capsys)
    assert "install bubblewrap" in said
    assert "WSL 2" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "expected a folder with notebooks"),
        (("--lesson", "nothing"), "expected the slug of a lesson"),
        (("--seconds", 0), "expected at least 1 for --seconds, got 0"),
    ],
)
def test_refusals(arguments, says, tmp_path, capsys):
    assert says in refused(tmp_path, "--csv", tmp_path / "out.csv", *arguments, capsys=capsys)


def test_a_spreadsheet_reads_no_formula(tmp_path):
    row = grade.Result("=1+1.ipynb", "encode", "error", "@SUM(A1)", 0.0)
    grade.write(iter([row]), tmp_path / "out.csv")
    assert "'=1+1.ipynb,encode,error,'@SUM(A1),0.0" in (tmp_path / "out.csv").read_text()
