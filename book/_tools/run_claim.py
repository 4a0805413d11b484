"""Reproduce one row of the ledger: execute what its claim depends on, and print the sentence it states.

    python book/_tools/run_claim.py A18 [A01 …]

Of each notebook that claims or shows a row only the statements are executed that the row depends on. The
sentence on the page is printed below for comparison.
"""

import os
import sys
import time
from pathlib import Path

import lesson_code
import lesson_runs
from lesson_slices import names_read, needed_for

sys.path.insert(0, str(Path(__file__).parents[1] / "_ext"))

from ledger_data import measured

if __name__ == "__main__":
    os.environ.update(lesson_runs.PINNED)


def places(claim_id, root=lesson_code.ROOT):
    """Return the notebooks in which a row is claimed or shown, each with that call.

    Raises:
        ValueError: If there is none.
    """
    lessons = [lesson_code.load(path) for path in lesson_code.paths(root)]
    found = [(lesson, each) for lesson in lessons for each in lesson.claims if each.claim_id == claim_id]
    if not found:
        known = sorted({each.claim_id for lesson in lessons for each in lesson.claims})
        raise ValueError(
            f"expected a row of the ledger that is measured ({', '.join(known)}), got {claim_id!r}"
        )
    return found


def reproduce(lesson, claim):
    """Execute what a claim depends on, then its cell; return its sentence, whether it holds, and the seconds.

    Raises:
        RuntimeError: If a statement fails for another reason than the claim.
    """
    before = [each for each in lesson.statements if each.cell < claim.cell.number]
    names, needed = set().union(*map(names_read, claim.cell.body)), {}
    for each in needed_for(before, names, set(), random=True):
        needed.setdefault(each.cell, []).append(each.node.lineno)
    cells = []
    for cell in lesson.cells:
        wanted = [node for node in cell.body if node.lineno in needed.get(cell.number, [])]
        if cell.number == claim.cell.number:
            wanted = cell.body
        lines = cell.source.splitlines()
        kept = ["\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in wanted]
        cells.append((cell.number, "\n".join(kept)))
    begun = time.perf_counter()
    found = lesson_runs.run_cells(lesson, sources=dict(cells), last=claim.cell.number)
    says = next((each for each in found["findings"] if each["id"] == claim.claim_id), None)
    if says is None:
        raise RuntimeError(f"{lesson.key}, {claim.claim_id}: {found['errors']}")
    return says["says"], says["holds"], time.perf_counter() - begun


def main(ids, root=lesson_code.ROOT):
    """Reproduce rows; return 1 if a claim does not hold.

    Args:
        ids: Of the ledger.
        root: Of the book.
    """
    wrong = 0
    for claim_id in ids:
        for lesson, claim in places(claim_id, root):
            page = lesson.path.relative_to(root).with_suffix("")
            stored = measured(root, page).get(claim_id, ("", "", ""))[1]
            says, holds, seconds = reproduce(lesson, claim)
            wrong |= not holds
            print(f"{claim_id}, {lesson.key}: {'holds' if holds else 'DOES NOT HOLD'}, {seconds:.0f} s")
            print(f"  now:  {says}\n  page: {stored}")
    return wrong


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]) if sys.argv[1:] else __doc__)
    except ValueError as error:
        sys.exit(str(error))
