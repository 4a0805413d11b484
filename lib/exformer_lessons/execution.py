"""Execute the cells of a notebook without Jupyter, and keep what its claims find."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

from exformer_lessons.claims import Finding, kept_findings
from exformer_lessons.notebook import Cell

#: As in the Makefile: everywhere the same vector instructions and one thread, so that digits agree.
PINNED = {"ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}


@dataclass
class Execution:
    """What came of executing cells.

    Args:
        findings: What the claims found, by their ids, as JSON holds it.
        errors: The errors by the numbers of the cells that raised them.
        names: What the cells have defined.
        seconds: How long it took.
    """

    findings: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


def execute(
    cells: Iterable[Cell],
    folder: Path,
    *,
    sources: Mapping[int, str] = MappingProxyType({}),
    may_fail: Callable[[Exception], bool] = lambda _: False,
    after: Callable[[Cell], None] = lambda _: None,
) -> Execution:
    """Execute cells in this process; a claim that does not hold stops nothing.

    Args:
        cells: In their order.
        folder: The working directory, that of their notebook.
        sources: Other sources, by the numbers of their cells.
        may_fail: Whether to go on after an error; what the cell binds is then unknown to the next ones.
        after: Called after each cell.
    """
    import matplotlib.pyplot as plt  # noqa: TID251 - the figures are closed

    found, begun = Execution(names={"__name__": "__main__"}), time.perf_counter()
    with chdir(folder), open(os.devnull, "w", encoding="utf-8") as nowhere:
        for cell in cells:
            source = sources.get(cell.number, cell.source)
            with redirect_stdout(nowhere), kept_findings() as findings:
                try:
                    exec(compile(source, f"cell {cell.number}", "exec"), found.names)  # noqa: S102
                except Exception as error:
                    found.errors[cell.number] = f"{type(error).__name__}: {error}"
                    for name in cell.binds:
                        found.names.pop(name, None)
                    if not may_fail(error):
                        break
                finally:
                    plt.close("all")
                    found.findings |= {each.claim_id: _as_json(each) for each in findings}
            after(cell)
    found.seconds = time.perf_counter() - begun
    return found


def in_new_process(function: Callable[..., Any], *arguments: object) -> Any:
    """Call a function in a process of its own, pinned as the Makefile pins it; return what it returns."""
    context = get_context("spawn")
    with patch.dict(os.environ, PINNED), ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def _as_json(found: Finding) -> dict[str, Any]:
    """Return a finding as a dictionary; JSON has no NaN and no infinity."""
    values = {
        name: str(value) if isinstance(value, float) and value - value != 0 else value
        for name, value in found.values.items()
    }
    return {"says": found.says, "holds": found.holds, "values": values}
