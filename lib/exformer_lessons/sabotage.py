"""Doubt claims: change a cause, and see the claim refused on its figures. It is the book's negative control.

The sabotages of a notebook are in the file ``sabotages.yml`` of its topic. Each changes one piece of code
before the claim (the model, the training, the data or a mask), never what is measured or compared. All cells
before the claim must run; then the claim must not hold. The results are stored in ``doubts.json``.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from exformer.storage.files import write_json
from exformer_lessons.execution import execute, in_new_process
from exformer_lessons.notebook import Notebook, find, key_of, load
from exformer_lessons.tolerances import read_tags, same_claim
from exformer_lessons.trials import HOME, home_of


@dataclass(frozen=True)
class Sabotage:
    """A change of a cause that refutes some claims.

    Args:
        claims: Their ids.
        what: The change in words.
        old: A piece of code that is found once in the cells before the claims.
        new: What replaces it.
    """

    claims: tuple[str, ...]
    what: str
    old: str
    new: str


def sabotages(key: str, home: Path = HOME) -> list[Sabotage]:
    """Return the sabotages of a notebook, as its file has them.

    Raises:
        ValueError: If an entry is not of the given form.
    """
    path = home_of(key, home) / "sabotages.yml"
    found = []
    for row in (yaml.safe_load(path.read_text(encoding="utf-8")) or []) if path.is_file() else []:
        if set(row) != {"claim", "what", "old", "new"}:
            raise ValueError(f"{key}: expected claim, what, old and new, got {', '.join(row)}")
        claims = row["claim"] if isinstance(row["claim"], list) else [row["claim"]]
        if "\n" in row["what"].strip() or not row["what"].strip():
            raise ValueError(f"{key}, {claims[0]}: what ({row['what']!r}) must be one line")
        texts = [str(row[name] or "").rstrip("\n") for name in ("old", "new")]
        found.append(Sabotage(tuple(claims), row["what"].strip(), *texts))
    return found


def sabotaged(notebook: Notebook, sabotage: Sabotage) -> tuple[dict[int, str], int]:
    """Return the changed source by the number of its cell, and the number of the last cell to execute.

    Raises:
        ValueError: If a claim is not there, the old code is not found once before
            the first of them, or the change touches the cell of a claim or changes nothing.
    """
    claims = {each.claim_id: each.cell.number for each in notebook.claims if each.kind == "claim"}
    if missing := set(sabotage.claims) - set(claims):
        raise ValueError(f"{notebook.key}: no claim is called {', '.join(sorted(missing))}")
    notebook = notebook.section_of(*sabotage.claims)
    numbers = [claims[name] for name in sabotage.claims]
    name = f"{notebook.key}, {sabotage.claims[0]}"
    cells = [cell for cell in notebook.cells if cell.number < min(numbers)]
    times = sum(cell.source.count(sabotage.old) for cell in cells)
    if not sabotage.old.strip() or times != 1:
        raise ValueError(
            f"{name}: expected {sabotage.old!r} once in the code before the claim, got it {times} times"
        )
    if sabotage.old == sabotage.new:
        raise ValueError(f"{name}: the change must change something, got {sabotage.new!r} twice")
    changed = next(cell for cell in cells if sabotage.old in cell.source)
    if changed.number in {each.cell.number for each in notebook.claims}:
        raise ValueError(f"{name}: {sabotage.old!r} is in the cell of a claim: change a cause")
    return {changed.number: changed.source.replace(sabotage.old, sabotage.new)}, max(numbers)


def perform(path: Path, sabotage: Sabotage, key: str = "") -> list[dict[str, Any]]:
    """Run a notebook with a sabotage, in this process; return a row for each claim that is to be refuted."""
    notebook = load(path, key)
    sources, last = sabotaged(notebook, sabotage)
    notebook = notebook.section_of(*sabotage.claims)
    cells = [cell for cell in notebook.cells if cell.number <= last]
    found = execute(cells, path.resolve().parent, sources=sources)
    others = [
        name for name, each in found.findings.items() if not each["holds"] and name not in sabotage.claims
    ]
    claims = {each.claim_id: each for each in notebook.claims}
    rows = []
    for name in sabotage.claims:
        now = found.findings.get(name, {})
        wrong = ""
        if found.errors:
            number, text = next(iter(found.errors.items()))
            wrong = f"an error before the claim: cell {number}: {text}"
        elif others:
            wrong = f"refutes {', '.join(others)} too: find a milder change, or name it"
        elif not now:
            wrong = "the claim was not reached"
        elif now["holds"]:
            wrong = "the claim survives"
        elif {"nan", "inf", "-inf"} & {each for each in now["values"].values() if isinstance(each, str)}:
            wrong = "a value is NaN or infinite: the claim is not refuted by its figures"
        rows.append(
            {
                "claim": name,
                "what": sabotage.what,
                "old": sabotage.old,
                "new": sabotage.new,
                "says": claims[name].says,
                "normally": claims[name].stored.get("values", {}),
                "sabotaged": now.get("values", {}),
                "refused": not wrong,
                "wrong": wrong,
            }
        )
    return rows


def run(path: Path, sabotage: Sabotage, key: str = "") -> list[dict[str, Any]]:
    """Run a notebook with a sabotage in a process of its own; return its rows."""
    sabotaged(load(path, key), sabotage)  # what is wrong with it is seen before
    return in_new_process(perform, path, sabotage, key)


def show(rows: Iterable[dict[str, Any]]) -> None:
    """Print each claim, what is sabotaged, each value normally and now, and whether the claim was refused."""
    for row in rows:
        verdict = "refused" if row["refused"] else f"FAILED: {row['wrong']}"
        print(f"{row['claim']}   {row['what']}   {verdict}", flush=True)
        for name in row["normally"] | row["sabotaged"]:
            values = [row[side].get(name, "") for side in ("normally", "sabotaged")]
            texts = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
            print(f"      {name:24} {texts[0]:>12}  ->  {texts[1]:>12}", flush=True)


def every(paths: Iterable[Path], home: Path = HOME) -> list[tuple[Path, Sabotage]]:
    """Return all sabotages of some notebooks, each with its notebook's path."""
    return [(path, each) for path in paths for each in sabotages(key_of(path), home)]


