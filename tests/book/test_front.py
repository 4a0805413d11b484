"""What a visitor meets first: title page, README, CONTRIBUTING; their numbers come from files."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from bench.agreement import TESTS, TWINS
from recorded import COUNTS, colophon, recorded

from exformer_lessons.trials import Trial

ROOT = Path(__file__).parents[2]
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md")}
PAGES |= {
    name: (ROOT / "book" / f"{name}.md").read_text(encoding="utf-8") for name in ("index", "how_we_know")
}
AGREEMENT = json.loads((ROOT / "bench" / "results" / "agreement.json").read_text(encoding="utf-8"))


def place(key="lines", *, trial=None):
    """Return a place in which A01 is measured."""
    doubt = {"says": "A loss of {loss:.2f}.", "sabotaged": {"loss": 0.14}}
    return SimpleNamespace(key=key, values={"loss": -2.071}, doubt=doubt, trial=trial)


def rows(*places):
    """Return a ledger of one row."""
    return [SimpleNamespace(row={"id": "A01"}, places=list(places))]


def test_a_recorded_value_is_written_as_in_its_sentence():
    runs = {f"seed {n}": {"values": {"loss": -2.071 - n / 10}, "minutes": 1} for n in range(2)}
    tried = place("tried", trial=Trial("A01", "tried", says="{loss:.2f}", runs=runs))
    found = rows(SimpleNamespace(key="shown", values={"loss": 1}, doubt=None), place(), tried)
    assert recorded(found, "A01", "loss") == "−2.07"
    assert recorded(found, "A01", "loss", "sabotaged") == "0.14"
    assert recorded(found, "A01@tried", "loss", "seeds") == "−2.12 (−2.17 to −2.07)"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("A02", "loss"), "claim A02 has no recorded value 'loss'"),
        (("A01", "gain"), "claim A01 has no recorded value 'gain'"),
        (("A01@other", "loss"), "A01@other has no"),
        (("A01", "loss", "seeds"), r"expected seeds \(of a trial\) or sabotaged, got 'seeds'"),
        (("A01", "loss", "twice"), "got 'twice'"),
    ],
)
def test_what_is_not_recorded_is_refused(asked, said):
    with pytest.raises(ValueError, match=said):
        recorded(rows(place()), *asked)


def test_the_colophon_is_that_of_the_citation(tmp_path, monkeypatch):
    text = "authors: [{name: A group}, {given-names: Ada, family-names: L}]\nversion: 1.2\nlicense: MIT\n"
    (tmp_path / "CITATION.cff").write_text(text, encoding="utf-8")
    assert colophon(tmp_path) == (["A group", "Ada L"], "Version 1.2", "MIT", "")  # no repository, no date
    monkeypatch.setattr("recorded.git", lambda *_: "2026-03-04")
    assert colophon(tmp_path)[1] == "Version 1.2, 4 March 2026"


def test_the_lessons_that_are_written_are_counted_in_words(monkeypatch):
    for count, word in ((10, "ten"), (21, "twenty-one")):
        plan = [{"page": "a page"}] * count + [{"page": ""}]
        monkeypatch.setattr("recorded.read_lessons", lambda root, plan=plan: plan)
        assert COUNTS["lessons"](None, ROOT) == word


@pytest.mark.parametrize("name", ["index", "how_we_know"])
def test_no_measured_number_is_typed(name):
    text = re.sub(r"\{(?:recorded|counted|hours)\}`[^`]*`|\]\([^)]*\)", "", PAGES[name])
    asked = {"index": {"01", "32", "12", "64"}, "how_we_know": {"03", "2022", "06"}}[
        name
    ]  # settings and names
    assert set(re.findall(r"\d+", text)) <= asked


def test_counts_that_are_asked_for_are_counts():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "book").rglob("*.md")]
    asked = {key for text in texts for key in re.findall(r"\{counted\}`([^`]*)`", text)}
    assert asked == set(COUNTS)


def test_the_time_to_install_is_that_of_the_first_doctor(tmp_path):
    steps = [{"words": "doctor", "seconds": 30}, {"words": "doctor, which installs all", "seconds": 54}]
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "rehearsal.json").write_text(json.dumps({"steps": steps}), encoding="utf-8")
    assert COUNTS["seconds to install"]([], tmp_path) == 54


def test_a_finding_is_short():
    findings = re.findall(r"^You may have heard.*?(?=\[The evidence\])", PAGES["index"], flags=re.M | re.S)
    assert len(findings) == 3
    for finding in findings:
        heard, measured = finding.split("**Measured here:**")
        assert max(len(heard.split()), len(re.sub(r"\{recorded\}`[^`]*`", "n", measured).split())) <= 25


def test_what_newcomers_read_is_short():
    assert len(PAGES["README.md"].splitlines()) <= 60
    assert len(PAGES["CONTRIBUTING.md"].split()) <= 700
    assert (ROOT / "book" / "_static" / "page.png").stat().st_size <= 150_000


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_what_newcomers_are_told_to_use_is_there(name):
    text = PAGES[name]
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))
    assert set(re.findall(r"(?:`|^)make (\w+)", text, flags=re.M)) <= targets
    paths = [
        path for path in re.findall(r"[\w./]+/[\w./]*\w", text) if not re.search(r"\.venv|//|NN|_build", path)
    ]
    paths = [path for path in paths if path.startswith(("book/", "notebooks/", "lib/", "tests/", "bench/"))]
    assert len(paths) > 2
    assert [path for path in paths if not (ROOT / path).exists() and "SLUG" not in path] == []


def test_the_commands_without_make_are_those_of_make():
    make = " ".join((ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ").split())
    commands = re.findall(r"^\.venv/bin/(?:python -m )?(.*?)(?: +#.*)?$", PAGES["README.md"], flags=re.M)
    assert len(commands) == 5
    for command in commands[1:4]:
        assert command.removeprefix("pip install") in make.replace("pip install --quiet", "").replace(
            " --quiet", ""
        )
    asked = set(commands[4].split()) - {"pytest"}
    assert asked <= set(make.split())
    [torch_pin] = re.findall(r"^torch==[^ +\n]*", (ROOT / "requirements.txt").read_text("utf-8"), flags=re.M)
    assert commands[0] == f"pip install {torch_pin}"


def test_the_library_code_of_the_readme_runs(capsys):
    [code] = re.findall(r"^```python\n(.*?)^```", PAGES["README.md"], flags=re.M | re.S)
    with torch.random.fork_rng():
        exec(code, {})
    assert "ROMEO" in capsys.readouterr().out


# --- agreement with PyTorch and Hugging Face ---


def test_each_twin_was_measured_and_agrees_to_ten_digits():
    assert {whose: [*found] for whose, found in AGREEMENT["twins"].items()} == {
        w: [*t] for w, t in TWINS.items()
    }
    for found in AGREEMENT["twins"].values():
        assert all(one["largest difference"] < 1e-10 and one["gradients"] for one in found.values())


MEASURE = "from bench.agreement import differences; import json, sys; "
MEASURE += "print(json.dumps(differences({'x': {'x': sys.argv[1]}})['x']['x']))"


def test_the_measurement_is_that_of_the_tests():
    run = [sys.executable, "-c", MEASURE, TWINS["PyTorch"]["nn.Transformer"]]
    done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    found, stored = json.loads(done.stdout.splitlines()[-1]), AGREEMENT["twins"]["PyTorch"]["nn.Transformer"]
    assert (found["outputs"], found["gradients"]) == (stored["outputs"], stored["gradients"])
    assert 0 < found["largest difference"] < 1e-10


@pytest.mark.parametrize("test", [test for tests in TWINS.values() for test in tests.values()])
def test_a_twin_has_its_test(test):
    file, name = test.split("::")
    assert f"\ndef {name}(" in (TESTS / file).read_text(encoding="utf-8")
