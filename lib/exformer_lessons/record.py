"""Record trials: run a notebook with other seeds, steps, learning rates and orders; keep what claims find.

A run executes the cells that count before the last of its claims, and the cells of claims; a record names
the hash of exactly those. It is written as each run ends, so that it can be broken off and taken up again.
"""

import ast
import inspect
import json
import platform
import runpy
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exformer.storage.files import write_json
from exformer_lessons.execution import Execution, execute, in_new_process
from exformer_lessons.notebook import UNTRAINED, Cell, Claim, Notebook, find, fingerprint, load, with_seed
from exformer_lessons.tolerances import read_tags, same_claim
from exformer_lessons.trials import HOME, RUNS, complaints, home_of, read_trial


def read_record(key: str, home: Path = HOME) -> dict[str, Any]:
    """Return the record of a notebook; an empty one where there is none."""
    path = home_of(key, home) / "trials.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"claims": {}, "runs": {}}


def write_record(key: str, record: dict[str, Any], home: Path = HOME) -> None:
    """Write the record of a notebook, as a whole or not at all."""
    path = home_of(key, home) / "trials.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, record, indent=1, ensure_ascii=False)


def stale(notebook: Notebook, record: dict[str, Any], run: str) -> list[Claim]:
    """Return the claims for which a run is missing or is of other code."""
    found = record["runs"].get(run, {}).get("claims", {})
    return [
        each
        for each in notebook.tried
        if found.get(each.claim_id, {}).get("code") != notebook.codes[each.claim_id]
    ]


def perform(notebook: Notebook, run: str, ids: Iterable[str]) -> tuple[dict[str, Any], float]:
    """Run the sections of a notebook that state some claims in one way, in this process.

    Returns:
        What to record of each claim, and the seconds.

    Raises:
        RuntimeError: If a cell fails for another reason than a training that diverges, a cell trains without
            ``train`` and without a ``Trainer``, or a claim tagged ``untrained`` depends on a training.
    """
    rows: dict[str, Any] = {}
    seconds, asked = 0.0, set(ids)
    for section in notebook.sections:
        claims = [each for each in section.claims if each.claim_id in asked]
        if claims:
            found, took = _perform(section, run, claims)
            rows |= found
            seconds += took
    return rows, seconds


def _perform(notebook: Notebook, run: str, claims: Sequence[Claim]) -> tuple[dict[str, Any], float]:
    """Run a section up to the last of its claims."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from exformer.training.loop import DivergenceError
    from exformer_lessons.variation import Variation, varied_training

    how = dict(RUNS[run])
    seed = how.pop("seed")
    last = max(each.cell.number for each in claims)
    stating = {each.cell.number for each in notebook.claims}
    counted = {cell.number for cell in notebook.counted} | stating
    cells = [cell for cell in notebook.cells if cell.number in counted and cell.number <= last]
    stepped, begun, diverged = [0], {}, []

    def count(*_: object) -> None:
        stepped[0] += 1

    def may_fail(error: Exception) -> bool:
        diverged.extend([str(error)] if isinstance(error, DivergenceError) else [])
        return bool(diverged)

    def after(cell: Cell) -> None:
        if stepped[0] != sum(each.optimizer_steps for each in trainings):
            raise RuntimeError(
                f"{notebook.key}: an optimizer stepped outside of the training loop in cell {cell.number}, "
                "which no trial can vary: train with exformer.train or a Trainer"
            )
        begun[cell.number] = len(trainings)

    hook = register_optimizer_step_post_hook(count)
    try:
        with varied_training(Variation(**how)) as trainings:
            sources = {cell.number: with_seed(cell.source, seed) for cell in cells}
            found = execute(
                cells, notebook.path.resolve().parent, sources=sources, may_fail=may_fail, after=after
            )
    finally:
        hook.remove()
    if seed == 0 and "rate" in how:
        _check_untrained(notebook, found)
    rows = {}
    for each in claims:
        before = trainings[: begun.get(each.cell.number)]
        rows[each.claim_id] = {
            "code": notebook.codes[each.claim_id],
            "steps": sum(training.optimizer_steps for training in before),
            "losses": [_last(training.losses) for training in before if training.losses],
            **_verdict(notebook, each, found, diverged),
        }
    return rows, found.seconds


def _verdict(notebook: Notebook, claim: Claim, found: Execution, diverged: list[str]) -> dict[str, Any]:
    finding = found.findings.get(claim.claim_id)
    if finding is not None:
        return {"holds": finding["holds"], "values": finding["values"]}
    if diverged:
        return {"diverged": diverged[0]}
    raise RuntimeError(f"{notebook.key}, {claim.claim_id}: {found.errors or 'the claim was not reached'}")


def _check_untrained(notebook: Notebook, found: Execution) -> None:
    """Check that another learning rate changes no claim that is said to depend on no training."""
    for claim in notebook.claims:
        now = found.findings.get(claim.claim_id)
        tags = claim.cell.tags
        tagged = now and claim.stored and UNTRAINED in tags
        if tagged and not same_claim(now["values"], claim.stored, read_tags(tags)):
            raise RuntimeError(
                f"{notebook.key}, {claim.claim_id} is tagged {UNTRAINED}, but another learning rate "
                f"changes its values to {now['values']}: drop the tag"
            )


def _last(losses: Sequence[float]) -> float:
    """Return the mean of the last tenth, in five digits: two seeds must not agree because of rounding."""
    part = losses[-max(1, len(losses) // 10) :]
    return float(f"{sum(part) / len(part):.5g}")


@dataclass(frozen=True)
class Sweep:
    """A function of a topic's ``sweeps.py`` that computes figures for a claim from names of the notebook."""

    claim_id: str
    name: str
    function: Callable[..., Any]
    code: str


