"""Plant each bug of the bank in a copy of the library; the test that is named for it must turn red.

``make mutants`` runs all, ``python tests/mutants.py eos "label smoothing"`` those whose file or name holds
one of the words. It ends with 1 if a bug survives. The library itself is never touched.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from planted_bugs import BUGS, Bug

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "lib" / "exformer"
AT_ONCE = 2
LIMIT_S = 120
WRONG_LIBRARY = 99
# What pytest's exit code says of a bug. A test that cannot even be collected has found nothing.
VERDICTS = {0: "SURVIVED", 1: "killed", WRONG_LIBRARY: "BROKEN: another library was imported"}
# An installed library must not take the copy's place.
START = f"""
import sys, exformer, pytest
if not exformer.__file__.startswith(sys.argv[1]):
    sys.exit({WRONG_LIBRARY})
sys.exit(int(pytest.main(sys.argv[2:])))
"""


def planted(bug: Bug, text: str) -> str:
    """Return the text of a file with the bug in it.

    Raises:
        ValueError: If the right text does not occur exactly once.
    """
    if text.count(bug.old) != 1:
        raise ValueError(
            f"{bug.file}, {bug.name}: expected {bug.old!r} once, found it {text.count(bug.old)} times"
        )
    return text.replace(bug.old, bug.new)


def run_tests(folder: Path, tests: Iterable[str]) -> tuple[int, str]:
    """Run tests against the library in a folder; return pytest's exit code and what it wrote."""
    command = [sys.executable, "-c", START, str(folder), "-x", "-q", "--tb=short", "-p", "no:cacheprovider"]
    command += sorted({f"tests/{test}" for test in tests})
    changes = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | changes,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
    )
    return done.returncode, done.stdout


def judge(bug: Bug) -> str:
    """Plant a bug in a copy of its own, run its test, and say what came of it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        shutil.copytree(LIBRARY, folder / "exformer", ignore=shutil.ignore_patterns("__pycache__"))
        file = folder / "exformer" / bug.file
        try:
            file.write_text(planted(bug, file.read_text(encoding="utf-8")), encoding="utf-8")
            code, output = run_tests(folder, [bug.test])
        except (ValueError, OSError, subprocess.TimeoutExpired) as error:
            return f"BROKEN: {error}"
        verdict = VERDICTS.get(code, f"BROKEN: pytest ended with {code}")
        return verdict if code in (0, 1) else f"{verdict}\n{output}"


def main(words: list[str]) -> int:
    """Judge the bugs that are asked for; return 1 if one of them survives, or could not be judged."""
    bugs = [bug for bug in BUGS if not words or any(word in f"{bug.file} {bug.name}" for word in words)]
    if not bugs:
        sys.exit(f"no planted bug has one of the words {words}")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        shutil.copytree(LIBRARY, folder / "exformer", ignore=shutil.ignore_patterns("__pycache__"))
        code, output = run_tests(folder, (bug.test for bug in bugs))
    if code:
        sys.exit(f"{output}\nwithout any bug planted the tests must pass: nothing was judged")
    lost = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for bug, verdict in zip(bugs, pool.map(judge, bugs), strict=True):
            lost += verdict != "killed"
            print(f"{verdict:9} {bug.file}: {bug.name}  ({bug.test})", flush=True)
    seconds = time.perf_counter() - start
    print(f"{len(bugs)} bugs planted, {len(bugs) - lost} killed, {lost} not, in {seconds:.0f} s")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
