"""What readers install: the lines of the workflows, run in a fork at another address."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import release
import yaml

import exformer
from exformer_lessons.handout import address_of

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORK = "https://github.com/grace/fork"


def step(workflow, job, name):
    """Return the lines of a step of a workflow."""
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / workflow).read_text("utf-8"))["jobs"][job][
        "steps"
    ]
    return next(each["run"] for each in steps if each.get("name") == name)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Fork the book into a bare repository, publish it there; return the branch and the commit."""
    top = tmp_path_factory.mktemp("fork")
    bare, clone = top / "bare.git", top / "clone"
    for name in ("book", "lib", "notebooks"):
        left_out = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.safetensors")
        shutil.copytree(ROOT / name, clone / name, ignore=left_out)
    config = top / "config"
    config.write_text(
        f'[url "{bare.as_uri()}"]\n\tinsteadOf = {FORK}\n[user]\n\tname = x\n\temail = x@x\n', "utf-8"
    )
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "BOOK_"))}
    actions = {
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "grace/fork",
        "GITHUB_SHA": "HEAD",
    }
    settings = outside | actions | {"GIT_CONFIG_GLOBAL": str(config)}

    def run(command, folder=clone):
        done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    run(["git", "init", "-q", "--bare", str(bare)], top)
    run(["git", "init", "-q", "-b", "main"])
    run(["git", "add", "."])
    run(["git", "commit", "-q", "-m", "A fork"])
    run(["git", "remote", "add", "origin", FORK])
    run(["git", "push", "-q", "origin", "main"])
    for job, name in (
        ("build", "Write this repository's address into the notebooks"),
        ("build", "Build what readers install"),
        ("branch", "Push it as one commit"),
    ):
        lines = (
            step("publish.yml", job, name)
            .replace(".venv/bin/python", "python")
            .replace("python", sys.executable)
        )
        run(["bash", "-e", "-c", lines])
    run(["git", "clone", "-q", "-b", "published", FORK, str(top / "published")], top)
    return top / "published", run(["git", "rev-parse", "main"])


def test_each_notebook_of_a_fork_names_the_fork(published) -> None:
    folder, commit = published
    for path in (ROOT / "notebooks").rglob("*.ipynb"):
        stamped = folder / path.relative_to(ROOT)
        assert address_of(json.loads(stamped.read_text(encoding="utf-8"))) == f"{FORK}@{commit}"
    with zipfile.ZipFile(*folder.glob("exformer_lessons-*.whl")) as wheel:
        inside = [name for name in wheel.namelist() if name.endswith(".ipynb")]
        assert len(inside) == len([*(ROOT / "notebooks").rglob("*.ipynb")])
        assert "exformer_lessons/book/claims.yml" in wheel.namelist()  # the verdicts of `claim`
        assert all(address_of(json.loads(wheel.read(name))) == f"{FORK}@{commit}" for name in inside)


def test_the_one_line_of_a_fork_takes_the_wheels_of_the_fork(published) -> None:
    folder, _ = published
    lines = (folder / "lessons.py").read_text(encoding="utf-8").partition("# ///\n")[0].splitlines()[1:]
    needed = tomllib.loads("\n".join(line.removeprefix("# ") for line in lines))["dependencies"]
    names = ["exformer", "exformer-lessons[lab]"]
    assert [each.partition(" @ ")[0] for each in needed] == names
    for each in needed:
        address, _, checksum = each.partition(" @ ")[2].partition("#sha256=")
        wheel = folder / address.removeprefix(f"{FORK}/raw/published/")
        assert hashlib.sha256(wheel.read_bytes()).hexdigest() == checksum


def test_the_branch_of_a_fork_has_one_commit(published) -> None:
    folder, _ = published
    count = ["git", "-C", str(folder), "rev-list", "--count", "HEAD"]
    assert subprocess.run(count, capture_output=True, text=True).stdout.strip() == "1"
    assert {path.name for path in folder.iterdir() if path.suffix != ".whl"} == {
        ".git",
        "lessons.py",
        "notebooks",
    }


def test_buttons_and_pages_name_the_repository(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("BOOK_REPOSITORY_URL", f"{FORK}.git")
    (tmp_path / "notebooks").mkdir()
    shutil.copy(ROOT / "notebooks" / "evidence" / "embeddings.ipynb", tmp_path / "notebooks" / "a.ipynb")
    (tmp_path / "index.md").write_text(
        "# A page\n\n```bash\nuv run https://github.com/OWNER/NAME/raw/published/lessons.py\n```\n\n"
        "```{toctree}\nnotebooks/a\n```\n",
        encoding="utf-8",
    )
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    theme = {"launch_buttons": settings["launch_buttons"]}
    (tmp_path / "conf.py").write_text(
        f"import sys; sys.path.insert(0, {str(ROOT / 'book' / '_ext')!r})\n"
        "extensions = ['myst_nb', 'repo_links']\nnb_execution_mode = 'off'\n"
        "html_theme = 'sphinx_book_theme'\n"
        f"html_theme_options = {theme!r}\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "sphinx", "-q", str(tmp_path), str(tmp_path / "html")]
    subprocess.run(command, check=True, capture_output=True)
    page = (tmp_path / "html" / "notebooks" / "a.html").read_text(encoding="utf-8")
    colab = "https://colab.research.google.com/github/grace/fork/blob/published/notebooks/a.ipynb"
    assert re.findall(r'href="(https://colab[^"]+)"', page) == [colab]
    front = (tmp_path / "html" / "index.html").read_text(encoding="utf-8")
    assert f"{FORK}/raw/published/lessons.py" in re.sub(r"<[^>]+>", "", front)


def test_a_tag_must_be_the_version(tmp_path) -> None:
    release.check_version(f"v{exformer.__version__}")
    for name in release.VERSIONS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        text = (release.ROOT / name).read_text(encoding="utf-8")
        other = text.replace(exformer.__version__, "9.8.7") if name == "CITATION.cff" else text
        (tmp_path / name).write_text(other, encoding="utf-8")
    with pytest.raises(ValueError, match=r"v9\.8\.7 in CITATION.cff"):  # in one file of all
        release.check_version(f"v{exformer.__version__}", tmp_path)
    with pytest.raises(
        ValueError,
        match=r"expected the tag v9.9 to be the version, got v\d.* CITATION.cff, v\d\S+ in CHANGELOG",
    ):
        release.check_version("v9.9")


@pytest.mark.parametrize("path", WORKFLOWS, ids=[path.stem for path in WORKFLOWS])
def test_a_workflow_pins_its_actions_and_its_rights(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert "permissions" in workflow
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 30
        assert {job.get("needs", name)} <= set(workflow["jobs"])
        uses = [each["uses"] for each in job["steps"] if "uses" in each]
        assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", each) for each in uses)
        may_write = job.get("permissions", {}).get("contents") == "write"
        assert may_write == (name in ("branch", "publish"))
