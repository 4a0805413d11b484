"""Each exercise of a lesson: its folded solution is right, and its grader asks for the function itself."""

import ast
import json
import re
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
import torch
from folded_solutions import solutions

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
CALL = re.compile(r"^(grade_\w+)\(.*\)\Z", flags=re.M)


def exercises():
    """Yield of each graded exercise: the lesson's code, the solution, the cell in which a reader answers."""
    for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        asked = [cell for cell in code if CALL.search(cell)]
        found = solutions(path.stem[3:])
        for (title, program), cell in zip(found.items(), asked, strict=True):
            yield pytest.param(code, program, cell, id=f"{path.stem[3:]}: {title}")


each_exercise = pytest.mark.parametrize(("code", "program", "cell"), [*exercises()])


def names_of(code, program):
    """Return what a lesson imports, and those of its functions that a program calls."""
    nodes = [node for cell in code for node in ast.parse(cell).body]
    wanted = [
        node
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.FunctionDef) and re.search(rf"\b{node.name}\(", program))
    ]
    names = {}
    exec(compile(ast.Module(wanted, []), "lesson", "exec"), names)
    return names


@each_exercise
def test_folded_solution(code, program, cell):
    names = names_of(code, program)
    exec(program, names)
    verdict = eval(CALL.search(cell)[0], names)
    assert verdict, verdict
    assert "does the work" not in verdict.says


@each_exercise
def test_result_in_place_of_a_function(code, program, cell):
    if "\ndef my_" not in cell:
        return  # the exercise asks for something else
    grader = names_of(code, program)[CALL.search(cell)[1]]
    for given in (3, None, torch.ones(3), np.zeros(3)):
        assert "function itself" in grader(*[given] * len(signature(grader).parameters)).says
