"""What the commands that measure for a lesson share: their file, and a sweep that goes on at its edges."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def read_runs(file: Path) -> dict[str, Any]:
    """Return the parts that have been measured so far, by name; none before the first."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def write_runs(file: Path, found: dict[str, Any]) -> None:
    """Write all parts on one line."""
    file.write_text(json.dumps(found, ensure_ascii=False) + "\n", encoding="utf-8")


def sweep_on(
    sweep: dict[float, Any],
    measure: Callable[[float], Any],
    best: Callable[[dict[float, Any]], float],
) -> None:
    """Add learning rates, a factor of two beyond an edge, while the best is the lowest or the highest.

    Args:
        sweep: What was measured, by learning rate.
        measure: Measures at a learning rate.
        best: Names the best learning rate of a sweep.

    >>> sweep = {rate: abs(rate - 8) for rate in (1.0, 2.0)}
    >>> sweep_on(sweep, lambda rate: abs(rate - 8), lambda sweep: min(sweep, key=sweep.get))
    >>> [*sweep]
    [1.0, 2.0, 4.0, 8.0, 16.0]
    """
    while (edge := best(sweep)) in (min(sweep), max(sweep)):
        following = edge / 2 if edge == min(sweep) else edge * 2
        sweep[following] = measure(following)
