"""The two distributions: what their wheels hold, and the library where nothing else is installed."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: What only a checkout needs.
LEFT_OUT = {"pyproject.toml", "hatch_build.py", "README.md", "LICENSE"}
#: Beside the notebooks, and of no use in a wheel.
OF_THE_BOOK = {"exformer_lessons/notebooks/conftest.py", "exformer_lessons/book/claims.yml"}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> dict[str, Path]:
    """Build both wheels; return them by the names of their packages."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheels")
    for package in ("exformer", "exformer_lessons"):
        command = [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "--target",
            "wheel",
            "--directory",
            str(folder),
        ]
        subprocess.run(command, cwd=ROOT / "lib" / package, check=True, capture_output=True)
    return {path.name.split("-")[0]: path for path in folder.glob("*.whl")}


@pytest.mark.parametrize("package", ["exformer", "exformer_lessons"])
def test_wheel_holds_the_whole_package(wheels, package: str) -> None:
    folder = ROOT / "lib" / package
    kept = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    wanted = {f"{package}/{name}" for name in kept if "__pycache__" not in name and name not in LEFT_OUT}
    if package == "exformer_lessons":
        notebooks = (ROOT / "notebooks").rglob("*.ipynb")
        wanted |= {f"{package}/{path.relative_to(ROOT).as_posix()}" for path in notebooks}
    names = set(zipfile.ZipFile(wheels[package]).namelist())
    assert {name for name in names if ".dist-info/" not in name} - OF_THE_BOOK == wanted
    assert {name.rsplit("/", 1)[1] for name in names - wanted} >= {"METADATA", "LICENSE", "entry_points.txt"}


def test_an_editable_installation_copies_no_notebook(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel:editable", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT / "lib" / "exformer_lessons", check=True, capture_output=True)
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    assert [name for name in names if ".dist-info/" not in name] == ["_exformer_lessons.pth"]


def test_library_without_the_lessons(wheels, tmp_path: Path) -> None:
    zipfile.ZipFile(wheels["exformer"]).extractall(tmp_path)
    site = Path(pytest.__file__).parents[1]
    script = Path(__file__).with_name("alone.py")
    command = [sys.executable, "-I", str(script), str(tmp_path), str(site)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
