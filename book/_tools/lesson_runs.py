"""Run the code of a lesson in a process of its own, without a notebook, and keep what its claims find."""

import ast
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import chdir, nullcontext, redirect_stdout
from pathlib import Path

import lesson_code

#: As in the Makefile: the same vector instructions and one thread everywhere, so that digits agree.
PINNED = {"ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
LIMIT_S = 3600


def change_code(lesson, old, new, *, before):
    """Return the sources of a lesson's cells, by their numbers, with one change.

    Args:
        lesson: The lesson.
        old: A piece of code that stands once in the cells before a claim.
        new: What takes its place.
        before: The claim.

    Raises:
        ValueError: If it does not stand there once, changes nothing, or touches the cell of a claim.
    """
    cells = [cell for cell in lesson.cells if cell.number < before.cell.number]
    times = sum(cell.source.count(old) for cell in cells)
    if not old.strip() or times != 1:
        raise ValueError(
            f"{lesson.key}, {before.claim_id}: expected {old!r} once in the code before the claim, "
            f"got it {times} times"
        )
    if old == new:
        raise ValueError(
            f"{lesson.key}, {before.claim_id}: the change must change something, got {new!r} twice"
        )
    changed = next(cell for cell in cells if old in cell.source)
    if changed.number in {each.cell.number for each in lesson.claims}:
        raise ValueError(
            f"{lesson.key}, {before.claim_id}: {old!r} stands in the cell of a claim: change a cause"
        )
    sources = {cell.number: cell.source for cell in lesson.cells}
    return sources | {changed.number: changed.source.replace(old, new)}


def run_cells(lesson, *, sources=None, last=None, goes_on=None, around=None):
    """Execute a lesson's cells here, statement by statement; return what its claims found, what went wrong.

    Args:
        lesson: The lesson.
        sources: Other sources by the cells' numbers.
        last: Number of the last cell that is executed; None: all.
        goes_on: Says whether an error of a cell does not end the run.
        around: Makes the context in which a cell is executed, from its number.

    Returns:
        A dictionary: ``findings``, each with its ``cell``, ``errors`` by cells' numbers, ``seconds``, and
        ``drew``: cell and line of each statement that drew random numbers.
    """
    import matplotlib.pyplot as plt

    from exformer_lessons.claims import kept_findings

    names, begun, errors, findings, drew = {"__name__": "__main__"}, time.perf_counter(), {}, [], []

    def execute(cell, source):
        name = f"{lesson.key}, cell {cell.number}"
        for node in ast.parse(source, name).body:
            before = random_state()
            exec(compile(ast.Module([node], []), name, "exec"), names)
            if random_state() != before:
                drew.append([cell.number, node.lineno])

    folder = chdir(lesson.path.resolve().parent)  # as a notebook does
    with folder, open(os.devnull, "w", encoding="utf-8") as nowhere:
        for cell in lesson.cells:
            if last is not None and cell.number > last:
                break
            source = (sources or {}).get(cell.number, cell.source)
            with redirect_stdout(nowhere), kept_findings() as found:
                try:
                    with around(cell.number) if around else nullcontext():
                        execute(cell, source)
                except Exception as error:
                    errors[cell.number] = f"{type(error).__name__}: {error}"
                    if goes_on is None or not goes_on(error):
                        break
                finally:
                    plt.close("all")
                    findings += [_as_json(each) | {"cell": cell.number} for each in found]
    seconds = round(time.perf_counter() - begun, 1)
    return {"findings": findings, "errors": errors, "seconds": seconds, "drew": drew}


def random_state():
    """Return where the random numbers of Python, numpy and torch are."""
    import numpy as np
    import torch

    _, words, at, *rest = np.random.get_state()
    return random.getstate(), words.tobytes(), at, rest, torch.get_rng_state().numpy().tobytes()


def _as_json(found):
    """Return a finding as a dictionary; JSON has no word for what is no number."""
    values = {
        name: str(value) if isinstance(value, float) and value - value != 0 else value
        for name, value in found.values.items()
    }
    return {
        "id": found.claim_id,
        "kind": found.kind,
        "holds": found.holds,
        "says": found.says,
        "values": values,
    }


def apart(script, request, *, limit_s=LIMIT_S):
    """Run a script of this kind in a new process: it reads a request as JSON and writes an answer.

    Raises:
        RuntimeError: If it gives no answer.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        done = subprocess.run(
            [sys.executable, str(script), "--answer", str(answer)],
            input=json.dumps(request),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit_s,
            env=os.environ | PINNED,
        )
        if not answer.is_file():
            raise RuntimeError(f"{request.get('key')}: no answer:\n{done.stdout[-2000:]}")
        return json.loads(answer.read_text(encoding="utf-8"))


def serve():
    """Answer one request to run a lesson up to a cell, perhaps with one change."""
    request = json.loads(sys.stdin.read())
    lesson = lesson_code.load(request["path"], request["key"])
    sources = None
    if "old" in request:
        before = next(each for each in lesson.claims if each.claim_id == request["before"])
        sources = change_code(lesson, request["old"], request["new"], before=before)
    found = run_cells(lesson, sources=sources, last=request["last"])
    Path(sys.argv[2]).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    serve()
