"""Every claim can fail: there is a sabotage under which it is refused. What runs them can fail too."""

import itertools
import json
import re
import subprocess
from pathlib import Path

import pytest
import rotation

from exformer_lessons import sabotage
from exformer_lessons.__main__ import run
from exformer_lessons.notebook import key_of, load, paths
from exformer_lessons.sabotage import Sabotage, problems
from exformer_lessons.trials import HOME

ROOT = Path(__file__).parents[2]
CODE = [
    "from exformer_lessons.claims import claim, shown\nrate = 0.5",
    "steps = 10\nshare = rate * steps / 5",
    'claim("A01", holds=lambda share: share > 0.6, says="It is {share:.0%}.", share=share)',
    "far = share / 4",
    'claim("A02", holds=lambda far: far > 0.1, says="Far off {far:.0%}.", far=far)\n'
    'claim("A03", holds=lambda far: far > 0.01, says="{far}", far=far)\n'
    'shown("A04", says="true")',
    'far = 1 / 0\nclaim("A05", holds=lambda far: far > 1, says="{far}", far=far)',
]


def write(folder, code=CODE, values=None):
    """Write a lesson of some cells; the values of its claims are stored as given."""
    cells = []
    for source in code:
        outputs = []
        for name, kept in (values or {}).items():
            if f'"{name}"' in source:
                says = " ".join(f"{{{value}:.2f}}" for value in kept)
                metadata = {"exformer": {"id": name, "says": says, "values": kept}}
                outputs.append({"output_type": "display_data", "data": {}, "metadata": metadata})
        cells.append({"cell_type": "code", "metadata": {}, "source": source, "outputs": outputs})
    path = Path(folder, "notebooks", "tiny.ipynb")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return path


def tried(folder, old, new, claims=("A02",)):
    path = write(folder, values={"A01": {"share": 1.0}, "A02": {"far": 0.25}})
    return sabotage.perform(path, Sabotage(claims, "the rate", old, new))


def test_a_claim_is_refused_on_its_figures(tmp_path, capsys) -> None:
    (row,) = tried(tmp_path, "far = share / 4", "far = share / 40")
    assert row["refused"]
    assert row["normally"] == {"far": 0.25}
    assert row["sabotaged"] == {"far": 0.025}
    sabotage.show([row])
    out = capsys.readouterr().out
    assert "A02   the rate   refused" in out
    assert out.split()[-4:] == ["far", "0.25", "->", "0.025"]


def test_several_claims_refuted_by_one_sabotage(tmp_path) -> None:
    rows = tried(tmp_path, "rate = 0.5", "rate = 0.05", ("A01", "A02"))
    assert [row["refused"] for row in rows] == [True, True]


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("far = share / 4", "far = share / 5", "the claim survives"),
        ("far = share / 4", "far = share / 0", "an error before the claim: cell 3: ZeroDivisionError"),
        ("far = share / 4", "far = (", "an error before the claim: cell 3: SyntaxError"),
        ("far = share / 4", "far = 0.0", "refutes A03 too"),
        ("rate = 0.5", "rate = 0.05", "refutes A01 too: find a milder change"),
        ("far = share / 4", "far = float('nan')", "a value is NaN or infinite|refutes A03"),
    ],
)
def test_sabotages_that_show_nothing(tmp_path, old, new, wrong) -> None:
    (row,) = tried(tmp_path, old, new)
    assert not row["refused"]
    assert re.match(wrong, row["wrong"]), row["wrong"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("share", "part", r"expected 'share' once in the code before the claim, got it 7 times"),
        ("none such", "x", "got it 0 times"),
        ("  ", "x", "once in the code"),
        ("steps = 10", "steps = 10", "must change something"),
        ("share > 0.6", "share > 6", "is in the cell of a claim"),
        ("far > 0.1", "far > 10", "got it 0 times"),
    ],
)
def test_changes_that_are_not_allowed(tmp_path, old, new, message) -> None:
    with pytest.raises(ValueError, match=message):
        tried(tmp_path, old, new)


@pytest.mark.parametrize("name", ["A04", "B01"])
def test_a_sabotage_of_what_is_no_claim(tmp_path, name) -> None:
    with pytest.raises(ValueError, match=f"no claim is called {name}"):
        tried(tmp_path, "rate = 0.5", "rate = 0", (name,))


def sabotage_file(folder, text):
    path = Path(folder, "tiny", "sabotages.yml")
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    return sabotage.sabotages("tiny", folder)


def test_the_file_of_sabotages(tmp_path) -> None:
    text = "- claim: [A01, A02]\n  what: The rate.\n  old: |\n    a = 1\n    b\n  new: ''\n"
    assert sabotage_file(tmp_path, text) == [Sabotage(("A01", "A02"), "The rate.", "a = 1\nb", "")]
    assert sabotage.sabotages("other", tmp_path) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {claim: A01, old: a, new: b}", "expected claim, what, old and new, got claim, old, new"),
        ("- {claim: A01, what: ' ', old: a, new: b}", "must be one line"),
    ],
)
def test_errors_in_the_file_of_sabotages(tmp_path, text, message) -> None:
    with pytest.raises(ValueError, match=message):
        sabotage_file(tmp_path, text)