def sweeps(notebook: Notebook, home: Path = HOME) -> list[Sweep]:
    """Return the sweeps of a notebook, each with the hash of the cells and of the code that it needs."""
    path = home_of(notebook.key, home) / "sweeps.py"
    if not path.is_file():
        return []
    body = ast.parse(path.read_text(encoding="utf-8")).body
    marked = {name: each for name, each in runpy.run_path(str(path)).items() if hasattr(each, "claim_id")}
    found = []
    for name, function in marked.items():
        own = [node for node in body if getattr(node, "name", "") not in marked.keys() - {name}]
        cells = _needed(notebook, function)
        code = fingerprint([*(cell.tree for cell in cells), *own])
        found.append(Sweep(function.claim_id, name, function, code))
    return found


def _needed(notebook: Notebook, function: Any) -> list[Cell]:
    """Return the cells that bind a sweep's parameters: of its claim's section, or of one that binds all."""
    wanted = set(inspect.signature(function).parameters)
    for section in notebook.sections:
        if wanted <= section.bound and any(each.claim_id == function.claim_id for each in section.claims):
            return section.up_to(wanted)
    return next(
        (each.up_to(wanted) for each in notebook.sections if wanted <= each.bound), notebook.up_to(wanted)
    )


def perform_sweep(notebook: Notebook, name: str, home: Path = HOME) -> tuple[Any, float]:
    """Execute the cells that a sweep needs, then the sweep; return its figures and the seconds."""
    begun = time.perf_counter()
    sweep = next(each for each in sweeps(notebook, home) if each.name == name)
    found = execute(_needed(notebook, sweep.function), notebook.path.resolve().parent)
    if found.errors:
        raise RuntimeError(f"{notebook.key}, {name}: {found.errors}")
    parameters = inspect.signature(sweep.function).parameters
    figures = sweep.function(**{each: found.names[each] for each in parameters})
    return json.loads(json.dumps(figures)), time.perf_counter() - begun


def machine() -> str:
    """Describe the machine without its name or a path."""
    import torch

    parts = [platform.system(), platform.machine(), f"Python {platform.python_version()}"]
    return ", ".join([*parts, f"torch {torch.__version__.split('+')[0]}"])


