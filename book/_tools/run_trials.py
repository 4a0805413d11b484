"""Try claims that depend on a training: five seeds, more steps, other rates, another order.

``make trials`` runs what is missing or stale, ``make trials NB=positional_encoding`` that of a lesson and of
its evidence; ``--only A01`` some claims, ``--runs "seed 0" "3x rate"`` some runs, ``--again`` also what is
there. A record is written as each run ends, so that it can be broken off and taken up again.
"""

import argparse
import ast
import inspect
import json
import os
import platform
import runpy
import sys
import time
from contextlib import chdir, contextmanager, redirect_stdout
from pathlib import Path

import lesson_code
import lesson_runs
import lesson_slices

if __name__ == "__main__":
    os.environ.update(lesson_runs.PINNED)


def folder_of(key, root=lesson_code.ROOT):
    """Return the folder of what belongs to a notebook."""
    return Path(root, "lib", "exformer_lessons", *reversed(key.split("/")))


def record_path(key, root=lesson_code.ROOT):
    """Return where the trials of a notebook are recorded."""
    return folder_of(key, root) / "trials.json"


def read_record(key, root=lesson_code.ROOT):
    """Return the record of a notebook; an empty one where there is none."""
    path = record_path(key, root)
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"claims": {}, "runs": {}}


def write_record(key, record, root=lesson_code.ROOT):
    """Write a record, whole or not at all."""
    from exformer.storage.files import replace_file

    path = record_path(key, root)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())


def tried(lesson):
    """Return the claims of a notebook that depend on a training."""
    return [each for each in lesson.claims if each.measures_values and lesson.trains(each)]


def stale(lesson, record, name, only=()):
    """Return the claims for which a run is missing or was of other code."""
    found = record["runs"].get(name, {}).get("claims", {})
    return [
        each
        for each in tried(lesson)
        if (not only or each.claim_id in only)
        and found.get(each.claim_id, {}).get("code") != lesson.fingerprint(each)
    ]


def perform(lesson, name, claims):
    """Run a notebook in one way, here, up to the last of some claims; return what is to be recorded.

    Raises:
        RuntimeError: If a cell fails for another reason than a training that diverges, an optimizer steps
            outside of the training loop where a claim depends on it, or random numbers are drawn by a
            statement of which the claim's hash does not know.
    """
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from exformer.training.loop import DivergenceError
    from exformer.training.variation import Variation, varied_training
    from exformer_lessons.trials import RUNS

    how = dict(RUNS[name])
    sources = {cell.number: lesson_code.with_seed(cell.source, how["seed"]) for cell in lesson.cells}
    variation = Variation(**{key: value for key, value in how.items() if key != "seed"})
    notes, stepped, current, diverged = {}, {}, [None], []

    def count(*_):
        stepped[current[0]] = stepped.get(current[0], 0) + 1

    def goes_on(error):  # what diverged leaves nothing behind; other claims may not need it
        diverged.extend([error] if isinstance(error, DivergenceError) else [])
        return bool(diverged)

    @contextmanager
    def around(number):
        current[0] = number
        with varied_training(variation) as notes[number]:
            yield

    hook = register_optimizer_step_post_hook(count)
    try:
        found = lesson_runs.run_cells(
            lesson,
            sources=sources,
            last=max(each.cell.number for each in claims),
            goes_on=goes_on,
            around=around,
        )
    finally:
        hook.remove()
    outside = {
        number: steps - sum(note.optimizer_steps for note in notes[number])
        for number, steps in stepped.items()
    }
    rows = {each["id"]: each for each in found["findings"]}
    answer = {}
    for each in claims:
        _check_random(lesson, each, found["drew"])
        answer[each.claim_id] = _row(lesson, each, rows.get(each.claim_id), found["errors"], notes, outside)
    return answer, found["seconds"]


def _check_random(lesson, claim, drew):
    """Raise if a statement that the hash leaves out drew random numbers before one that it has."""
    needed = {(each.cell, each.node.lineno): each for each in lesson.needed(claim)}
    drew = [tuple(place) for place in drew]
    inside = [place for place in drew if place in needed and not needed[place].starts]
    starts = [place for place, each in needed.items() if each.starts]
    for place in drew:
        later = [each for each in inside if each > place]
        if place not in needed and later and not any(place < each < later[0] for each in starts):
            raise RuntimeError(
                f"{lesson.key}, {claim.claim_id}: cell {place[0]}, line {place[1]} draws random numbers and "
                f"moves those of cell {later[0][0]}: the hash must know of it (book/_tools/lesson_random.py)"
            )


