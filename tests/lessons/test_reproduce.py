"""``exformer-lessons claim`` reproduces rows of the ledger."""

import json
import os

import pytest

from exformer_lessons import reproduce
from exformer_lessons.__main__ import run
from exformer_lessons.execution import in_new_process

SET_UP = "from exformer_lessons.claims import claim\nn = 3"
SUM = "total = 0\nfor i in range(n + 1):\n    total += i"
CLAIM = 'claim("A01", holds=lambda total: total > 5, says="The total is {total}.", total=total)'


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Give a function that writes a book of one notebook; its last cell, after the claim, would fail."""
    monkeypatch.chdir(tmp_path)

    def write(old="", new=""):
        cells = []
        for source in (SET_UP, SUM, CLAIM, "1 / 0"):
            outputs = [{"data": {"text/plain": "claim A01 | The total is 6."}}] if source == CLAIM else []
            code = source.replace(old, new) if old else source
            cells.append({"cell_type": "code", "source": code, "metadata": {}, "outputs": outputs})
        (tmp_path / "notebooks").mkdir(exist_ok=True)
        (tmp_path / "_toc.yml").touch()
        (tmp_path / "notebooks" / "01_sums.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")

    return write


@pytest.mark.parametrize(
    ("n", "status", "verdict", "total"),
    [(3, 0, "A01, sums: measurement repeated, ", 6), (2, 1, "MEASUREMENT NOT REPEATED", 3)],
)
def test_a_claim_holds_or_not(write, capsys, n, status, verdict, total) -> None:
    write("n = 3", f"n = {n}")
    assert run(["claim", "A01"]) == status
    out = capsys.readouterr().out
    assert verdict in out
    assert f"now:  The total is {total}.\n  page: The total is 6." in out


def test_one_of_two_that_is_not_repeated_is_a_failure(write, monkeypatch) -> None:
    write()
    results = iter([({"holds": False, "says": "3"}, 0.0), ({"holds": True, "says": "6"}, 0.0)])
    monkeypatch.setattr(reproduce, "in_new_process", lambda *_: next(results))
    assert run(["claim", "A01", "A01"]) == 1
    assert not [*results]


@pytest.mark.parametrize(
    ("verdict", "told"), [("wrong", "wrong"), ("condition", "holds with a condition"), ("holds", "holds")]
)
def test_the_verdict_of_the_ledger_is_told(write, tmp_path, capsys, verdict, told) -> None:
    write()
    (tmp_path / "book").mkdir()
    row = f"- {{id: A01, verdict: {verdict}}}\n"
    (tmp_path / "book" / "claims.yml").write_text(row, encoding="utf-8")
    assert run(["claim", "A01"]) == 0
    assert f"measurement repeated, 0 s; verdict of the ledger: {told}\n" in capsys.readouterr().out


def test_the_settings_of_a_new_process(monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert in_new_process(os.getenv, "OMP_NUM_THREADS") == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert not in_new_process(eval, "'torch' in __import__('sys').modules"), "it inherits nothing"


def test_a_claim_needs_its_own_section_alone(write, capsys, tmp_path) -> None:
    write(SET_UP, f"{SET_UP}\nfrom exformer_lessons.setup import start\nstart(seed=0)")
    path = tmp_path / "notebooks" / "01_sums.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    path.write_text(json.dumps({"cells": [cells[0], cells[3], *cells]}), encoding="utf-8")
    assert run(["claim", "A01"]) == 0
    assert "A01, sums: measurement repeated" in capsys.readouterr().out


def test_an_unknown_row(write, capsys) -> None:
    write()
    assert run(["claim", "A02"]) == 2
    assert "a row of the ledger that is measured (A01), got 'A02'" in capsys.readouterr().err


def test_a_folder_outside_of_the_book(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["claim", "A01"]) == 2
    assert "expected a clone of the book" in capsys.readouterr().err


def test_a_failure_before_the_claim(write) -> None:
    write("total = 0", "total = 1 / 0")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run(["claim", "A01"])
