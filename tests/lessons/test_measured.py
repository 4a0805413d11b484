import json
import sys

import pytest
import torch

from exformer_lessons.measured import measure_parts


def one():
    return {"a": [1.00004]}


def two():
    return {"b": 1.00004, "drawn": torch.rand(()).item()}


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Return what runs the command with some words, and what its file then holds."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["measure.py", *words])
        measure_parts(tmp_path / "runs.json", one, two, exact=("two",))
        return json.loads((tmp_path / "runs.json").read_text(encoding="utf-8"))

    return run


def test_the_command_writes_the_parts_that_are_named(command):
    found = command("two")
    assert found.keys() == {"two"}
    assert found["two"]["b"] == 1.00004  # exact
    assert command("one") == {"one": {"a": [1.0]}} | found
    torch.manual_seed(0)
    assert found["two"]["drawn"] == torch.rand(()).item()
    assert command() == {"one": {"a": [1.0]}} | found  # both, and a part draws the same numbers as alone
