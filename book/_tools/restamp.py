"""Give recorded trials the hashes of better slices, where the old ones prove of which code they are.

``python book/_tools/restamp.py first_attention`` takes the commit that last changed the record, or one that
is given with ``--at``. Only where the tools of that commit, run over the notebook of that commit, find the
very hash that is recorded, the record is of that notebook's code: there the hash that today's tools find for
the same notebook takes its place. What a test refuses after that is code that has changed since.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import lesson_code
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


def main():
    """Read the command line; restamp the records that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("keys", nargs="+", help="positional_encoding, evidence/first_attention, …")
    parser.add_argument("--at", default="", help="the commit of the record; that which last changed it")
    asked = parser.parse_args()
    for key in asked.keys:
        path = run_trials.record_path(key).relative_to(lesson_code.ROOT)
        commit = asked.at or _git("log", "-1", "--format=%H", "--", str(path))
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder, "tree")
            _git("worktree", "add", "--detach", "--quiet", str(tree), commit)
            try:
                done = subprocess.run(
                    [sys.executable, "-c", OLD, key], cwd=tree, check=True, capture_output=True, text=True
                )
                record = run_trials.read_record(key, tree)
                count, foreign = stamp(record, json.loads(done.stdout), hashes(key, tree))
            finally:
                _git("worktree", "remove", "--force", str(tree))
        run_trials.write_record(key, record)
        print(f"{key}: {count} restamped, of {commit[:7]}", *foreign, sep="\n   of other code: ")


def _git(*words):
    done = subprocess.run(["git", *words], cwd=lesson_code.ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