def record(
    path: Path,
    *,
    only: Sequence[str] = (),
    runs: Sequence[str] = (),
    again: bool = False,
    home: Path = HOME,
    say: Callable[[str], None] = print,
) -> int:
    """Run what is missing or stale of a notebook's trials, and judge all by the conditions of today.

    Args:
        path: The notebook.
        only: Claims; none stands for all.
        runs: Names of runs; none stands for all, and for the sweeps.
        again: Also run what is recorded already.
        home: Where the records are.
        say: Told of each run.

    Returns:
        How many runs there were.
    """
    notebook = load(path)
    key, done = notebook.key, 0
    for sweep in () if runs else sweeps(notebook, home):
        kept = read_record(key, home).get("sweeps", {}).get(sweep.claim_id, {}).get(sweep.name, {})
        if (kept.get("code") == sweep.code and not again) or (only and sweep.claim_id not in only):
            continue
        found, about = in_new_process(in_process, path, sweep.name, None, home)
        kept = read_record(key, home)
        own = kept.setdefault("sweeps", {}).setdefault(sweep.claim_id, {})
        own[sweep.name] = {"code": sweep.code, **about, "figures": found}
        write_record(key, kept, home)
        say(f"{key}   {sweep.claim_id}   sweep {sweep.name}   {about['minutes']} min")
        done += 1
    for run in runs or RUNS:
        claims = notebook.tried if again else stale(notebook, read_record(key, home), run)
        ids = [each.claim_id for each in claims if not only or each.claim_id in only]
        if not ids:
            continue
        found, about = in_new_process(in_process, path, run, ids, home)
        kept = read_record(key, home)
        rows = kept["runs"].get(run, {}).get("claims", {}) | found
        kept["runs"][run] = RUNS[run] | about | {"claims": {name: rows[name] for name in sorted(rows)}}
        write_record(key, judged(kept, notebook), home)
        for claim_id, row in found.items():
            say(f"{key}   {run:14} {claim_id}   {_summary(row)}   {about['minutes']} min")
        done += 1
    kept = read_record(key, home)
    if kept["runs"] and kept != judged(kept, notebook):
        write_record(key, judged(kept, notebook), home)
    return done


def in_process(path: Path, name: str, ids: Sequence[str] | None, home: Path) -> tuple[Any, dict[str, Any]]:
    """Perform a run for some claims, or the sweep of this name; called in a process of its own."""
    notebook = load(path)
    found, seconds = perform_sweep(notebook, name, home) if ids is None else perform(notebook, name, ids)
    return found, {"minutes": round(seconds / 60, 2), "machine": machine()}


def judged(record: dict[str, Any], notebook: Notebook) -> dict[str, Any]:
    """Return a record with the sentences of today, its values judged by the conditions of today."""
    claims, runs = {each.claim_id: each for each in notebook.tried}, {}
    for name in [each for each in RUNS if each in record["runs"]]:
        rows = {each: dict(row) for each, row in record["runs"][name]["claims"].items() if each in claims}
        for claim_id, row in rows.items():
            if "values" in row and row["code"] == notebook.codes[claim_id]:
                row["holds"] = claims[claim_id].judge(row["values"])
        runs[name] = record["runs"][name] | {"claims": rows}
    said = {name: {"says": claims[name].says, "budget": claims[name].budget} for name in sorted(claims)}
    return record | {"claims": said, "runs": runs}


def _summary(row: dict[str, Any]) -> str:
    verdict = "diverged" if "diverged" in row else "holds" if row["holds"] else "REFUTED"
    values = (
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in row.get("values", {}).items()
    )
    return f"{verdict}   {', '.join(values)}"


def problems(notebook: Notebook, home: Path = HOME) -> list[str]:
    """Return what is wrong with the trials of a notebook: missing, stale, refuting, or not of the page."""
    again, kept = f"make trials NB={notebook.key}", read_record(notebook.key, home)
    if kept != judged(kept, notebook):
        return [f"the record is of other claims, sentences or conditions: {again}"]
    wrong = []
    for claim in notebook.tried:
        found = read_trial(notebook.key, kept, claim.claim_id)
        theirs = complaints(found, notebook.codes[claim.claim_id])
        if not theirs and claim.stored:
            values = found.runs["seed 0"]["values"]
            if not same_claim(values, claim.stored, read_tags(claim.cell.tags)):
                theirs.append(
                    f"seed 0 found {values}, the lesson found others: does a folded cell that does "
                    "not count change what the claim reads, or sample random numbers?"
                )
        wrong += [f"{claim.claim_id}: {each}" for each in theirs]
    for sweep in sweeps(notebook, home):
        code = kept.get("sweeps", {}).get(sweep.claim_id, {}).get(sweep.name, {}).get("code")
        if code != sweep.code:
            wrong.append(f"{sweep.claim_id}: the sweep {sweep.name} is missing or stale: {again}")
    return wrong


def record_trials(
    names: Sequence[str], *, only: Sequence[str] = (), runs: Sequence[str] = (), again: bool = False
) -> int:
    """Record what is missing or stale of some notebooks, print what is then wrong; return an exit status."""
    wrong = []
    for path in find(names):
        record(path, only=only, runs=runs, again=again)
        notebook = load(path)
        wrong += [f"{notebook.key}, {each}" for each in problems(notebook)]
    print("\n".join(wrong) or "every claim that depends on a training is recorded, and holds")
    return 1 if wrong else 0
