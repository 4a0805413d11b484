"""What `exformer doctor` reports, and each trouble that it is there to find."""

import platform
import shutil
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
import torch

from exformer.cli import doctor
from exformer.cli.main import main
from exformer.corpora.real.manifest import FILES
from exformer.hub.shipped import shipped_models


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path):
    """Return what runs the command on a machine whose folders are empty, and gives its lines."""
    for name in doctor._SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))

    def run() -> list[str]:
        assert main(["doctor"]) == 0
        return capsys.readouterr().out.splitlines()

    return run


def problems(lines: list[str]) -> list[str]:
    return [line.removeprefix("  - ") for line in lines[lines.index("Problems") + 1 :]]


def test_a_sound_installation(report) -> None:
    lines = report()
    assert lines[-1] == "No problems found."
    text = "\n".join(lines)
    assert f"Python {platform.python_version()}" in text
    assert f"torch {torch.__version__}" in text
    assert f"{torch.get_num_threads()} threads" in text
    assert [line.split(":")[0].strip() for line in lines if ": loaded in" in line] == [*shipped_models()]
    assert sum(line.endswith("as expected") for line in lines) == len(doctor.CONTINUATIONS)


def test_a_package_is_missing(report, monkeypatch: pytest.MonkeyPatch) -> None:
    found = doctor.version

    def without(package: str) -> str:
        if package in {"tqdm", "accelerate"}:
            raise PackageNotFoundError(package)
        return found(package)

    monkeypatch.setattr(doctor, "version", without)
    lines = report()
    assert problems(lines) == ["missing: pip install tqdm"]  # an extra need not be there
    assert "  extra processes: accelerate not installed" in lines


def test_another_text_than_expected(report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(doctor.CONTINUATIONS, "shakespeare-char", ("ROMEO:\n", "Hello"))
    assert problems(report()) == ["shakespeare-char continues 'ROMEO:\\n' with 'Why, ', expected 'Hello'"]


def test_a_model_that_was_cut(report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name, folder = next(iter(shipped_models().items()))
    shutil.copytree(folder, tmp_path / name)
    weights = tmp_path / name / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    monkeypatch.setattr("exformer.hub.shipped._SHIPPED", tmp_path)
    lines = report()
    assert f"  {name}: cannot be loaded" in lines
    assert problems(lines)[0].startswith(f"{name}: ")


def test_data_that_is_cut_or_nowhere(report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXFORMER_DATA", str(tmp_path / "nowhere"))
    assert problems(report()) == [
        f"EXFORMER_DATA names no folder: {doctor._shorten(str(tmp_path / 'nowhere'))}"
    ]
    name = "tinyshakespeare/input.txt"
    (tmp_path / "data" / name).parent.mkdir(parents=True)
    (tmp_path / "data" / name).write_bytes(bytes(FILES[name].n_bytes - 1))
    monkeypatch.setenv("EXFORMER_DATA", str(tmp_path / "data"))
    lines = report()
    assert f"1 of {len(FILES)} files" in "\n".join(lines)
    assert problems(lines) == [f"not as long as they should be: {name}: remove them, they are fetched again"]


def test_slow_settings(report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 9)
    monkeypatch.setattr(platform, "machine", lambda: "AMD64")
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    slow, many = problems(report())
    assert "ATEN_CPU_CAPABILITY" in slow
    assert many == "PyTorch has 9 threads for 2 cores: set OMP_NUM_THREADS=2"


def test_the_home_of_a_user_is_not_posted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert doctor._shorten(str(tmp_path / "a")) == str(Path("~", "a"))
    assert doctor._shorten(f"{tmp_path}b") == f"{tmp_path}b"
