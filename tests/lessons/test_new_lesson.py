"""The skeleton of a new lesson: what is written, and that it runs as it stands."""

import importlib
import json
import shutil
import sys
from pathlib import Path

import pytest
import yaml

import exformer_lessons

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_tools"))

from new_lesson import write  # noqa: E402


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Copy what the tool reads; return the folder."""
    first = min((ROOT / "notebooks").glob("*.ipynb"))
    for name in ("_toc.yml", "book/lessons.yml", f"notebooks/{first.name}"):
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


def test_skeleton_is_in_plan_and_contents(root: Path) -> None:
    written = write("weather", "Weather", "Will it rain?", root)
    assert all(path.is_file() for path in written)
    plan = yaml.safe_load((root / "book" / "lessons.yml").read_text(encoding="utf-8"))
    number = plan[-1]["number"]
    assert plan[-1] == {"number": number, "slug": "weather", "title": "Weather", "question": "Will it rain?"}
    assert int(number) == 1 + int(plan[-2]["number"])
    parts = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    last = [part["chapters"][-1]["file"] for part in parts]
    place = [part["caption"] for part in parts].index("Evidence")
    assert last[place - 1 : place + 1] == [f"notebooks/{number}_weather", "notebooks/evidence/weather"]


def test_skeleton_of_a_planned_lesson(root: Path) -> None:
    """The plan has its row, and its evidence, written before, stays."""
    before = (root / "book" / "lessons.yml").read_text(encoding="utf-8")
    (root / "notebooks" / "evidence").mkdir()
    kept = root / "notebooks" / "evidence" / "scale.ipynb"
    kept.write_text("{}", encoding="utf-8")
    write("scale", "Scale", "What does it cost?", root)
    assert (root / "book" / "lessons.yml").read_text(encoding="utf-8") == before
    assert kept.read_text(encoding="utf-8") == "{}"
    assert (root / "_toc.yml").read_text(encoding="utf-8").count("notebooks/evidence/scale\n") == 1


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
