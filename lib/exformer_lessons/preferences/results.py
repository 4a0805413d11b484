"""What was measured, as the lesson shows it: medians of five trainings, and the table of all ways."""

from collections.abc import Sequence
from math import log
from statistics import median
from typing import Any

from exformer_lessons.preferences.measure import runs
from exformer_lessons.tables import Table, table
from exformer_lessons.training.programs import fresh_rows

_COLUMNS = ("right", "different", "words", "excess")


def middle(five: Sequence[dict[str, Any]], column: str) -> float:
    """Return the median of five trainings."""
    return float(median(run[column] for run in five))


def rows() -> dict[str, list[float]]:
    """Return the medians of every way, each at the learning rate with the most right texts."""
    tuned = {
        "as it is": runs("base")["base"],
        "fine-tuned on accepted texts": best(runs("accepted"), "1 "),
        "the same, in twelve rounds": best(runs("accepted"), "12 "),
        "policy gradient": best(runs("policy"), ""),
        "with a price of 0.1": best(runs("kl"), "", " 0.1"),
        "with a price of 0.3": best(runs("kl"), "", " 0.3"),
        "DPO (below)": best(runs("preferences")["own"], ""),
    }
    found = {name: [middle(five, column) for column in _COLUMNS] for name, five in tuned.items()}
    only = runs("base")["until accepted"]
    # Each right sentence is 1/Z times as probable as before, so it costs log 1/Z nats less.
    tokens = sum(len(row) - 1 for row in fresh_rows()) / len(fresh_rows())
    excess = [a["excess"] - log(b["each"]) / tokens for a, b in zip(tuned["as it is"], only, strict=True)]
    found["asked until it is right"] = [middle(only, column) for column in _COLUMNS[:-1]] + [median(excess)]
    return found


def best(found: dict[str, Any], start: str, end: str = "") -> list[dict[str, Any]]:
    """Return the five runs with the most right texts, of the settings whose names begin and end so."""
    chosen = [five for name, five in found.items() if name.startswith(start) and name.endswith(end)]
    return max(chosen, key=lambda five: middle(five, "right"))


def ways() -> Table:
    """Return the table of all ways of judging."""
    columns = ["right", "different", "words", "excess"]
    return table(rows(), columns=columns, form=[".0f", ".0f", ".1f", ".2f"], corner="the model")
