"""`exformer-lessons` where only the packages are installed: lessons in a folder, JupyterLab, a check."""

import ast
import importlib.metadata
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from exformer_lessons import handout, lab, notebook
from exformer_lessons.__main__ import run

LESSON = "01_sums.ipynb"
LESSONS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch):
    """Be outside of a clone, with a package that holds one lesson; return the reader's home."""
    exercise = "def double(x): ...  # your code\n\n\ngrade_double(double)"
    program = "```python\ndef double(x):\n    return 2 * x\n```"
    solution = f"<details>\n<summary>Solution</summary>\n\n{program}\n\n</details>"
    cells = [
        {"cell_type": "code", "source": 'REPO = ""', "metadata": {"tags": ["setup"]}, "outputs": []},
        {"cell_type": "code", "source": "grade_double = lambda f: f(2) == 4", "metadata": {}, "outputs": []},
        {"cell_type": "markdown", "source": "> **Exercise 1.1 (Double).**", "metadata": {}},
        {"cell_type": "code", "source": exercise, "metadata": {"tags": ["exercise"]}, "outputs": []},
        {"cell_type": "markdown", "source": solution, "metadata": {}},
    ]
    folder = tmp_path / "package" / "notebooks"
    folder.mkdir(parents=True)
    (folder / LESSON).write_text(json.dumps({"cells": cells}), encoding="utf-8")
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    monkeypatch.setattr(notebook, "__file__", str(tmp_path / "package" / "notebook.py"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def opened(monkeypatch):
    """Put a JupyterLab in place that only notes what it is asked for."""
    asked = []
    app = SimpleNamespace(LabApp=SimpleNamespace(launch_instance=asked.extend))
    monkeypatch.setitem(sys.modules, "jupyterlab.labapp", app)
    return asked


def test_start_writes_the_lessons_and_opens_one(installed: Path, opened, capsys) -> None:
    assert run(["start", "sums", "--no-browser", "--options", "--port=1"]) == 0
    folder = lab.own_folder()
    assert folder.parent == installed
    assert "Solution" not in (folder / LESSON).read_text(encoding="utf-8")
    root, lesson, *rest = opened
    assert root == f"--ServerApp.root_dir={folder}"
    assert lesson == f"--LabApp.default_url=/lab/tree/{LESSON}"
    assert rest == ["--no-browser", "--port=1"]
    assert "1 new, 0 kept" in capsys.readouterr().out


@pytest.fixture
def executed(monkeypatch):
    """Note the command that this process would become."""
    words: list[str] = []
    monkeypatch.setattr(os, "execvp", lambda program, command: words.extend(command))
    return words


@pytest.mark.parametrize("words", [[], ["jupyterhub-singleuser", "--port=1", "--folder=x"]])
def test_a_hub_gets_lessons_and_then_its_server(installed: Path, executed, capsys, words) -> None:
    assert run(["hub", *words]) == 0
    assert "Solution" not in (handout.own_folder() / LESSON).read_text(encoding="utf-8")
    assert executed == (words or ["jupyterhub-singleuser"])
    assert "1 new, 0 kept" in capsys.readouterr().out


@pytest.mark.usefixtures("opened", "executed")
@pytest.mark.parametrize(
    "words", [["start", "--folder", "mine"], ["start", "--folder=~/mine"], ["hub", "--folder", "mine", "x"]]
)
def test_start_and_hub_leave_a_readers_work_alone(installed: Path, monkeypatch, capsys, words) -> None:
    monkeypatch.setenv("HOME", str(installed))
    (installed / "mine").mkdir()
    (installed / "mine" / LESSON).write_text("my work", encoding="utf-8")
    assert run(words) == 0
    assert (installed / "mine" / LESSON).read_text(encoding="utf-8") == "my work"
    assert "0 new, 1 kept" in capsys.readouterr().out


def test_a_notebook_keeps_the_address_that_it_states(installed: Path) -> None:
    path = notebook.readable_folder() / "notebooks" / LESSON
    stated = path.read_text(encoding="utf-8").replace('REPO = \\"\\"', 'REPO = \\"https://theirs\\"')
    for text, wanted in ((path.read_text(encoding="utf-8"), "https://given"), (stated, "https://theirs")):
        path.write_text(text, encoding="utf-8")
        [written], _ = handout.hand_out([], installed, address="https://given")
        assert handout.address_of(json.loads(written.read_text(encoding="utf-8"))) == wanted


def test_a_hub_starts_where_lessons_cannot_be_written(installed: Path, executed, capsys) -> None:
    (installed / "full").write_text("", encoding="utf-8")
    assert run(["hub", "--folder", "full", "x"]) == 0
    assert executed == ["x"]
    assert "Not all lessons are in full" in capsys.readouterr().err


def test_start_without_jupyterlab(installed: Path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "jupyterlab.labapp", None)
    assert run(["start"]) == 2
    assert "JupyterLab is missing: pip install jupyterlab" in capsys.readouterr().err
    monkeypatch.setattr(lab, "version", lambda name: importlib.metadata.version("no-such-package"))
    monkeypatch.setattr(lab, "describe", list)
    assert run(["doctor"]) == 1
    assert "JupyterLab is missing: pip install jupyterlab" in capsys.readouterr().out


def test_start_with_an_unknown_lesson(installed: Path, opened, capsys) -> None:
    assert run(["start", "99"]) == 2
    assert "there is no lesson '99'; there are: sums" in capsys.readouterr().err


def test_the_cells_that_doctor_runs(installed: Path) -> None:
    code, answered = lab._to_first_exercise(
        json.loads(notebook.paths(notebook.readable_folder())[0].read_text("utf-8"))
    )
    assert len(code) == 3
    names: dict = {}
    exec("\n".join(code), names)
    exec(answered, names)
    assert names["double"](3) == 6
    assert answered.endswith("grade_double(double)")


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_doctor_can_answer_the_first_exercise_of_each_lesson(path: Path) -> None:
    code, answered = lab._to_first_exercise(json.loads(path.read_text(encoding="utf-8")))
    given, answer = ast.parse(code[-1]).body, ast.parse(answered).body
    defined = {node.name for node in given if isinstance(node, ast.FunctionDef)}
    assert defined <= {node.name for node in answer if isinstance(node, ast.FunctionDef)}
    assert isinstance(answer[-1], ast.Expr)
    assert answer[-1].value.func.id.startswith("grade_")


@pytest.mark.parametrize(
    ("results", "status", "said"),
    [
        (["", "Not yet. …", "Right. …"], 0, "No problems found."),
        (["", "Right. …", "Right. …"], 1, "refuse no answer (Right. …) and accept"),
        (["", "Not yet. …", "Not yet. 1"], 1, "accept the solution (Not yet. 1)"),
        (RuntimeError("kernel died"), 1, "lesson 01 does not run: RuntimeError: kernel died"),
    ],
)
def test_what_doctor_says(installed: Path, monkeypatch, capsys, results, status, said) -> None:
    def ran(cells):
        if isinstance(results, Exception):
            raise results
        return results

    monkeypatch.setattr(lab, "_run_in_jupyter", ran)
    monkeypatch.setattr(lab, "describe", list)
    assert run(["doctor"]) == status
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(("words", "n"), [([], 1), (["02"], 1), (["--all"], 2)])
def test_doctor_runs_the_lessons_that_are_named(installed: Path, monkeypatch, capsys, words, n) -> None:
    first = installed.parent / "package" / "notebooks" / LESSON
    first.with_name("02_more.ipynb").write_text(first.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(lab, "_run_in_jupyter", lambda cells: ["Not yet. …", "Right. …"])
    monkeypatch.setattr(lab, "describe", list)
    assert run(["doctor", *words]) == 0
    assert capsys.readouterr().out.count("up to its first exercise") == n


def test_doctor_runs_cells_in_a_folder_of_its_own(installed: Path) -> None:
    pytest.importorskip("ipykernel")
    pytest.importorskip("nbclient")
    assert lab._run_in_jupyter(["1", "open('x', 'w').close()\n2", "print(3)"]) == ["1", "2", ""]
    assert not [*installed.iterdir()]


def test_handout_writes_one_lesson(installed: Path, capsys) -> None:
    assert run(["handout", "01", "--out", "spring/class"]) == 0
    assert [path.name for path in (installed / "spring" / "class").iterdir()] == [LESSON]
    assert capsys.readouterr().out == "spring/class: 1 notebooks\n"


def test_a_claim_is_reproduced_without_a_clone(installed: Path, capsys) -> None:
    source = "from exformer_lessons.claims import claim\nn = 6\n"
    source += 'claim("A01", holds=lambda n: n > 5, says="{n}.", n=n)'
    said = [{"data": {"text/plain": "claim A01 | 6."}}]
    cell = {"cell_type": "code", "source": source, "metadata": {}, "outputs": said}
    path = installed.parent / "package" / "notebooks" / "02_claims.ipynb"
    path.write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    assert run(["claim", "A01"]) == 0
    assert "A01, claims: measurement repeated" in capsys.readouterr().out
