"""Curves of programs, a panel each, and what the laboratory says of the patients of the exercise."""

from collections.abc import Mapping
from typing import Any

from exformer_lessons.figures import panels
from exformer_lessons.tables import Table, table
from exformer_lessons.training.measure import runs
from exformer_lessons.training.programs import EVERY, LETTERED

CURVES = ("training", "validation")


def draw_curves(found: Mapping[str, Mapping[str, Any]], *, floor: float | None = None) -> None:
    """Draw the curves of programs, a panel for each: training, and what was reported in validation.

    Args:
        found: The runs, by their letters.
        floor: A line across each panel; None for none.
    """
    series = {letter: {name: run[name] for name in CURVES} for letter, run in found.items()}
    longest = max(len(run["training"]) for run in found.values())
    steps = [1, *range(EVERY, EVERY * longest, EVERY)]
    panels(series, x=steps, labels=("steps", "loss, nats per token"), limits=(-0.2, 6.2), line=floor)


def lettered_runs(*, seed: int) -> dict[str, Any]:
    """Return the runs of the dozen with a seed, by the letters of the lesson."""
    found = runs("dozen")
    return {letter: found[name][seed] for letter, name in zip("ABCDEFGHIJKL", LETTERED, strict=True)}


def draw_patients() -> None:
    """Draw the curves of the exercise's patients, with a line at the entropy."""
    draw_curves(runs("patients"), floor=runs("floor")["entropy"])


def laboratory() -> Table:
    """Return what is measured of the patients: two reports, the right loss, and a text."""
    values = ("reported", "again", "right")
    rows = {
        letter: [*(f"{run[name]:.3f}" for name in values), run["texts"][0]]
        for letter, run in runs("patients").items()
    }
    columns = ["reported", "again", "correct", "the small dog …"]
    return table(rows, columns=columns, corner="patient")
