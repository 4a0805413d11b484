"""Run tests against the library with a changed function, each time in a process of its own.

A process that has imported the library, its shapes checked as in every test run, forks for each change. In
the fork the function's code is exchanged where it stands, so that whoever has imported the function has the
new code; no file is written, and nothing is imported twice.
"""

import ast
import gc
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from collections import defaultdict
from pathlib import Path
from types import FunctionType

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "lib"
PACKAGES = ("exformer", "exformer_lessons")
LIMIT_S = 120
PASSED, FAILED = 0, 1  # pytest's exit codes; any other says that nothing was found out
CRASHED, TOO_SLOW = 98, 97


def module_file(where: str) -> tuple[Path, str]:
    """Return the file and the rest of a name: ``nn.layers.EncoderLayer.forward`` is the second of a module.

    A name that begins with ``lessons`` is one of the package of the lessons.

    Raises:
        ValueError: If no module of the library has this name.
    """
    parts = where.split(".")
    for n in range(len(parts) - 1, 0, -1):
        inside = ("exformer_lessons", *parts[1:n]) if parts[0] == "lessons" else ("exformer", *parts[:n])
        path = LIBRARY.joinpath(*inside)
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return file, ".".join(parts[n:])
    raise ValueError(f"expected a function of the library, got {where!r}: no module has this name")


def find_definition(tree: ast.Module, name: str) -> list[ast.AST]:
    """Return the nodes that lead to a function: its class, if it has one, and the function.

    Raises:
        ValueError: If the module has no such function.
    """
    nodes: list[ast.AST] = [tree]
    for part in name.split("."):
        found = [
            n
            for n in nodes[-1].body
            if getattr(n, "name", "") == part and hasattr(n, "body") and not _is_overload(n)
        ]
        if len(found) != 1:
            raise ValueError(f"expected one definition of {name}, got {len(found)}")
        nodes += found
    return nodes[1:]


def _is_overload(node: ast.AST) -> bool:
    """Return whether a definition is a signature for type checkers only."""
    return any(getattr(each, "id", "") == "overload" for each in getattr(node, "decorator_list", []))


def changed(text: str, name: str, right: str, wrong: str) -> str:
    """Return a module's text with one replacement inside one function.

    Raises:
        ValueError: If the right text does not occur exactly once in the function.
    """
    function = find_definition(ast.parse(text), name)[-1]
    lines = text.splitlines(keepends=True)
    first = min([function.lineno, *(each.lineno for each in function.decorator_list)]) - 1
    body = "".join(lines[first : function.end_lineno])
    if body.count(right) != 1:
        raise ValueError(f"{name}: expected {right!r} once, got it {body.count(right)} times")
    return "".join([*lines[:first], body.replace(right, wrong), *lines[function.end_lineno :]])


class Planter:
    """Run tests against changed functions; a context, in which one process stands ready to fork."""

    def __enter__(self) -> "Planter":
        """Start the process that forks."""
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(LIBRARY), "OMP_NUM_THREADS": "1"},
        )
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.communicate()

    def run(
        self, tests: list[str], where: str = "", text: str = "", limit_s: float = LIMIT_S
    ) -> tuple[int, str]:
        """Return pytest's exit code and output; ``text`` is the changed module's."""
        order = {"tests": tests, "where": where, "text": text, "limit_s": limit_s}
        print(json.dumps(order), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the process that plants bugs has ended")
        return tuple(json.loads(answer))


def _packages_with_shapes() -> list[str]:
    """Return the packages whose shapes pytest checks, as pyproject.toml names them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    options = settings["tool"]["pytest"]["ini_options"]["addopts"]
    return options.split("--jaxtyping-packages=")[1].split(",")[:-1]


def _functions() -> dict[tuple[str, str], list[FunctionType]]:
    """Import the library with its shapes checked; return its functions by file and name."""
    from jaxtyping import install_import_hook

    with install_import_hook(_packages_with_shapes(), "beartype.beartype"):
        for package in map(importlib.import_module, PACKAGES):
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                if not module.name.endswith(("__main__", ".sweeps")):
                    importlib.import_module(module.name)
    found = defaultdict(list)
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__.co_filename.startswith(str(LIBRARY)):
            found[each.__code__.co_filename, each.__code__.co_qualname].append(each)
    return found


def _exchange(where: str, text: str, functions: dict[tuple[str, str], list[FunctionType]]) -> None:
    """Give a function of the library the code and the default values that it has in a changed text."""
    file, name = module_file(where)
    *owner, function = find_definition(ast.parse(text), name)
    function.decorator_list = []
    for each in owner:
        each.body, each.bases, each.keywords, each.decorator_list = [function], [], [], []
    definition = ast.Module([*owner, function][:1], type_ignores=[])
    module = sys.modules[".".join(file.relative_to(LIBRARY).with_suffix("").parts).removesuffix(".__init__")]
    names = dict(vars(module))
    exec(compile(definition, str(file), "exec"), names)
    new = names[name.split(".")[0]]
    new = vars(new)[name.split(".")[1]] if owner else new
    olds = functions[str(file), name]
    if not olds:
        raise ValueError(f"{where} is not loaded")
    for old in olds:
        old.__code__, old.__defaults__, old.__kwdefaults__ = (
            new.__code__,
            new.__defaults__,
            new.__kwdefaults__,
        )


def _run_pytest(tests: list[str]) -> int:
    import pytest
    from hypothesis import HealthCheck, Phase, settings

    # A busy machine must not turn a test red; and no search for the smallest example: red is red.
    options = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "derandomize": True}
    settings.register_profile("planting", phases=(Phase.explicit, Phase.generate), database=None, **options)
    quiet = ["-x", "-q", "--tb=short", "--hypothesis-profile=planting", "--jaxtyping-packages="]
    without = [f"-pno:{plugin}" for plugin in ("cacheprovider", "nbval", "anyio", "xdist")]
    early = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis was imported before pytest ran
    return int(pytest.main([*quiet, *without, *early, *(f"tests/{test}" for test in tests)]))


def _answer(order: dict, functions: dict[tuple[str, str], list[FunctionType]]) -> tuple[int, str]:
    """Fork, change the function, run the tests; return the exit code and what was written."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        child = os.fork()
        if not child:
            code = CRASHED
            try:
                for stream in (1, 2):
                    os.dup2(log.fileno(), stream)
                if order["where"]:
                    _exchange(order["where"], order["text"], functions)
                code = _run_pytest(order["tests"])
                sys.stdout.flush()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        until = time.monotonic() + order["limit_s"]
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > until:
                os.kill(child, 9)
                os.waitpid(child, 0)
                return TOO_SLOW, ""
            time.sleep(0.01)
        log.seek(0)
        return os.waitstatus_to_exitcode(ended[1]), log.read()


def _serve() -> None:
    """Read orders, one a line, and answer each."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for name in ("pytest", "hypothesis.strategies", "sacrebleu", "torch._dynamo"):
        importlib.import_module(name)
    functions = _functions()
    gc.freeze()  # what a fork does not collect it does not copy
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line), functions)), file=answers, flush=True)


if __name__ == "__main__":
    _serve()
