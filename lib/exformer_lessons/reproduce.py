"""Reproduce a row of the ledger: execute the cells before its claim, and print the sentence it states."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from exformer_lessons.execution import execute, in_new_process
from exformer_lessons.notebook import Claim, Notebook, load, paths, readable_folder


def places(claim_id: str) -> list[tuple[Notebook, Claim]]:
    """Return the notebooks in which a row is claimed or shown, each with that call.

    Raises:
        ValueError: If there is none.
    """
    notebooks = [load(path) for path in paths(readable_folder())]
    found = [(book, each) for book in notebooks for each in book.claims if each.claim_id == claim_id]
    if not found:
        known = sorted({each.claim_id for book in notebooks for each in book.claims})
        raise ValueError(
            f"expected a row of the ledger that is measured ({', '.join(known)}), got {claim_id!r}"
        )
    return found


def perform(path: Path, claim_id: str) -> tuple[dict[str, Any], float]:
    """Execute a notebook up to a claim, in this process; return what the claim finds, and the seconds.

    Raises:
        RuntimeError: If a cell fails.
    """
    notebook = load(path).section_of(claim_id)
    last = next(each.cell.number for each in notebook.claims if each.claim_id == claim_id)
    found = execute([cell for cell in notebook.cells if cell.number <= last], path.resolve().parent)
    if claim_id not in found.findings:
        raise RuntimeError(f"{notebook.key}, {claim_id}: {found.errors}")
    return found.findings[claim_id], found.seconds


def verdicts() -> dict[str, str]:
    """Return what the ledger says of each row; of a row that is new, nothing."""
    path = readable_folder() / "book" / "claims.yml"
    rows = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None
    words = {"condition": "holds with a condition", "definition": "true by definition"}
    return {row["id"]: words.get(row["verdict"], row["verdict"]) for row in rows or []}


def reproduce(ids: Sequence[str]) -> int:
    """Reproduce rows, and print each beside the sentence on its page.

    The measurement of a statement that is wrong is repeated like any other, so the verdict is told beside it.

    Args:
        ids: Of the ledger.

    Returns:
        The exit status: 1 if a measurement does not support its sentence again.
    """
    wrong, ledger = 0, verdicts()
    for claim_id in ids:
        for notebook, claim in places(claim_id):
            found, seconds = in_new_process(perform, notebook.path, claim_id)
            wrong |= not found["holds"]
            repeated = "measurement repeated" if found["holds"] else "MEASUREMENT NOT REPEATED"
            verdict = f"; verdict of the ledger: {ledger[claim_id]}" if claim_id in ledger else ""
            print(f"{claim_id}, {notebook.key}: {repeated}, {seconds:.0f} s{verdict}")
            print(f"  now:  {found['says']}\n  page: {claim.sentence}")
    return wrong
