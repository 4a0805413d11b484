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


def test_report_of_a_sound_installation(report) -> None:
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


def test_unexpected_continuation(report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(doctor.CONTINUATIONS, "shakespeare-char", ("ROMEO:\n", "Hello"))
    assert problems(report()) == ["shakespeare-char continues 'ROMEO:\\n' with 'Why, ', expected 'Hello'"]


def test_truncated_model(report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name, folder = next(iter(shipped_models().items()))
    shutil.copytree(folder, tmp_path / name)
    weights = tmp_path / name / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    monkeypatch.setattr("exformer.hub.shipped._SHIPPED", tmp_path)
    lines = report()
    assert f"  {name}: cannot be loaded" in lines
    assert problems(lines)[0].startswith(f"{name}: ")


def test_truncated_and_missing_data(report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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


def found_in(part) -> list[str]:
    """Return the problems that a part of the report finds."""
    found: list[str] = []
    list(part(found))
    return found


@pytest.mark.parametrize(("instructions", "machine"), [("AVX2", "AMD64"), ("DEFAULT", "arm64")])
def test_settings_that_are_not_slow(monkeypatch: pytest.MonkeyPatch, instructions: str, machine: str) -> None:
    """A thread per core; and an ARM has no names of instructions."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: instructions)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert found_in(doctor._pytorch) == []


def test_memory_in_gibibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 3 * 2**17}
    monkeypatch.setattr("os.sysconf", pages.__getitem__, raising=False)
    assert doctor._memory() == ", 1.5 GiB of memory"


def test_packages_of_extras() -> None:
    lines = ["torch>=2", 'tqdm; extra == "bars"', "rich ; python_version > '3' and extra == 'bars'"]
    assert doctor._requirements(lines) == (["torch"], {"bars": ["tqdm", "rich"]})


def test_library_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_version", lambda package: None)
    [problem] = found_in(doctor._packages)
    assert "pip install -e ." in problem


def test_data_of_a_wrong_size_or_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    name = "tinyshakespeare/input.txt"
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_bytes(bytes(FILES[name].n_bytes + 1))
    monkeypatch.setenv("EXFORMER_DATA", str(tmp_path))
    [problem] = found_in(doctor._data)
    assert problem.startswith(f"not as long as they should be: {name}:")
    monkeypatch.setenv("EXFORMER_DATA", str(tmp_path / name))
    [problem] = found_in(doctor._data)
    assert problem.startswith("EXFORMER_DATA names no folder: ")
    for odd in ("x" * 100_000, "\udcff"):
        monkeypatch.setenv("EXFORMER_DATA", odd)
        [problem] = found_in(doctor._data)
        assert problem == f"EXFORMER_DATA names no folder: {odd[:300]}{'…' * (len(odd) > 300)}"
    monkeypatch.setenv("EXFORMER_DATA", "")  # as if it were not set
    assert [line.partition(",")[0] for line in doctor._data([])] == ["cache"]


def test_cache_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise ValueError("there is no folder to keep downloads in")

    monkeypatch.setattr(doctor, "cache_folder", nowhere)
    monkeypatch.delenv("EXFORMER_DATA", raising=False)
    assert found_in(doctor._data) == ["there is no folder to keep downloads in"]


def test_home_folder_in_the_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert doctor._shorten(str(tmp_path)) == "~"
    assert doctor._shorten(str(tmp_path / "a")) == str(Path("~", "a"))
    assert doctor._shorten(f"{tmp_path}b") == f"{tmp_path}b"


def test_settings_and_instructions_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "ATEN_CPU_CAPABILITY", "EXFORMER_DATA", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, f"of {name}")
        assert f"{name}=of {name}" in list(doctor._system())
    known = ["avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "sve", "bf16"]
    monkeypatch.setattr(Path, "is_file", lambda path: True)
    monkeypatch.setattr(Path, "read_text", lambda path, encoding: "flags: fpu " + " ".join(reversed(known)))
    assert doctor._instructions() == known
