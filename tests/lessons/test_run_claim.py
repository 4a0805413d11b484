"""`make claim ID=…` reproduces a row of the ledger from what its claim depends on alone."""

import json
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_tools"))

import run_claim  # noqa: E402

SET_UP = "from exformer_lessons.claims import claim\nn = 3"
IDLE = "idle = 1 / 0"
CLAIM = 'claim("A01", holds=lambda total: total > 5, says="The total is {total}.", total=total)'


@pytest.fixture
def root(tmp_path):
    """Give a book of one notebook, in which a cell that no claim needs would fail."""
    outputs = [{"data": {"text/plain": "claim A01 | The total is 6."}}]
    cells = [
        {"cell_type": "code", "source": source, "metadata": {}, "outputs": []}
        for source in (SET_UP, IDLE, "total = 0\nfor i in range(n + 1):\n    total += i")
    ]
    cells.append({"cell_type": "code", "source": CLAIM, "metadata": {}, "outputs": outputs})
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "book").mkdir()
    (tmp_path / "notebooks" / "01_sums.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    plan = [{"number": "01", "slug": "sums", "title": "Sums", "question": "?"}]
    (tmp_path / "book" / "lessons.yml").write_text(yaml.safe_dump(plan), encoding="utf-8")
    return tmp_path


def test_what_the_claim_needs_is_executed_and_nothing_else(root, capsys) -> None:
    assert run_claim.main(["A01"], root) == 0
    out = capsys.readouterr().out
    assert "A01, sums: holds" in out
    assert "now:  The total is 6.\n  page: The total is 6." in out


def test_a_claim_that_fails_says_so(root, capsys) -> None:
    path = root / "notebooks" / "01_sums.ipynb"
    path.write_text(path.read_text(encoding="utf-8").replace("n = 3", "n = 2"), encoding="utf-8")
    assert run_claim.main(["A01"], root) == 1
    assert "DOES NOT HOLD" in capsys.readouterr().out


def test_an_unknown_row_is_refused(root) -> None:
    with pytest.raises(ValueError, match=r"a row of the ledger that is measured \(A01\), got 'A02'"):
        run_claim.main(["A02"], root)


def test_a_failure_before_the_claim_is_no_finding(root) -> None:
    path = root / "notebooks" / "01_sums.ipynb"
    path.write_text(path.read_text(encoding="utf-8").replace("total = 0", "total = 1 / 0"), encoding="utf-8")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run_claim.main(["A01"], root)
