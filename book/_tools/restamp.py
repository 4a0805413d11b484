"""Give recorded trials the hashes of better slices, where the old ones prove of which code they are.

``python book/_tools/restamp.py first_attention`` takes the commit that last changed the record, or one that
is given with ``--at``. Only where the tools of that commit, run over the notebook of that commit, find the
very hash that is recorded, the record is of that notebook's code: there the hash that today's tools find for
the same notebook takes its place. What a test refuses after that is code that has changed since.

With ``--reword`` sentences and conditions are taken from today's notebook and evaluated on the recorded
figures; nothing is run. A claim whose figures are computed by other code than those of the record is left as
it is: no condition makes them valid.
"""

import argparse
import ast
import json
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import lesson_code
import lesson_slices
import run_trials

#: Run by the tools of the commit, in its tree: the hash of each claim, and of each sweep.
OLD = """
import json, sys
sys.path.insert(0, "book/_tools")
import lesson_code, run_trials
lesson = lesson_code.load(run_trials._notebook(sys.argv[1], lesson_code.ROOT), sys.argv[1])
claims = {each.claim_id: lesson.fingerprint(each) for each in run_trials.tried(lesson)}
sweeps = {f"{claim} {name}": code for claim, name, _, code in run_trials.sweeps(sys.argv[1])}
print(json.dumps({"claims": claims, "sweeps": sweeps}))
"""


def hashes(key, tree):
    """Return what today's tools find in a tree: the hash of each claim, and of each sweep."""
    lesson = lesson_code.load(run_trials._notebook(key, tree), key)
    return {
        "claims": {each.claim_id: lesson.fingerprint(each) for each in run_trials.tried(lesson)},
        "sweeps": {f"{claim} {name}": code for claim, name, _, code in run_trials.sweeps(key, tree)},
    }


def stamp(record, old, new):
    """Put new hashes in the place of old ones; return how many, and what is of other code."""
    count, foreign = 0, []
    rows = [
        (f"{name}, {run}", "claims", name, row)
        for run, each in record["runs"].items()
        for name, row in each["claims"].items()
    ]
    for claim, found in record.get("sweeps", {}).items():
        rows += [(f"{claim}, sweep {name}", "sweeps", f"{claim} {name}", row) for name, row in found.items()]
    for title, kind, name, row in rows:
        if name in new[kind] and row["code"] == old[kind].get(name):
            row["code"] = new[kind][name]
            count += 1
        else:
            foreign.append(title)
    return count, foreign


def reword(record, lesson, recorded=None, old=None):
    """Put today's sentences and conditions into a record, where its figures are of today's code.

    Args:
        record: What is changed.
        lesson: The notebook.
        recorded: The notebook as it was recorded; without, only sentences may have changed.
        old: The hash of each claim at that time, by the tools of that time.

    Returns:
        The claims whose rows are evaluated anew, and those whose figures are of other code.
    """
    was = {each.claim_id: each for each in run_trials.tried(recorded)} if recorded else {}
    done, foreign = [], []
    for claim in run_trials.tried(lesson):
        name, code = claim.claim_id, lesson.fingerprint(claim)
        rows = [run["claims"][name] for run in record["runs"].values() if name in run["claims"]]
        known = {code}
        if name in was and _figures(recorded, was[name], _given(claim)) == _figures(lesson, claim):
            known.add(old.get(name, code))
        if name not in record["claims"]:
            continue
        if not all(row["code"] in known for row in rows):
            foreign.append(name)
            continue
        for row in rows:
            row["code"] = code
            if "values" in row:
                row["values"] = {each: x for each, x in row["values"].items() if each in _given(claim)}
                row["holds"] = judge(claim, row["values"])
        record["claims"][name] = {"says": claim.says, "budget": claim.budget}
        done.append(name)
    return done, foreign