def _row(lesson, claim, found, errors, notes, outside):
    """Return what a run found for a claim."""
    needed = lesson.needed(claim, random=False)
    cells = sorted({each.cell for each in needed} | {claim.cell.number})
    if wild := [number for number in cells if outside.get(number)]:
        raise RuntimeError(
            f"{lesson.key}, {claim.claim_id}: an optimizer stepped outside of the training loop in cell "
            f"{wild[0]}: no trial can vary that; train with exformer.train or a Trainer"
        )
    row = {"code": lesson.fingerprint(claim)}
    trainings = [note for number in cells for note in notes.get(number, [])]
    row["steps"] = sum(note.optimizer_steps for note in trainings)
    row["losses"] = [_five_digits(_last(note.losses)) for note in trainings if note.losses]
    failed = {number: errors[number] for number in cells if number in errors}
    diverged = [text for text in failed.values() if text.startswith("DivergenceError")]
    if (failed and not diverged) or (not failed and found is None):
        raise RuntimeError(
            f"{lesson.key}, {claim.claim_id}: {failed or errors or 'the claim was not reached'}"
        )
    if diverged:
        return row | {"diverged": diverged[0].removeprefix("DivergenceError: ")}
    if not row["steps"]:
        raise RuntimeError(f"{lesson.key}, {claim.claim_id}: no optimizer stepped before the claim")
    return row | {"holds": found["holds"], "values": found["values"]}


def _five_digits(loss):
    """Return a loss as it is recorded; near zero, too, two seeds must not agree because of rounding."""
    return float(f"{loss:.5g}")


