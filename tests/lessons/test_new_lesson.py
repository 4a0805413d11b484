"""The skeleton of a new lesson: what is written, and that it runs as it stands."""

import importlib
import json
import shutil
from pathlib import Path

import pytest
import yaml
from new_lesson import write

import exformer_lessons

ROOT = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Copy what the tool reads; return the folder."""
    first = min((ROOT / "notebooks").glob("*.ipynb"))
    for name in ("book/lessons.yml", f"notebooks/{first.name}"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def code_of(path: Path) -> list[dict]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_skeleton_runs(root: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    write("weather", "Weather", "Will it rain?", root)
    [lesson] = root.glob("notebooks/*_weather.ipynb")
    monkeypatch.setattr(
        exformer_lessons, "__path__", [*exformer_lessons.__path__, str(root / "lib/exformer_lessons")]
    )
    names: dict = {}
    for cell in code_of(lesson):
        exec("".join(cell["source"]), names)
    verdict = names["grade_softmax"]
    known = importlib.import_module("exformer_lessons.weather.mistakes")
    assert verdict(lambda scores: scores.exp() / scores.exp().sum(dim=-1, keepdim=True))
    for hint, mistake in known.SOFTMAX.items():
        assert hint in repr(verdict(mistake))


def plan_of(root: Path) -> list[dict]:
    return yaml.safe_load((root / "book" / "lessons.yml").read_text(encoding="utf-8"))


def test_skeleton_is_in_the_plan(root: Path) -> None:
    before = plan_of(root)
    written = write("weather", "Weather", "Will it rain?", root)
    assert all(path.is_file() for path in written)
    *same, row = plan_of(root)
    assert same == before
    assert row.items() >= {"slug": "weather", "title": "Weather", "question": "Will it rain?"}.items()
    assert int(row["number"]) == 1 + int(same[-1]["number"])
    assert row["after"]
    assert row["able"]


def test_skeleton_of_a_planned_lesson(root: Path) -> None:
    """Its row in the plan says now what a written lesson says, and its evidence, written before, stays."""
    before = plan_of(root)
    (root / "notebooks" / "evidence").mkdir()
    kept = root / "notebooks" / "evidence" / "beyond_text.ipynb"
    kept.write_text("{}", encoding="utf-8")
    write("beyond_text", "Beyond text", "What does it cost?", root)
    changed = [row for row in plan_of(root) if row not in before]
    assert [row["slug"] for row in plan_of(root)] == [row["slug"] for row in before]
    assert [(row["slug"], row["question"], "able" in row) for row in changed] == [
        ("beyond_text", "What does it cost?", True)
    ]
    assert kept.read_text(encoding="utf-8") == "{}"


@pytest.mark.parametrize(
    ("slug", "message"),
    [
        ("recurrence", "lesson 'recurrence' already"),
        ("My-Lesson", "small letters and underscores"),
    ],
)
def test_names_that_are_refused(root: Path, slug: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write(slug, "A", "B?", root)