def reword_doubts(results, lesson):
    """Put today's sentences into the results of sabotages, and judge their figures by today's conditions.

    Returns:
        The claims whose results lack a value, or are not refused.
    """
    left = []
    for claim in lesson.claims:
        row, given = results.get(claim.claim_id), _given(claim)
        if not claim.measures_values or not row:
            continue
        if known := given <= set(row["normally"]) & set(row["sabotaged"]):
            row["says"] = claim.says
            for side in ("normally", "sabotaged"):
                row[side] = {name: value for name, value in row[side].items() if name in given}
            row["refused"] = row["refused"] and not judge(claim, row["sabotaged"])
        if not known or not row["refused"]:
            left.append(claim.claim_id)
    return left


def judge(claim, values):
    """Say whether a claim's condition bears it out on some values, as ``claim`` itself does."""
    names = [each.arg for each in claim.keyword("holds").args.args]
    finite = not {"nan", "inf", "-inf"} & {value for value in values.values() if isinstance(value, str)}
    return finite and bool(claim.condition()(**{name: values[name] for name in names}))


def _given(claim):
    """Return the names of a claim's values."""
    return {each.arg for each in claim.call.keywords} - {"holds", "says", "budget"}


def _figures(lesson, claim, names=None):
    """Return a hash of what computes a claim's values, and of those values that are named."""
    values = [each for each in claim.call.keywords if each.arg in _given(claim)]
    call = ast.copy_location(ast.Call(claim.call.func, claim.call.args, values), claim.call)
    needed = [each.node for each in lesson.needed(replace(claim, call=call))]
    kept = [each for each in values if names is None or each.arg in names]
    return lesson_slices.fingerprint([*needed, *sorted(kept, key=lambda each: each.arg)])


@contextmanager
def tree_of(commit):
    """Check a commit out into a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        _git("worktree", "add", "--detach", "--quiet", str(tree), commit)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def hashes_then(key, tree):
    """Return the hashes that the tools of a tree find in it."""
    done = subprocess.run(
        [sys.executable, "-c", OLD, key], cwd=tree, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def main():
    """Read the command line; restamp the records that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("keys", nargs="+", help="positional_encoding, evidence/first_attention, …")
    parser.add_argument("--at", default="", help="the commit of the record; that which last changed it")
    parser.add_argument(
        "--reword", action="store_true", help="evaluate sentences and conditions on the recorded figures"
    )
    asked = parser.parse_args()
    for key in asked.keys:
        path = run_trials.record_path(key).relative_to(lesson_code.ROOT)
        commit = asked.at or _git("log", "-1", "--format=%H", "--", str(path))
        if asked.reword:
            _reword(key, commit)
            continue
        with tree_of(commit) as tree:
            record = run_trials.read_record(key, tree)
            count, foreign = stamp(record, hashes_then(key, tree), hashes(key, tree))
        run_trials.write_record(key, record)
        print(f"{key}: {count} restamped, of {commit[:7]}", *foreign, sep="\n   of other code: ")


def _reword(key, commit):
    """Reword the record and the doubts of a notebook."""
    lesson = lesson_code.load(run_trials._notebook(key, lesson_code.ROOT), key)
    record = run_trials.read_record(key)
    done, foreign = reword(record, lesson)
    if foreign and commit:
        with tree_of(commit) as tree:
            recorded = lesson_code.load(run_trials._notebook(key, tree), key)
            done, foreign = reword(record, lesson, recorded, hashes_then(key, tree)["claims"])
    if record["runs"]:
        run_trials.write_record(key, record)
    path = lesson_code.ROOT / "lib" / "exformer_lessons" / "doubts.json"
    doubts = json.loads(path.read_text(encoding="utf-8"))
    left = reword_doubts(doubts.get(key, {}), lesson)
    path.write_text(json.dumps(doubts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{key}: {' '.join(done) or 'none'} as in the notebook")
    for name in foreign:
        print(f"   {name}: its figures are of other code: make trials NB={key}")
    for name in left:
        print(f"   {name}: its sabotage is not refused on these figures: make doubt NB={key}")


def _git(*words):
    done = subprocess.run(["git", *words], cwd=lesson_code.ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