def test_every_sabotage_has_its_turn(monkeypatch) -> None:
    monkeypatch.delenv("EVERYTHING", raising=False)
    parts = []
    for commit in range(470, 480):
        monkeypatch.setattr(rotation, "last_commit", lambda _, commit=commit: f"{commit:x}")
        parts.append(rotation.rotating_part(range(23), parts=10))
    assert sorted(itertools.chain(*parts)) == list(range(23))
    assert max(map(len, parts)) == 3
    monkeypatch.setenv("EVERYTHING", "1")
    assert rotation.rotating_part(range(23), parts=10) == list(range(23))


def test_no_commit_where_git_is_silent(tmp_path, monkeypatch) -> None:
    assert rotation.last_commit(tmp_path) == ""
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: (_ for _ in ()).throw(FileNotFoundError("git")))
    assert rotation.last_commit(ROOT) == ""


def test_results_by_claim(tmp_path) -> None:
    row = {"claim": "A02", "refused": True, "wrong": "", "what": "old"}
    sabotage.store("tiny", [row], tmp_path)
    sabotage.store("evidence/tiny", [row], tmp_path)
    sabotage.store("tiny", [row | {"claim": "A01"}, row | {"what": "new"}], tmp_path)
    results = sabotage.read_results(tmp_path)
    assert list(results) == ["evidence/tiny", "tiny"]
    assert list(results["tiny"]) == ["A01", "A02"]
    assert results["tiny"]["A02"] == {"claim": "A02", "refused": True, "what": "new"}


@pytest.mark.parametrize(
    ("words", "names", "refused"), [([], ["A01", "A02"], 1), (["--only", "A02", "B01"], ["A02"], 1)]
)
def test_the_command_doubts_what_is_named(monkeypatch, capsys, words, names, refused) -> None:
    def tried(path, each):
        name, row = each.claims[0], {"what": "it", "normally": {}, "sabotaged": {}, "wrong": "it survives"}
        return [row | {"claim": name, "refused": name == "A02"}]

    stored, listed = [], [Sabotage((name,), "it", "a", "b") for name in ("A01", "A02")]
    monkeypatch.setattr(sabotage, "every", lambda found: [(path, each) for path in found for each in listed])
    monkeypatch.setattr(sabotage, "run", tried)
    monkeypatch.setattr(sabotage, "store", lambda key, rows: stored.append((key, rows[0]["claim"])))
    assert run(["doubt", "evidence/tokens", *words]) == (refused < len(names))
    assert stored == [("evidence/tokens", name) for name in names]
    told = capsys.readouterr().out
    assert told.endswith(f"\n{refused} of {len(names)} claims are refused under their sabotage\n")


# --- The book's own claims ---


@pytest.mark.parametrize("path", paths(), ids=key_of)
def test_a_sabotage_that_refuted_each_claim(path: Path) -> None:
    lesson = load(path)
    assert problems(lesson, sabotage.sabotages(lesson.key), sabotage.read_results().get(lesson.key, {})) == []


def test_a_notebook_of_each_file_of_sabotages() -> None:
    found = (path.relative_to(HOME).parts[:-1] for path in HOME.rglob("sabotages.yml"))
    assert {"/".join(reversed(parts)) for parts in found} <= {key_of(path) for path in paths()}


def test_missing_and_stale_results(tmp_path) -> None:
    values = {"A01": {"share": 1.0}, "A02": {"far": 0.25}}
    lesson = load(write(tmp_path, [*CODE[:4], CODE[4].partition("\n")[0]], values))
    mild = Sabotage(("A02",), "the rate", "far = share / 4", "far = share / 40")
    row = {"claim": "A02", "what": "the rate", "old": mild.old, "new": mild.new, "refused": True}
    row |= {"says": "Far off {far:.0%}.", "normally": {"far": 0.25}}
    also = Sabotage(("A01",), "steps", "steps = 10", "steps = 1")
    good = {
        "A01": row | {"what": "steps", "old": also.old, "new": also.new, "normally": {"share": 1.0}},
        "A02": row,
    }
    assert problems(lesson, [mild, also], good) == []
    assert problems(lesson, [mild], {"A02": row}) == ["A01 has no sabotage"]
    for change in (
        {"old": "x"},
        {"new": "x"},
        {"what": "x"},
        {"refused": False},
        {"normally": {"far": 0.26}},
    ):
        assert len(problems(lesson, [mild, also], good | {"A02": row | change})) == 1
    assert len(problems(lesson, [mild, also], {"A01": good["A01"]})) == 1
    assert problems(lesson, [mild, also], good | {"B01": row}) == ["B01: a result without a sabotage"]
    assert len(problems(lesson, [mild, Sabotage(("A01",), "x", "none", "y")], good)) == 2
    found = problems(lesson, [mild, also, Sabotage(("B01",), "x", "y", "z")], good)
    assert found[0] == "tiny: no claim is called B01"


def test_a_part_of_the_sabotages() -> None:
    chosen = rotation.rotating_part(sabotage.every(paths()), parts=60)
    rows = [row for path, each in chosen for row in sabotage.run(path, each)]
    assert [f"{row['claim']}: {row['wrong']}" for row in rows if row["wrong"]] == []
