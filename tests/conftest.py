"""What all tests share: the built book, a browser, and a word on what was left out."""

import gc
import importlib
import os
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import jaxtyping
import pytest
import torch
from chromium import browser_flags, browser_path
from hypothesis import HealthCheck, settings

# The same examples on every run and every machine, however slow: a red test can be run again.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("book", derandomize=True, database=None, **_PATIENT)
settings.load_profile("book")

# Or --doctest-modules imports two modules of one name.
collect_ignore = ["conftest.py", "library/alone.py"]
ROOT = Path(__file__).parents[1]
#: The files that take longest. They begin first, so that no process is left with one at the end.
LONGEST = ("test_pages.py", "test_bench.py", "test_planted_bugs.py")
#: What numbers depend on, as it was before any test was read.
SETTINGS = {name: os.environ.get(name) for name in ("ATEN_CPU_CAPABILITY", "OMP_NUM_THREADS")}


@pytest.fixture
def first_settings():
    """Return the settings that numbers depend on, as they were before any test was read."""
    return SETTINGS


def build(source, target):
    """Build the book; return the finished process, its output in one text."""
    run = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", run, "build", str(source), "--path-output", str(target)]
    command += ["-W", "-n", "--keep-going", "--all", "--quiet"]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )


@pytest.fixture
def unchecked_shapes():
    """Switch the check of shapes off, as it is for users: the library's own refusals come to light."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module")
def frozen():
    """Let the collector of garbage, which benchmarks call each round, pass over all that is there by now."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def said_by():
    """Return a function that runs a benchmark in this process, and returns what it says."""

    def run(program, *arguments):
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as said:
            patch.setattr(sys, "argv", [f"{program}.py", *map(str, arguments)])
            importlib.import_module(f"bench.{program}").main()
        return said.getvalue()

    return run


@pytest.fixture
def refusal(monkeypatch, capsys):
    """Return a function that gives a benchmark arguments that it must refuse, and returns what it says."""

    def run(program, *arguments):
        monkeypatch.setattr(sys, "argv", [f"{program}.py", *arguments])
        with pytest.raises(SystemExit) as ended:
            importlib.import_module(f"bench.{program}").main()
        assert ended.value.code == 2
        return capsys.readouterr().err

    return run


@pytest.fixture(scope="module")
def float64():
    """Compute in float64: what differs by more than rounding shows."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture(scope="session")
def book(tmp_path_factory, request):
    """Build the book once for all workers; return the folder of its pages."""
    pytest.importorskip("jupyter_book")
    from filelock import FileLock

    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    target, log = shared / "book", shared / "book.log"
    with FileLock(str(target) + ".lock"):
        if not log.is_file():
            done = build(ROOT, target)
            log.write_text(f"{done.returncode}\n{done.stdout}", encoding="utf-8")
    code, text = log.read_text(encoding="utf-8").split("\n", 1)
    assert code == "0", f"the book does not build without warnings:\n{text}"
    assert (target / "_build" / "html" / "index.html").is_file()
    return target / "_build" / "html"


@pytest.fixture(scope="session")
def browser():
    """Start a Chromium; without one, tests that need it fail where CI=true, else they are left out."""
    path = browser_path()
    if path is None and os.environ.get("CI") == "true":
        pytest.fail("no Chromium found: install one, or set CHROMIUM to its path")
    if path is None:
        pytest.skip("no Chromium found")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=browser_flags())
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def sandbox_kind():
    """Name a sandbox; without one, what needs it fails where CI=true, else it is left out."""
    from exformer_lessons.teacher import sandbox

    try:
        return sandbox.find()
    except ValueError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


def pytest_collection_modifyitems(items):
    """Begin with the files that take longest; all else keeps its order."""
    rank = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


@pytest.fixture(autouse=True)
def _settings_put_back():
    """Put back what a lesson's ``start()`` changes: other tests and doctests run in the same process."""
    threads, exact = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(exact)
    torch.set_printoptions(profile="default")


def pytest_terminal_summary(terminalreporter):
    """Say aloud what was left out."""
    left_out = terminalreporter.stats.get("skipped", [])
    if left_out:
        terminalreporter.section("LEFT OUT", yellow=True, bold=True)
        for report in left_out:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            terminalreporter.line(f"{report.nodeid}: {reason}", yellow=True)
