"""Run lessons and evidence with other seeds: every claim must hold for each of them.

``make seeds`` runs all lessons with the seeds 0 to 4, ``python tests/lessons/seeds.py tokens --seeds 3 8``
some. It ends with 1 if a claim or a bound fails.
"""

import argparse
import json
import os
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

if __name__ == "__main__":  # before torch is imported; never where pytest only reads this file
    os.environ |= {"OMP_NUM_THREADS": "1", "ATEN_CPU_CAPABILITY": "avx2", "MPLBACKEND": "agg"}

sys.path.insert(0, str(Path(__file__).parents[2] / "book" / "_tools"))

from lesson_code import find, key_of, with_seed

#: Least values of what a lesson measures, by the name that it has in the lesson.
LEAST = {"encoder_decoder": {"exact": 0.95, "gender": 0.95}}  # exact translations, right genders for "it"
#: Largest values, likewise.
MOST = {"language_model": {"excess": 0.02}}  # nats a token above the entropy of the language
MOST_SECONDS = 60.0  # of processor time, for a whole lesson


def code_of(path, seed):
    """Return a lesson's code cells, with another seed; set-up and exercises are left out."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for number, cell in enumerate(cells):
        tags = set(cell["metadata"].get("tags", []))
        if cell["cell_type"] == "code" and not tags & {"setup", "exercise", "raises-exception"}:
            yield number, with_seed("".join(cell["source"]), seed)


def run(path, seed):
    """Run a lesson; return its names and its seconds, or stop at the first cell that fails."""
    import matplotlib.pyplot as plt

    names, begun = {"__name__": "__main__"}, time.process_time()
    for number, text in code_of(path, seed):
        try:
            exec(compile(text, f"{path.stem}, cell {number}", "exec"), names)
        except Exception as error:
            raise RuntimeError(f"cell {number}: {type(error).__name__}: {error}") from error
        plt.close("all")
    return names, time.process_time() - begun


def report(path, seed):
    """Run a lesson with one seed and print a row; return whether all is well."""
    try:
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
            names, seconds = run(path, seed)
    except RuntimeError as error:
        print(f"{key_of(path)}   seed {seed}   FAILED   {error}", flush=True)
        return False
    least, most = (bounds.get(key_of(path), {}) for bounds in (LEAST, MOST))
    found = {name: names[name] for name in least | most}
    well = seconds <= MOST_SECONDS and all(found[name] >= bound for name, bound in least.items())
    well = well and all(found[name] <= bound for name, bound in most.items())
    values = "".join(f"   {name} {value:.3f}" for name, value in found.items())
    print(
        f"{key_of(path)}   seed {seed}   {seconds:4.0f} s{values}{'' if well else '   A BOUND IS MISSED'}",
        flush=True,
    )
    return well


def main():
    """Read the command line, run all, say whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lessons", nargs="*", help="05, positional_encoding, …; all without")
    parser.add_argument("--seeds", nargs="+", type=int, default=range(5))
    asked = parser.parse_args()
    try:
        paths = find(asked.lessons)
    except ValueError as error:
        parser.error(str(error))
    rows = [report(path, seed) for path in paths for seed in asked.seeds]
    print(f"{sum(rows)} of {len(rows)} runs: every claim held, and the bounds too")
    return 0 if all(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
