"""Plant each bug of the bank in a copy of the library; the test that is named for it must turn red.

``make mutants`` runs all, ``python tests/mutants.py eos "label smoothing"`` those whose file or name holds
one of the words. It ends with 1 if a bug survives. The library itself is never touched.
"""

import gc
import importlib.util
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from planted_bugs import BUGS, Bug

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "lib" / "exformer"
AT_ONCE = 2
LIMIT_S = 120
WRONG_LIBRARY, CRASHED, TOO_SLOW = 99, 98, -1
UNKNOWN_END = 255  # what multiprocessing says if, once in some hundred, it could not read how a process ended
# What pytest's exit code says of a bug. A test that cannot even be collected has found nothing.
VERDICTS = {
    0: "SURVIVED",
    1: "killed",
    WRONG_LIBRARY: "BROKEN: another library was imported",
    TOO_SLOW: f"BROKEN: not ready after {LIMIT_S} s",
}
# Where processes can fork, each test run starts from one that has imported what they all import, but never
# the library.
_CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()
_PROCESSES = multiprocessing.get_context("forkserver" if _CAN_FORK else "spawn")
_SHARED = [
    "torch",
    "torch._dynamo",
    "beartype",
    "jaxtyping",
    "hypothesis.strategies",
    "pytest",
    "sacrebleu",
    "tqdm",
]


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


def _run_pytest(folder: str, tests: list[str]) -> int:
    sys.path.insert(0, folder)
    found = importlib.util.find_spec("exformer")  # pytest's plugins want to be the first to import it
    if not Path(found.origin).is_relative_to(folder):  # an installed one must not take the copy's place
        return WRONG_LIBRARY
    import pytest
    from hypothesis import HealthCheck, Phase, settings

    # A busy machine must not turn a test red; and no search for the smallest example: red is red.
    options = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "derandomize": True}
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", phases=phases, database=None, **options)
    quiet = ["-x", "-q", "--tb=short", "--hypothesis-profile=mutants"]
    # Of no use here, or slow to start.
    without = [f"-pno:{plugin}" for plugin in ("cacheprovider", "nbval", "anyio")]
    early = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis was imported before pytest ran
    return int(pytest.main([*quiet, *without, *early, *tests]))


def _in_a_process(folder: str, tests: list[str], log: str) -> None:
    """Run tests against the library in a folder; what is written goes into a file."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.chdir(ROOT)
    sys.dont_write_bytecode = True
    gc.freeze()  # pytest collects garbage twice; what was imported before it is none
    try:
        code = _run_pytest(folder, tests)
    except BaseException:
        traceback.print_exc()
        code = CRASHED  # an exception left alone would end the process with 1, as a red test does
    sys.exit(code)


def run_tests(folder: Path, tests: Iterable[str], *, limit_s: float = LIMIT_S) -> tuple[int, str]:
    """Run tests against the library in a folder; return pytest's exit code and what it wrote."""
    log = folder / "log"
    names = sorted({f"tests/{test}" for test in tests})
    for _ in range(2):
        process = _PROCESSES.Process(target=_in_a_process, args=(str(folder), names, str(log)))
        process.start()
        process.join(limit_s)
        if process.exitcode is None:
            process.kill()
            process.join()
            return TOO_SLOW, ""
        if process.exitcode != UNKNOWN_END:
            break
    return process.exitcode, log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def judge(bug: Bug) -> str:
    """Plant a bug in a copy of its own, run its test, and say what came of it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        shutil.copytree(LIBRARY, folder / "exformer", ignore=shutil.ignore_patterns("__pycache__"))
        file = folder / "exformer" / bug.file
        try:
            file.write_text(planted(bug, file.read_text(encoding="utf-8")), encoding="utf-8")
            code, output = run_tests(folder, [bug.test])
        except (ValueError, OSError) as error:
            return f"BROKEN: {error}"
        verdict = VERDICTS.get(code, f"BROKEN: pytest ended with {code}")
        return verdict if code in (0, 1) else f"{verdict}\n{output}"


def main(words: list[str]) -> int:
    """Judge the bugs that are asked for; return 1 if one of them survives, or could not be judged."""
    bugs = [bug for bug in BUGS if not words or any(word in f"{bug.file} {bug.name}" for word in words)]
    if not bugs:
        sys.exit(f"no planted bug has one of the words {words}")
    start = time.perf_counter()
    if _CAN_FORK:
        _PROCESSES.set_forkserver_preload(_SHARED)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        shutil.copytree(LIBRARY, folder / "exformer", ignore=shutil.ignore_patterns("__pycache__"))
        # All at once take as long as their number says.
        code, output = run_tests(folder, (bug.test for bug in bugs), limit_s=LIMIT_S + 2 * len(bugs))
    if code:
        said = output or "they were not ready in time"
        sys.exit(f"{said}\nwithout any bug planted the tests must pass: nothing was judged")
    lost = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for bug, verdict in zip(bugs, pool.map(judge, bugs), strict=True):
            lost += verdict != "killed"
            print(f"{verdict:9} {bug.file}: {bug.name}  ({bug.test})", flush=True)
    seconds = time.perf_counter() - start
    print(f"{len(bugs)} bugs planted, {len(bugs) - lost} killed, {lost} not, in {seconds:.0f} s")
    return 1 if lost else 0


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.exit(main(sys.argv[1:]))
