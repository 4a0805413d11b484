"""What a computing centre builds for a JupyterHub; `make hub` runs one."""

import json
import re
from pathlib import Path

import release
import yaml
from ledger_data import cost_of

from exformer_lessons.island.published import DECODER, ENCODER

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "book" / "hub" / "Dockerfile").read_text(encoding="utf-8")
LINES = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.M)).splitlines()
PINNED = dict(
    re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(encoding="utf-8"), flags=re.M)
)


def words_of(instruction):
    """Return what follows an instruction, of each line that begins with it."""
    return [line.partition(" ")[2] for line in LINES if line.startswith(f"{instruction} ")]


def test_the_image_pins_what_the_books_environment_does_not() -> None:
    install = words_of("RUN")[0]
    said = dict(re.findall(r"([\w-]+)==([\w.]+)", install))
    assert said.pop("uv") == PINNED["uv"]
    assert said
    assert not said.keys() & PINNED.keys()
    named = re.findall(r"(?<= )[a-z][\w-]*(?= |$)", install.partition("requirements.txt ")[2])
    assert set(named) <= PINNED.keys()
    assert "--constraint /tmp/release/requirements.txt" in install
    assert "--torch-backend cpu" in install
    (version,) = words_of("ARG")
    assert re.fullmatch(r"JUPYTERHUB=\d+\.\d+\.\d+", version)


def test_the_models_of_the_labs_are_those_that_the_labs_check() -> None:
    page = (ROOT / "book" / "teach" / "jupyterhub.md").read_text(encoding="utf-8")
    wanted = " ".join(f"{each.name}=={each.version}" for each in (DECODER, ENCODER))
    assert f"--no-deps {wanted}\n" in page
    assert words_of("RUN")[2].endswith(f"--no-deps {wanted}")
    labs = [cost_of(ROOT, f"notebooks/labs/{name}")["gigabytes"] for name in ("island", "by_heart")]
    assert 2 < max(labs) < 3
    assert "and 3 GB for a lab" in page


def test_the_image_names_no_host_and_no_secret() -> None:
    assert not re.search(r"://|index|token|password", DOCKERFILE, flags=re.I)
    assert words_of("FROM") == ["python:3.11-slim-bookworm"]


def test_a_release_has_all_that_the_image_copies() -> None:
    (copied,) = words_of("COPY")
    given = {Path(name).name for name in release.HUB} | {"*.whl"}
    assert set(copied.split()[:-1]) <= given
    assert "Dockerfile" in given
    assert all((ROOT / name).is_file() for name in release.HUB)


def test_the_image_writes_lessons_where_a_home_is_mounted() -> None:
    assert json.loads(*words_of("ENTRYPOINT")) == ["exformer-lessons", "hub"]
    assert json.loads(*words_of("CMD")) == ["jupyterhub-singleuser"]
    assert words_of("ENV") == ["HOME=/home/jovyan"]
    assert words_of("USER") == ["1000"]
    assert "--uid 1000" in words_of("RUN")[1]


def test_the_release_runs_the_hub_of_the_image() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))["jobs"]
    lines = "\n".join(each.get("run", "") for each in jobs["hub"]["steps"])
    (tag,) = re.findall(r"docker build --tag (\S+) ", lines)
    assert f"rehearse_hub.py --image {tag}" in lines
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for program in ("jupyterhub", "configurable-http-proxy"):
        (version,) = set(re.findall(rf"{program}[=@]=?(\d[\w.]*)", lines + makefile))
        assert program != "jupyterhub" or words_of("ARG") == [f"JUPYTERHUB={version}"]


def test_the_page_says_what_was_run() -> None:
    page = (ROOT / "book" / "teach" / "jupyterhub.md").read_text(encoding="utf-8")
    assert len(page.split()) <= 240
    found = json.loads((ROOT / "book" / "hub" / "rehearsal.json").read_text(encoding="utf-8"))
    assert found["students"]
    assert ("Image and Kubernetes are *not yet run*" in page) == (found["image"] is None)
