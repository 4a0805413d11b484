"""Trials: what a claim found with other seeds, steps, rates and orders, as it was recorded."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from exformer_lessons.formatting import value_specs, write_value

#: The runs of a trial, by their names: the seed, then how many times the steps, the rate, and which order.
RUNS: dict[str, dict[str, Any]] = {
    **{f"seed {seed}": {"seed": seed} for seed in range(5)},
    "4x steps": {"seed": 0, "steps": 4},
    "rate/3": {"seed": 0, "rate": 1 / 3},
    "3x rate": {"seed": 0, "rate": 3.0},
    "another order": {"seed": 0, "order": 1},
}
#: What a table calls the runs that are no seeds.
HEADINGS = {
    "4x steps": "4× the steps",
    "rate/3": "rate ÷ 3",
    "3x rate": "rate × 3",
    "another order": "other batch order",
}
SEEDS = [name for name in RUNS if name.startswith("seed")]
#: Where the folders of the lessons are.
HOME = Path(__file__).parent


@dataclass(frozen=True)
class Trial:
    """The recorded trial of a claim; a notebook shows it as a table.

    Args:
        claim_id: The claim.
        key: Of the notebook that states it.
        says: Its sentence, without the figures.
        budget: Whether the sentence names a budget of training.
        runs: What was found in each run, by the runs' names.
        names: What the table calls the values; the others go by their own names.
        hidden: The values that the table leaves out.
    """

    claim_id: str
    key: str
    says: str = ""
    budget: bool = False
    runs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()

    def named(self, **names: str) -> "Trial":
        """Return the trial with other words for its values in the table.

        Args:
            names: For each value, what the table calls it.

        Raises:
            ValueError: If no such value is recorded.
        """
        self._check(names)
        return replace(self, names={**self.names, **names})

    def without(self, *names: str) -> "Trial":
        """Return the trial without some rows, as those of a sweep's figures, which are the same in each run.

        Args:
            names: The values that the table leaves out.

        Raises:
            ValueError: If no such value is recorded.
        """
        self._check(names)
        return replace(self, hidden=(*self.hidden, *names))

    def _check(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.recorded:
                known = ", ".join(self.recorded) or "none"
                raise ValueError(f"claim {self.claim_id}: no value {name!r} is recorded, there are: {known}")

    @property
    def recorded(self) -> list[str]:
        """The names of the values."""
        return list(dict.fromkeys(name for run in self.runs.values() for name in run.get("values", {})))

    @property
    def command(self) -> str:
        """What reproduces the trial."""
        return f"make trials NB={self.key}"

    @property
    def minutes(self) -> float:
        """How long the runs took, all together; they are shared with the other claims of the notebook."""
        return sum(run["minutes"] for run in self.runs.values())

    def rows(self) -> list[list[str]]:
        """Return the table: a row for each value, mean and range over the seeds first; then the verdicts.

        Words and fractions that are the same in all runs are left out: no training is behind them.
        """
        specs = value_specs(self.says)
        names = list(dict.fromkeys([*specs, *self.recorded]))
        others = [run for run in RUNS if run in self.runs and run not in SEEDS]
        seeds = sum(run in self.runs for run in SEEDS)
        rows = [["value", f"{seeds} seeds", *(HEADINGS[run] for run in others)]]
        for name in names:
            if name in self.hidden or self.is_constant(name):
                continue
            spec = specs.get(name, "")
            found = [write_value(self.runs[run].get("values", {}).get(name), spec) for run in others]
            called = self.names.get(name, name.replace("_", " "))
            rows.append([called, self.over_seeds(name), *found])
        return [*rows, ["holds", self._seeds_verdict(), *map(self._verdict, others)]]

    def is_constant(self, name: str) -> bool:
        """Say whether a value is a word or a fraction that is the same in all runs."""
        found = [run["values"][name] for run in self.runs.values() if name in run.get("values", {})]
        same = {each for each in found if isinstance(each, str | float)} - {"nan", "inf", "-inf", 0.0, 1.0}
        return len(same) == 1 and all(each in same for each in found)

    def over_seeds(self, name: str) -> str:
        """Return mean and range of a value over the seeds whose training converged, in words."""
        values = (self.runs.get(run, {}).get("values", {}).get(name) for run in SEEDS)
        found = [each for each in values if isinstance(each, int | float)]
        if not found:
            return "–"
        spec = value_specs(self.says).get(name, "")
        mean, least, most = (
            write_value(each, spec) for each in (sum(found) / len(found), min(found), max(found))
        )
        if least == most:
            return mean
        if least.endswith("%") and most.endswith("%"):
            return f"{mean} ({least[:-1]}–{most})"
        return f"{mean} ({least} to {most})"

    def _verdict(self, run: str) -> str:
        found = self.runs[run]
        if "diverged" in found:
            return "diverged"
        if found["holds"]:
            return "yes"
        return "no (need not)" if self._excused(run) else "no"

    def _excused(self, run: str) -> bool:
        """Whether a claim about a budget of training failed beyond it."""
        return self.budget and run == "4x steps" and self.runs.get(run, {}).get("holds") is False

    def _seeds_verdict(self) -> str:
        verdicts = [self._verdict(run) for run in SEEDS if run in self.runs]
        diverged = verdicts.count("diverged")
        found = f"{verdicts.count('yes')} of {len(verdicts)}"
        return f"{found}, {diverged} diverged" if diverged else found

    @property
    def footer(self) -> str:
        """How long it took, where, and what reproduces it."""
        if not self.runs:
            return f"Claim {self.claim_id}: nothing is recorded yet: {self.command}"
        seconds = 60 * self.minutes
        time = f"{self.minutes:.0f} minutes" if seconds > 90 else f"{seconds:.0f} seconds"
        machines = sorted({run["machine"] for run in self.runs.values()})
        where = "; ".join(machines)
        limit = ""
        if self._excused("4x steps"):
            limit = "The claim is about no more training than it names; with 4× the steps it need not hold. "
        return (
            f"Recorded: {len(self.runs)} runs, {time} on {where}; of the seeds, the mean and the range. "
            f"{limit}To repeat: {self.command}"
        )

    def __repr__(self) -> str:
        rows = self.rows() if self.runs else []
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, self.footer])

    def _repr_html_(self) -> str:
        rows = [[escape(cell) for cell in row] for row in self.rows()] if self.runs else []
        head = "".join(f"<th>{cell}</th>" for cell in rows[0]) if rows else ""
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows[1:])
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
        name = f'tabindex="0" role="region" aria-label="Trial of claim {self.claim_id}"'
        return f'<div class="trial" {name}>{table}<p>{escape(self.footer)}</p></div>'


def trial(claim_id: str, sweep: str = "", *, of: str = "") -> Any:
    """Return the record of a claim's trial, or of a wider sweep.

    Args:
        claim_id: The claim.
        sweep: Name of a sweep; none for the trial itself.
        of: Topic of the notebook, where several state the claim: ``positional_encoding``, or
            ``evidence/positional_encoding``.

    Returns:
        A :class:`Trial`, which a notebook shows as a table, or the figures of the sweep.

    Raises:
        ValueError: If the sweep is not recorded.
    """
    for key, record in read_records().items():
        if of not in ("", key):
            continue
        if sweep and sweep in record.get("sweeps", {}).get(claim_id, {}):
            return record["sweeps"][claim_id][sweep]["figures"]
        if not sweep and claim_id in record.get("claims", {}):
            return read_trial(key, record, claim_id)
    if sweep:
        raise ValueError(
            f"the sweep {sweep!r} of claim {claim_id} is not recorded: make trials NB={of or 'the lesson'}"
        )
    return Trial(claim_id, of or "the lesson")


def read_trial(key: str, record: Mapping[str, Any], claim_id: str) -> Trial:
    """Return the trial of a claim out of the record of its notebook."""
    runs = {
        name: {"minutes": run["minutes"], "machine": run["machine"]} | run["claims"][claim_id]
        for name, run in record["runs"].items()
        if claim_id in run["claims"]
    }
    return Trial(claim_id, key, **record["claims"][claim_id], runs=runs)


def home_of(key: str, home: Path | None = None) -> Path:
    """Return the folder of what belongs to a notebook; that of its evidence is in that of its lesson."""
    parts = key.split("/")
    return Path(HOME if home is None else home, *reversed(parts))


def read_records(home: Path | None = None) -> dict[str, Any]:
    """Return all records by their notebooks' topics, the lessons first."""
    home, found = HOME if home is None else home, {}
    for path in [*sorted(home.glob("*/trials.json")), *sorted(home.glob("*/evidence/trials.json"))]:
        record = json.loads(path.read_text(encoding="utf-8"))
        if "runs" in record:
            found["/".join(reversed(path.relative_to(home).parts[:-1]))] = record
    return found