def _last(losses):
    """Return the mean of the last tenth."""
    part = losses[-max(1, len(losses) // 10) :]
    return sum(part) / len(part)


def sweeps(key, root=lesson_code.ROOT):
    """Return the sweeps of a notebook: (claim, name, function, hash), from its file of trials."""
    path = folder_of(key, root) / "sweeps.py"
    if not path.is_file():
        return []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [each for each in runpy.run_path(str(path)).values() if hasattr(each, "claim_id")]
    lesson = lesson_code.load(_notebook(key, root), key)
    found = []
    for function in functions:
        nodes = [each.node for each in lesson.needed_by(inspect.signature(function).parameters)]
        code = lesson_slices.fingerprint([*nodes, *_statements_of(tree, function.__name__)])
        found.append((function.claim_id, function.__name__, function, code))
    return found


def _statements_of(tree, name):
    """Return the statements of a file on which a function of it depends, itself included, in their order."""
    found, wanted = set(), {name}
    while wanted:
        binds = (wanted & lesson_slices.names_bound(node) for node in tree.body)
        new = {n for n, names in enumerate(binds) if names} - found
        found.update(new)
        wanted = set().union(*(lesson_slices.names_read(tree.body[n]) for n in new))
    return [tree.body[n] for n in sorted(found)]


def _notebook(key, root):
    return next(path for path in lesson_code.paths(root) if lesson_code.key_of(path) == key)


def perform_sweep(lesson, function):
    """Execute the statements that a sweep needs, then the sweep; return its figures and the seconds."""
    names, begun = {"__name__": "__main__"}, time.perf_counter()
    wanted = list(inspect.signature(function).parameters)
    folder = chdir(lesson.path.resolve().parent)
    with folder, open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        for each in lesson.needed_by(wanted):
            code = compile(ast.Module([each.node], []), f"{lesson.key}, cell {each.cell}", "exec")
            exec(code, names)
        figures = function(**{name: names[name] for name in wanted})
    return json.loads(json.dumps(figures)), time.perf_counter() - begun


def machine():
    """Say on what kind of machine this runs: neither its name nor a path."""
    import torch

    parts = [platform.system(), platform.machine(), f"Python {platform.python_version()}"]
    return ", ".join([*parts, f"torch {torch.__version__.split('+')[0]}"])


def serve():
    """Answer one request: a run or a sweep of a notebook."""
    request = json.loads(sys.stdin.read())
    root = Path(request["root"])
    lesson = lesson_code.load(_notebook(request["key"], root), request["key"])
    if "sweep" in request:
        function = next(each[2] for each in sweeps(request["key"], root) if each[1] == request["sweep"])
        found, seconds = perform_sweep(lesson, function)
    else:
        claims = [each for each in tried(lesson) if each.claim_id in request["claims"]]
        found, seconds = perform(lesson, request["run"], claims)
    answer = {"found": found, "minutes": round(seconds / 60, 2), "machine": machine()}
    Path(sys.argv[2]).write_text(json.dumps(answer), encoding="utf-8")


def run_all(key, *, only=(), runs=(), again=False, root=lesson_code.ROOT, say=print):
    """Run what is missing or stale of a notebook's trials; return how many runs there were."""
    from exformer_lessons.trials import RUNS

    done = 0
    path = _notebook(key, root)
    for claim_id, name, _, code in sweeps(key, root):
        kept = read_record(key, root).get("sweeps", {}).get(claim_id, {}).get(name, {})
        if (kept.get("code") == code and not again) or (only and claim_id not in only) or runs:
            continue
        answer = lesson_runs.apart(__file__, {"root": str(root), "key": key, "sweep": name}, limit_s=None)
        record = read_record(key, root)
        row = {"code": code, "minutes": answer["minutes"], "machine": answer["machine"]}
        record.setdefault("sweeps", {}).setdefault(claim_id, {})[name] = row | {"figures": answer["found"]}
        write_record(key, record, root)
        say(f"{key}   {claim_id}   sweep {name}   {answer['minutes']} min", flush=True)
        done += 1
    for name in runs or RUNS:
        lesson, record = lesson_code.load(path, key), read_record(key, root)
        claims = stale(lesson, record, name, only)
        if again:
            claims = [each for each in tried(lesson) if not only or each.claim_id in only]
        if not claims:
            continue
        request = {"root": str(root), "key": key, "run": name, "claims": [each.claim_id for each in claims]}
        answer = lesson_runs.apart(__file__, request, limit_s=None)
        record = read_record(key, root)
        known = {each.claim_id: each for each in tried(lesson)}
        record["claims"] = {
            each: {"says": claim.says, "budget": claim.budget} for each, claim in sorted(known.items())
        }
        kept = record["runs"].get(name, {}).get("claims", {}) | answer["found"]
        record["runs"][name] = {
            **RUNS[name],
            "minutes": answer["minutes"],
            "machine": answer["machine"],
            "claims": {each: kept[each] for each in sorted(kept) if each in known},
        }
        record["runs"] = {each: record["runs"][each] for each in RUNS if each in record["runs"]}
        write_record(key, record, root)
        done += 1
        for claim_id, row in answer["found"].items():
            verdict = "diverged" if "diverged" in row else "holds" if row["holds"] else "REFUTED"
            values = ", ".join(
                f"{each} {value:.4g}" if isinstance(value, float) else f"{each} {value}"
                for each, value in row.get("values", {}).items()
            )
            say(f"{key}   {name:14} {claim_id}   {verdict}   {values}   {answer['minutes']} min", flush=True)
    return done


def main():
    """Read the command line, run what is asked for, say what is wrong."""
    from exformer_lessons.trials import RUNS, complaints, read_trial

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lessons", nargs="*", help="05, positional_encoding, …; all without")
    parser.add_argument("--only", nargs="+", default=[], help="claims")
    parser.add_argument(
        "--runs", nargs="+", default=[], choices=list(RUNS), metavar="RUN", help=", ".join(RUNS)
    )
    parser.add_argument("--again", action="store_true", help="also what is recorded already")
    asked = parser.parse_args()
    try:
        paths = lesson_code.find(asked.lessons)
    except ValueError as error:
        parser.error(str(error))
    wrong = []
    for path in paths:
        key = lesson_code.key_of(path)
        run_all(key, only=asked.only, runs=asked.runs, again=asked.again)
        lesson, record = lesson_code.load(path), read_record(key)
        for claim in tried(lesson):
            if claim.claim_id in record["claims"]:
                found = read_trial(key, record, claim.claim_id)
                wrong += [
                    f"{key}, {claim.claim_id}: {x}" for x in complaints(found, lesson.fingerprint(claim))
                ]
    print("\n".join(wrong) or "every claim that depends on a training is recorded, and holds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(serve() if sys.argv[1:2] == ["--answer"] else main())
