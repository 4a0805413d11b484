"""Doubt every claim: change a cause, and see the claim refused on its figures.

``make doubt`` runs all, ``make doubt NB=positional_encoding`` those of a lesson and of its evidence. A
sabotage stands in ``sabotages.yml`` in its lesson's folder: it changes one piece of code before the
claim, the model, the training, the data or a mask, never what is measured or compared. Everything before
the claim must run; then the claim must not hold. ``lib/exformer_lessons/doubts.json`` has the results.
"""

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_tools"))

import lesson_code  # noqa: E402
import lesson_runs  # noqa: E402

RESULTS = Path("lib", "exformer_lessons", "doubts.json")
PARTS = 10  # a rotating part of the sabotages is run by every `make test`


@dataclass(frozen=True)
class Sabotage:
    """A change of a cause that refutes some claims."""

    claims: tuple[str, ...]
    what: str
    old: str
    new: str


def sabotages(key, root=ROOT):
    """Return the sabotages of a notebook, as its file has them.

    Raises:
        ValueError: If an entry is not of the given form.
    """
    path = Path(root, "lib", "exformer_lessons", *reversed(key.split("/")), "sabotages.yml")
    found = []
    for row in (yaml.safe_load(path.read_text(encoding="utf-8")) or []) if path.is_file() else []:
        if set(row) != {"claim", "what", "old", "new"}:
            raise ValueError(f"{path.name}: expected claim, what, old and new, got {', '.join(row)}")
        claims = row["claim"] if isinstance(row["claim"], list) else [row["claim"]]
        if "\n" in row["what"].strip() or not row["what"].strip():
            raise ValueError(f"{path.name}, {claims[0]}: what ({row['what']!r}) must be one line")
        texts = [str(row[name] or "").rstrip("\n") for name in ("old", "new")]
        found.append(Sabotage(tuple(claims), row["what"].strip(), *texts))
    return found


def last_claim(lesson, sabotage):
    """Return the last of the claims that a sabotage is to refute; check that it can be run.

    Raises:
        ValueError: If a claim is not there or measures no named values, or the change is not allowed.
    """
    claims = {each.claim_id: each for each in lesson.claims if each.measures_values}
    if missing := set(sabotage.claims) - set(claims):
        raise ValueError(f"{lesson.key}: no claim of named values is called {', '.join(sorted(missing))}")
    own = [claims[name] for name in sabotage.claims]
    for each in own:  # before the first of them too
        lesson_runs.change_code(lesson, sabotage.old, sabotage.new, before=each)
    return max(own, key=lambda each: each.cell.number)


def judge(lesson, sabotage, answer):
    """Return a row for each claim that was to be refuted: the values, normally and now, and what is wrong."""
    found = {each["id"]: each for each in answer["findings"]}
    others = [
        each["id"] for each in answer["findings"] if not each["holds"] and each["id"] not in sabotage.claims
    ]
    error = next((f"cell {number}: {text}" for number, text in answer["errors"].items()), "")
    stored = {each.claim_id: each.stored.get("values", {}) for each in lesson.claims}
    says = {each.claim_id: each.says for each in lesson.claims}
    rows = []
    for name in sabotage.claims:
        now = found.get(name, {})
        wrong = ""
        if error:
            wrong = f"an error before the claim: {error}"
        elif others:
            wrong = f"refutes {', '.join(others)} too: find a milder change, or name it"
        elif not now:
            wrong = "the claim was not reached"
        elif now["holds"]:
            wrong = "the claim survives"
        elif any(value in ("nan", "inf", "-inf") for value in now["values"].values()):
            wrong = "a value is no number: the claim is not refuted by its figures"
        rows.append(
            {
                "claim": name,
                "what": sabotage.what,
                "old": sabotage.old,
                "new": sabotage.new,
                "says": says[name],
                "normally": stored[name],
                "sabotaged": now.get("values", {}),
                "refused": not wrong,
                "wrong": wrong,
            }
        )
    return rows


def run(path, sabotage, key=None):
    """Run a notebook with a sabotage, in a process of its own; return its rows."""
    lesson = lesson_code.load(path, key)
    last = last_claim(lesson, sabotage)
    request = {"path": str(path), "key": lesson.key, "old": sabotage.old, "new": sabotage.new}
    request |= {"before": last.claim_id, "last": last.cell.number}
    answer = lesson_runs.apart(lesson_runs.__file__, request)
    return judge(lesson, sabotage, answer)


def show(rows):
    """Print a table: claim, what is sabotaged, each value normally and now, and whether it was refused."""
    for row in rows:
        verdict = "refused" if row["refused"] else f"FAILED: {row['wrong']}"
        print(f"{row['claim']}   {row['what']}   {verdict}", flush=True)
        for name in row["normally"] | row["sabotaged"]:
            values = [row[side].get(name, "") for side in ("normally", "sabotaged")]
            texts = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
            print(f"      {name:24} {texts[0]:>12}  ->  {texts[1]:>12}", flush=True)


def commits(root=ROOT):
    """Return how many commits there are, and the last one's short name; 0 and nothing where git is silent."""
    found = []
    for command in (["rev-list", "--count", "HEAD"], ["rev-parse", "--short=12", "HEAD"]):
        try:
            done = subprocess.run(["git", "-C", str(root), *command], capture_output=True, text=True)
        except OSError:
            return 0, ""
        found.append(done.stdout.strip() if done.returncode == 0 else "")
    return int(found[0] or 0), found[1]


def part(things, count, parts=PARTS):
    """Return every tenth of some things, another tenth for each count."""
    return [each for number, each in enumerate(things) if number % parts == count % parts]


def every(paths, root=ROOT):
    """Return all sabotages of some notebooks, each with its notebook's path."""
    return [(path, each) for path in paths for each in sabotages(lesson_code.key_of(path), root)]


def read_results(root=ROOT):
    """Return the stored results: for each notebook, for each claim."""
    path = Path(root, RESULTS)
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def store(key, rows, commit, root=ROOT):
    """Put rows in place of the stored ones of the same claims."""
    from exformer.storage.files import replace_file

    results = read_results(root)
    kept = results.get(key, {}) | {row["claim"]: row | {"commit": commit} for row in rows}
    for row in kept.values():
        row.pop("wrong", None)
    results[key] = {name: kept[name] for name in sorted(kept)}
    text = json.dumps({name: results[name] for name in sorted(results)}, indent=1, ensure_ascii=False)
    Path(root, RESULTS).parent.mkdir(parents=True, exist_ok=True)
    replace_file(Path(root, RESULTS), f"{text}\n".encode())


def main():
    """Read the command line, run the sabotages, store and show what they did."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lessons", nargs="*", help="05, positional_encoding, …; all without")
    parser.add_argument("--only", nargs="+", default=[], help="claims")
    asked = parser.parse_args()
    try:
        found = every(lesson_code.find(asked.lessons))
    except ValueError as error:
        parser.error(str(error))
    rows = []
    for path, sabotage in found:
        if not asked.only or set(asked.only) & set(sabotage.claims):
            new = run(path, sabotage)
            show(new)
            store(lesson_code.key_of(path), new, commits()[1])
            rows += new
    refused = sum(row["refused"] for row in rows)
    print(f"{refused} of {len(rows)} claims are refused under their sabotage")
    return 0 if refused == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
