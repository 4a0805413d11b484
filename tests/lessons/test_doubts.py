"""Every claim can fail: there is a sabotage under which it is refused. What runs them can fail too."""

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import doubts
import pytest
from doubts import Sabotage

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_tools"))

import lesson_code  # noqa: E402
from tolerances import read_tags, same_claim  # noqa: E402

CODE = [
    "from exformer_lessons.claims import claim, shown\nrate = 0.5",
    "steps = 10\nshare = rate * steps / 5",
    'claim("A01", holds=lambda share: share > 0.6, says="It is {share:.0%}.", share=share)',
    "far = share / 4",
    'claim("A02", holds=lambda far: far > 0.1, says="Far off {far:.0%}.", far=far)\n'
    'claim("A03", holds=far > 0.01, says="an old one")\n'
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
    return doubts.run(path, Sabotage(claims, "the rate", old, new))


def test_a_claim_is_refused_on_its_figures(tmp_path, capsys) -> None:
    (row,) = tried(tmp_path, "far = share / 4", "far = share / 40")
    assert row["refused"]
    assert row["normally"] == {"far": 0.25}
    assert row["sabotaged"] == {"far": 0.025}
    doubts.show([row])
    out = capsys.readouterr().out
    assert "A02   the rate   refused" in out
    assert out.split()[-4:] == ["far", "0.25", "->", "0.025"]


def test_one_sabotage_may_refute_several_claims_in_one_run(tmp_path) -> None:
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
        ("far = share / 4", "far = float('nan')", "a value is no number|refutes A03"),
    ],
)
def test_a_sabotage_that_shows_nothing_fails(tmp_path, old, new, wrong) -> None:
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
        ("share > 0.6", "share > 6", "stands in the cell of a claim"),
        ("far > 0.1", "far > 10", "got it 0 times"),
    ],
)
def test_a_change_that_is_not_allowed_is_refused(tmp_path, old, new, message) -> None:
    with pytest.raises(ValueError, match=message):
        tried(tmp_path, old, new)


@pytest.mark.parametrize("name", ["A03", "A04", "B01"])
def test_only_a_claim_of_named_values_is_doubted(tmp_path, name) -> None:
    with pytest.raises(ValueError, match=f"no claim of named values is called {name}"):
        tried(tmp_path, "rate = 0.5", "rate = 0", (name,))


def sabotage_file(folder, text):
    path = Path(folder, "lib", "exformer_lessons", "tiny", "sabotages.yml")
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return doubts.sabotages("tiny", folder)


def test_sabotages_are_read_from_their_file(tmp_path) -> None:
    text = "- claim: [A01, A02]\n  what: The rate.\n  old: |\n    a = 1\n    b\n  new: ''\n"
    assert sabotage_file(tmp_path, text) == [Sabotage(("A01", "A02"), "The rate.", "a = 1\nb", "")]
    assert doubts.sabotages("other", tmp_path) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {claim: A01, old: a, new: b}", "expected claim, what, old and new, got claim, old, new"),
        ("- {claim: A01, what: ' ', old: a, new: b}", "must be one line"),
    ],
)
def test_sabotages_of_another_form_are_refused(tmp_path, text, message) -> None:
    with pytest.raises(ValueError, match=message):
        sabotage_file(tmp_path, text)


def test_a_rotating_tenth_covers_all() -> None:
    things = list(range(23))
    parts = [doubts.part(things, count) for count in range(470, 480)]
    assert sorted(itertools.chain(*parts)) == things
    assert max(map(len, parts)) == 3
    assert doubts.part([1], 471) == []


