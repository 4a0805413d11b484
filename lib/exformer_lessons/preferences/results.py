"""What was measured, as the lesson shows it: medians of five trainings, and the table of all ways."""

from collections.abc import Callable, Sequence
from math import log
from statistics import median
from typing import Any

from exformer_lessons.preferences.measure import runs
from exformer_lessons.tables import Table, table

_COLUMNS = ("right", "different", "words", "chosen")

Runs = Sequence[dict[str, Any]]


def middle(five: Runs, column: str) -> float:
    """Return the median of five trainings."""
    return float(median(run[column] for run in five))


def rows() -> dict[str, list[float]]:
    """Return the medians of every way, each at its best learning rate, and of the computed optima."""
    base = runs("base")["base"]
    found = {
        "as it is": [*(middle(base, column) for column in _COLUMNS[:-1]), 0.0],
        "asked until it is right": optimum(0.0),
        "fine-tuned on accepted texts": _row(best(runs("accepted"), start="1 ")),
        "policy gradient": _row(best(runs("policy"))),
    }
    for price in (0.1, 0.3):
        found |= {f"price {price}, trained": _row(priced(price)), f"price {price}, optimum": optimum(price)}
    return found | {"DPO (below)": _row(best(runs("own")))}


def _row(five: Runs) -> list[float]:
    return [middle(five, column) for column in _COLUMNS]


def optimum(price: float) -> list[float]:
    """Return the row of the distribution at which a price has its maximum.

    Among right texts it has the proportions of the model before, so as many are different; and it makes each
    as many times as probable as texts must be generated for one of its own.
    """
    five = runs("optimum")[f"{price:g}"]
    different = middle(runs("base")["base"], "different")
    return [middle(five, "right"), different, middle(five, "words"), log(middle(five, "each"))]


def best(found: dict[str, Runs], *, start: str = "", goal: Callable[[Runs], float] | None = None) -> Runs:
    """Return the five runs with the most right texts, or the highest goal, of settings that begin so."""
    chosen = [five for name, five in found.items() if name.startswith(start)]
    return max(chosen, key=goal or (lambda five: middle(five, "right")))


def priced(price: float) -> Runs:
    """Return the five runs of a price with the highest objective: right texts minus price times distance."""
    found = {name: five for name, five in runs("kl").items() if name.split()[1] == f"{price:g}"}
    return best(found, goal=lambda five: objective(five, price))


def objective(five: Runs, price: float) -> float:
    """Return the fraction of right texts minus the price of the distance, the median of five trainings."""
    return median(run["right"] / 1_000 - price * run["kl"] for run in five)


def ways() -> Table:
    """Return the table of all ways of judging."""
    columns = ["right", "different", "words", "nats"]
    shown = {name: [*row[:3], f"{row[3]:+.1f}".replace("-", "−")] for name, row in rows().items()}
    return table(shown, columns=columns, form=[".0f", ".0f", ".1f", ""], corner="the model")