def read_results(home: Path = HOME) -> dict[str, Any]:
    """Return the stored results: for each notebook, for each claim."""
    path = home / "doubts.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def store(key: str, rows: Iterable[dict[str, Any]], home: Path = HOME) -> None:
    """Replace the stored rows of the same claims."""
    results = read_results(home)
    kept = results.get(key, {}) | {
        row["claim"]: {name: row[name] for name in row if name != "wrong"} for row in rows
    }
    results[key] = {name: kept[name] for name in sorted(kept)}
    ordered = {name: results[name] for name in sorted(results)}
    write_json(home / "doubts.json", ordered, indent=1, ensure_ascii=False)


def problems(notebook: Notebook, listed: Sequence[Sabotage], results: dict[str, Any]) -> list[str]:
    """Return what is wrong with the sabotages of a notebook and with their stored results."""
    found = []
    doubted = {name: each for each in listed for name in each.claims}
    claims = {each.claim_id: each for each in notebook.claims if each.kind == "claim"}
    found += [f"{name} has no sabotage" for name in sorted(set(claims) - set(doubted))]
    for each in listed:
        try:
            sabotaged(notebook, each)
        except ValueError as error:
            found.append(str(error))
    for name, each in doubted.items():
        stored, claim = results.get(name, {}), claims.get(name)
        same = all(stored.get(part) == getattr(each, part) for part in ("what", "old", "new"))
        tolerances = read_tags(claim.cell.tags) if claim else {}
        if claim and claim.stored and not same_claim(stored.get("normally", {}), claim.stored, tolerances):
            found.append(f"{name}: doubted when the lesson found other figures: make doubt NB={notebook.key}")
        elif not same or not stored["refused"]:
            found.append(f"{name}: no result of this sabotage is stored: make doubt NB={notebook.key}")
    return found + [f"{name}: a result without a sabotage" for name in sorted(set(results) - set(doubted))]


def doubt(names: Sequence[str], *, only: Sequence[str] = ()) -> int:
    """Run the sabotages of some notebooks, print and store what they did; return the exit status."""
    rows = []
    for path, sabotage in every(find(names)):
        if not only or set(only) & set(sabotage.claims):
            new = run(path, sabotage)
            show(new)
            store(key_of(path), new)
            rows += new
    refused = sum(row["refused"] for row in rows)
    print(f"{refused} of {len(rows)} claims are refused under their sabotage")
    return 0 if refused == len(rows) else 1
