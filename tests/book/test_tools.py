"""The tools around the book: whose repository it is, what the set-up cell of a lesson does with it."""

import os
import subprocess
from pathlib import Path

import nbformat
import pytest
import run_notebooks
from repo_links import find_repository, normalise

from exformer_lessons.handout import with_address

ROOT = Path(__file__).parents[2]
PACKAGES = ("exformer", "exformer_lessons")


def test_collection_changes_no_numeric_setting(first_settings) -> None:
    """Lessons that run in the same process as tests inherit its environment."""
    assert {name: os.environ.get(name) for name in first_settings} == first_settings


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("https://github.com/ada/book.git", "https://github.com/ada/book"),
        ("https://ada:secret@github.com/ada/book", "https://github.com/ada/book"),
        ("git@github.com:ada/book.git", "https://github.com/ada/book"),
        ("ssh://git@github.com:22/ada/book.git/", "https://github.com/ada/book"),
        ("https://GitLab.com/ada/book", "https://gitlab.com/ada/book"),
        ("/srv/git/book.git", ""),
        ("https://example.org/ada/book", ""),
        ("", ""),
    ],
)
def test_addresses_lose_credentials_and_endings(url, wanted) -> None:
    assert normalise(url) == wanted


def test_the_repository_comes_from_the_environment_or_from_git(tmp_path: Path, monkeypatch) -> None:
    for name in ("BOOK_REPOSITORY_URL", "GITHUB_REPOSITORY", "GITHUB_SERVER_URL", "BOOK_REPOSITORY_BRANCH"):
        monkeypatch.delenv(name, raising=False)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert find_repository(tmp_path) == ("", "main")
    remote = ["git", "-C", tmp_path, "remote", "add", "origin", "git@github.com:ada/book.git"]
    subprocess.run(remote, check=True)
    assert find_repository(tmp_path) == ("https://github.com/ada/book", "main")
    monkeypatch.setenv("GITHUB_REPOSITORY", "grace/book")
    assert find_repository(tmp_path)[0] == "https://github.com/grace/book"


def test_only_the_set_up_cell_is_stamped() -> None:
    cell = {"cell_type": "code", "metadata": {"tags": ["setup"]}, "source": ['REPO = ""\n', "pass"]}
    other = {"cell_type": "code", "metadata": {}, "source": ['REPO = ""\n']}
    done = with_address({"cells": [cell, other]}, "https://github.com/ada/book")["cells"]
    assert done[0]["source"] == ['REPO = "https://github.com/ada/book"\n', "pass"]
    assert done[1]["source"] == ['REPO = ""\n']


@pytest.mark.parametrize(("there", "installs"), [(True, False), (False, True)])
def test_set_up_cell_installs_what_is_missing(monkeypatch, there, installs) -> None:
    from test_notebooks import SETUP

    ran = []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if there else None)
    monkeypatch.setattr(subprocess, "run", lambda command, **kwargs: ran.append(command))
    exec(SETUP.replace('REPO = ""', 'REPO = "https://github.com/ada/book"'), {})
    assert bool(ran) == installs
    parts = [f"git+https://github.com/ada/book#subdirectory=lib/{part}" for part in PACKAGES]
    assert not ran or ran[0][-2:] == parts


def test_a_copy_without_an_address_says_where_to_open_it(monkeypatch) -> None:
    from test_notebooks import SETUP

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="use the Colab button of its page"):
        exec(SETUP, {})


def test_a_run_stores_outputs_and_what_it_needed(tmp_path: Path) -> None:
    path = tmp_path / "one.ipynb"
    cells = [
        nbformat.v4.new_code_cell(source) for source in ("kept = b'x' * 200_000_000", "del kept", "1 + 1")
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    run_notebooks.run(path)
    found = nbformat.read(path, as_version=4)
    assert found.cells[2].outputs[0].data["text/plain"] == "2"
    needed = found.metadata.get("cost")
    if Path("/proc/self/status").is_file():
        assert 0.2 < needed.gigabytes < 0.6  # the peak, with the kernel's own
        assert needed.seconds % 5 == 0 < needed.seconds
    else:
        assert needed is None


def test_lessons_run_as_make_pins_them(monkeypatch) -> None:
    ran = []
    for name in run_notebooks.PINNED:
        monkeypatch.setenv(name, "other")
    monkeypatch.setattr(run_notebooks, "run", lambda path: ran.append((path.stem, os.environ | {})))
    run_notebooks.main(["labs/island"])
    [(name, settings)] = ran
    assert name == "island"
    assert settings.items() >= {"ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "1"}.items()


def test_all_packages_are_pinned() -> None:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]
    assert all(pin.count("==") == 1 and "+" not in pin and "://" not in pin for pin in pins)
    assert not [pin for pin in pins if pin.startswith(("nvidia", "triton", "cuda"))]
    assert {"jupyter-book==1.0.4.post1", "torch==2.13.0"} <= set(pins)