def complaints(found: Trial, code: str) -> list[str]:
    """Return what is wrong with a trial: runs that are missing, of other code, or that refute the claim.

    Args:
        found: The trial.
        code: The hash of what the claim depends on now.
    """
    wrong = [f"{run} is not recorded" for run in RUNS if run not in found.runs]
    for run, row in found.runs.items():
        judged = "diverged" not in row and not (found.budget and run == "4x steps")
        if row["code"] != code:
            wrong.append(f"{run} was recorded with other code")
        elif judged and not row["holds"]:
            wrong.append(f"{run} refutes the claim: {row['values']}")
    base = found.runs.get(SEEDS[0], {})
    if "diverged" in base:
        wrong.append(f"{SEEDS[0]} diverged")
    if not wrong:
        wrong += _not_varied(found, base)
    return wrong


def _not_varied(found: Trial, base: Mapping[str, Any]) -> list[str]:
    """Return what shows that a run was not the one it is called."""
    wrong = []
    traces = [_trace(found.runs[run]) for run in SEEDS if "diverged" not in found.runs[run]]
    if any(trace in traces[:n] for n, trace in enumerate(traces)):
        wrong.append("two seeds gave the same losses: the lesson does not take its seed from start(seed=0)")
    longer = found.runs["4x steps"]
    if "diverged" not in longer and longer["steps"] != 4 * base["steps"]:
        wrong.append(f"{longer['steps']} steps are not four times {base['steps']}")
    for run in ("rate/3", "3x rate", "another order"):
        if _trace(found.runs[run]) == _trace(base):
            wrong.append(f"{run} gave the same losses as {SEEDS[0]}")
    return wrong


def _trace(run: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return what tells runs apart: losses near zero may agree once rounded, the values seldom do."""
    return run.get("losses"), run.get("values")


def sweep(claim_id: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function in the file ``sweeps.py`` of a topic as a wider sweep for a claim.

    Its parameters are names of the notebook: the cells up to the last that binds one of them are executed
    before it. It returns figures that JSON can hold.

    >>> @sweep("A01")
    ... def curve(learn, share):
    ...     return {str(length): share(learn(length)) for length in (4, 8, 16)}
    >>> curve.claim_id
    'A01'
    """

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        function.claim_id = claim_id  # type: ignore[attr-defined]
        return function

    return mark
