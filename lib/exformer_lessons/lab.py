"""What a reader needs from an installed package: lessons in a folder of the reader's own, and a check."""

import ast
import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

from exformer.cli.doctor import conclude, describe
from exformer_lessons import __version__
from exformer_lessons.handout import hand_out, own_folder
from exformer_lessons.notebook import find, key_of, readable_folder

_PROGRAM = re.compile(r"^```python\n(.*?)^```$", flags=re.M | re.S)
_NO_LAB = "JupyterLab is missing: pip install jupyterlab"


def start(lesson: str = "01", folder: str | Path | None = None, options: Sequence[str] = ()) -> None:
    """Write the lessons where they are not yet, and open one of them in JupyterLab.

    Args:
        lesson: Its number or its name.
        folder: Where the reader's notebooks are; None: :func:`own_folder`.
        options: More words for JupyterLab.

    Raises:
        ValueError: If there is no such lesson, or no JupyterLab.
    """
    root = readable_folder()
    name = find([lesson], root)[0].relative_to(root / "notebooks")
    folder = Path(folder or own_folder()).expanduser().resolve()
    written, kept = hand_out([], folder, keep=True)
    print(
        f"Your notebooks are in {folder}: {len(written)} new, {len(kept)} kept as you left them.", flush=True
    )
    try:
        from jupyterlab.labapp import LabApp
    except ImportError as error:
        raise ValueError(_NO_LAB) from error
    opened = f"/lab/tree/{name.as_posix()}"
    LabApp.launch_instance([f"--ServerApp.root_dir={folder}", f"--LabApp.default_url={opened}", *options])


def check(lessons: Sequence[str] = ("01",)) -> int:
    """Print what is there, and run lessons in Jupyter up to their first exercises.

    Args:
        lessons: Their numbers or names; none stands for all.

    Returns:
        The exit status: 1 if something deserves a look.
    """
    problems = describe()
    print("Lessons")
    for line in _lessons(lessons, problems):
        print(f"  {line}", flush=True)
    conclude(problems)
    return int(bool(problems))


def _lessons(names: Sequence[str], problems: list[str]) -> Iterator[str]:
    found = [path for path in find(names, readable_folder()) if not key_of(path).startswith("evidence/")]
    free = shutil.disk_usage(Path.home()).free / 1e9
    yield f"exformer-lessons {__version__}; {free:.0f} GB free where your home is"
    if free < 1:
        problems.append(
            f"{free:.1f} GB are free where your home is: the lessons and what they save need 1 GB"
        )
    try:
        yield f"JupyterLab {version('jupyterlab')}"
    except PackageNotFoundError:
        problems.append(_NO_LAB)
        return
    for path in found:
        yield _first_exercise(path, problems)


def _first_exercise(path: Path, problems: list[str]) -> str:
    """Run a lesson up to its first exercise, and that with its solution; say what its grader says."""
    code, answered = _to_first_exercise(json.loads(path.read_text(encoding="utf-8")))
    name, begun = f"lesson {path.stem[:2]}", perf_counter()
    try:
        without, right = _run_in_jupyter([*code, answered])[-2:]
    except Exception as error:  # whatever keeps the machine from running a lesson
        problems.append(f"{name} does not run: {type(error).__name__}: {str(error).strip()[-300:]}")
        return f"{name} does not run"
    if not (without.startswith("Not yet") and right.startswith("Right")):
        problems.append(
            f"{name}: the grader should refuse no answer ({without}) and accept the solution ({right})"
        )
    ran = f"{name} up to its first exercise: {len(code)} cells in {perf_counter() - begun:.0f} s"
    return f"{ran}; without an answer, {without!r}, with the solution, {right!r}"


def _to_first_exercise(notebook: dict[str, Any]) -> tuple[list[str], str]:
    """Return the code of a lesson up to its first exercise, and that exercise with its solution in it."""
    cells = [("".join(cell["source"]), cell) for cell in notebook["cells"]]
    exercises = [n for n, (_, cell) in enumerate(cells) if "exercise" in cell["metadata"].get("tags", [])]
    last = next(n for n in exercises if "grade_" in cells[n][0])
    code = [source for source, cell in cells[: last + 1] if cell["cell_type"] == "code"]
    solution = _PROGRAM.search("\n\n".join(source for source, _ in cells[last + 1 :]))
    if solution is None:
        raise ValueError("expected a solution after the first exercise, got none")
    return code, solution[1] + ast.unparse(ast.parse(code[-1]).body[-1])


def _run_in_jupyter(cells: Sequence[str]) -> list[str]:
    """Run cells in a kernel, as JupyterLab does; return the text of what each gives."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=300,
            extra_arguments=["--log-level=40"],
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    return [
        "".join(output["data"].get("text/plain", "") for output in cell["outputs"] if "data" in output)
        for cell in notebook["cells"]
    ]