def test_without_git_the_first_part_is_run(tmp_path, monkeypatch) -> None:
    assert doubts.commits(tmp_path) == (0, "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: (_ for _ in ()).throw(FileNotFoundError("git")))
    assert doubts.commits() == (0, "")


def test_results_are_stored_claim_by_claim(tmp_path) -> None:
    row = {"claim": "A02", "refused": True, "wrong": "", "what": "old"}
    doubts.store("tiny", [row], "abc", tmp_path)
    doubts.store("evidence/tiny", [row], "abc", tmp_path)
    doubts.store("tiny", [row | {"claim": "A01"}, row | {"what": "new"}], "def", tmp_path)
    results = doubts.read_results(tmp_path)
    assert list(results) == ["evidence/tiny", "tiny"]
    assert list(results["tiny"]) == ["A01", "A02"]
    assert results["tiny"]["A02"] == {"claim": "A02", "refused": True, "what": "new", "commit": "def"}


# --- The book's own claims ---


def complaints(lesson, listed, results):
    """Return what is wrong with the sabotages of a notebook and with their stored results."""
    found = []
    doubted = {name: each for each in listed for name in each.claims}
    claims = {each.claim_id for each in lesson.claims if each.measures_values}
    found += [f"{name} has no sabotage" for name in sorted(claims - set(doubted))]
    for each in listed:
        try:
            doubts.last_claim(lesson, each)
        except ValueError as error:
            found.append(str(error))
    for name, each in doubted.items():
        stored = results.get(name, {})
        same = (stored.get("what"), stored.get("old"), stored.get("new")) == (each.what, each.old, each.new)
        known = {"says": stored.get("says", ""), "values": stored.get("normally", {})}
        claim = next((each for each in lesson.claims if each.claim_id == name), None)
        if claim and claim.stored and not same_claim(known, claim.stored, read_tags(claim.cell.tags)):
            found.append(f"{name}: doubted when the lesson found other figures: make doubt NB={lesson.key}")
        elif not same or not stored["refused"]:
            found.append(f"{name}: no result of this sabotage is stored: make doubt NB={lesson.key}")
    return found + [f"{name}: a result without a sabotage" for name in sorted(set(results) - set(doubted))]


@pytest.mark.parametrize("path", lesson_code.paths(), ids=lesson_code.key_of)
def test_each_claim_has_a_sabotage_that_refuted_it(path: Path) -> None:
    lesson = lesson_code.load(path)
    assert complaints(lesson, doubts.sabotages(lesson.key), doubts.read_results().get(lesson.key, {})) == []


def test_each_file_of_sabotages_belongs_to_a_notebook() -> None:
    folder = ROOT / "lib" / "exformer_lessons"
    keys = {"/".join(reversed(path.relative_to(folder).parts[:-1])) for path in folder.rglob("sabotages.yml")}
    assert keys <= {lesson_code.key_of(path) for path in lesson_code.paths()}


def test_what_is_missing_or_stale_is_found(tmp_path) -> None:
    values = {"A01": {"share": 1.0}, "A02": {"far": 0.25}}
    lesson = lesson_code.load(write(tmp_path, CODE[:5], values))
    mild = Sabotage(("A02",), "the rate", "far = share / 4", "far = share / 40")
    row = {"claim": "A02", "what": "the rate", "old": mild.old, "new": mild.new, "refused": True}
    row |= {"says": "Far off {far:.0%}.", "normally": {"far": 0.25}}
    also = Sabotage(("A01",), "steps", "steps = 10", "steps = 1")
    good = {
        "A01": row | {"what": "steps", "old": also.old, "new": also.new, "normally": {"share": 1.0}},
        "A02": row,
    }
    assert complaints(lesson, [mild, also], good) == []
    assert complaints(lesson, [mild], {"A02": row}) == ["A01 has no sabotage"]
    for change in (
        {"old": "x"},
        {"new": "x"},
        {"what": "x"},
        {"refused": False},
        {"normally": {"far": 0.26}},
    ):
        assert len(complaints(lesson, [mild, also], good | {"A02": row | change})) == 1
    assert len(complaints(lesson, [mild, also], {"A01": good["A01"]})) == 1
    assert complaints(lesson, [mild, also], good | {"B01": row}) == ["B01: a result without a sabotage"]
    assert len(complaints(lesson, [mild, Sabotage(("A01",), "x", "none", "y")], good)) == 2


def test_a_rotating_tenth_of_the_sabotages_refutes_its_claims() -> None:
    chosen = doubts.part(doubts.every(lesson_code.paths()), doubts.commits()[0])
    rows = [row for path, sabotage in chosen for row in doubts.run(path, sabotage)]
    assert [f"{row['claim']}: {row['wrong']}" for row in rows if row["wrong"]] == []
