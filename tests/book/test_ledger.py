"""The ledger says where each claim is measured, how it was tried and how it was doubted."""

import json
import sys
from pathlib import Path

import pytest
import yaml

pytest.importorskip("jinja2")
pytest.importorskip("sphinx")
sys.path.insert(0, str(Path(__file__).parents[2] / "book" / "_ext"))

from ledger import CARD, HTML, Ledger
from ledger_data import entries, read_lessons, sources

from exformer_lessons.trials import RUNS

ROWS = [
    {
        "id": "A01",
        "lecture": "A",
        "slide": "Codes",
        "claim": "One vector loses.",
        "verdict": "holds",
        "lessons": ["lines"],
        "evidence": ["lines"],
    },
    {
        "id": "A02",
        "lecture": "A",
        "slide": "Codes",
        "claim": "Steps.",
        "verdict": "care",
        "exact": "So.",
        "lessons": [],
        "evidence": ["lines"],
    },
    {
        "id": "A03",
        "lecture": "A",
        "slide": "Codes",
        "claim": "Codes.",
        "verdict": "holds",
        "lessons": ["lines"],
        "control": "An untrained one.",
    },
    {
        "id": "A04",
        "lecture": "A",
        "slide": "Codes",
        "claim": "Later.",
        "verdict": "holds",
        "lessons": ["points"],
    },
]
PLAN = [
    {"number": "05", "slug": "lines", "title": "Lines", "question": "?"},
    {"number": "06", "slug": "points", "title": "Points", "question": "?"},
]


def notebook(*lines):
    """Return a notebook that showed some lines."""
    outputs = [{"output_type": "display_data", "data": {"text/plain": line}} for line in lines]
    before = {"cell_type": "markdown", "source": "# Lines\n\n## The first\n\n```python\n## a comment\n```\n"}
    return {"cells": [before, {"cell_type": "code", "outputs": outputs}, {"cell_type": "markdown"}]}


def run(value, **more):
    found = {"code": "c", "holds": value > 0.5, "values": {"share": value}, "steps": 1, "losses": []}
    return {"minutes": 1.0, "machine": "Linux", "claims": {"A01": found | more}}


RUNS_OF_A01 = {name: run(0.9 + number / 100) for number, name in enumerate(RUNS)}
RECORD = {"claims": {"A01": {"says": "It is {share:.0%}.", "budget": True}}, "runs": RUNS_OF_A01}
DOUBT = {
    "claim": "A01",
    "what": "the mask is <gone>",
    "says": "It is {share:.0%} of {n}.",
    "normally": {"share": 0.9, "n": 12},
    "sabotaged": {"share": 0.31, "n": 12},
    "refused": True,
}


def book_of(folder, *, record=RECORD, doubt=DOUBT):
    """Write what the ledger reads; return the folder."""
    files = {
        "book/claims.yml": yaml.safe_dump(ROWS),
        "book/lessons.yml": yaml.safe_dump(PLAN),
        "notebooks/05_lines.ipynb": json.dumps(notebook("claim A01 | It is 90%.", "shown A03 | It is.", "x")),
        "notebooks/evidence/lines.ipynb": json.dumps(
            notebook("claim A02 | 8 steps.", "claim A01 | Far: 80%.")
        ),
        "lib/exformer_lessons/lines/trials.json": json.dumps(record),
        "lib/exformer_lessons/doubts.json": json.dumps({"lines": {"A01": doubt}}),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_rows_know_where_they_are_claimed_or_shown(tmp_path) -> None:
    found = {entry.row["id"]: entry for entry in entries(book_of(tmp_path))}
    assert {key: entry.kind for key, entry in found.items()} == {
        "A01": "claimed",
        "A02": "claimed",
        "A03": "shown",
        "A04": "not yet",
    }
    assert [(place.page, place.name, place.says) for place in found["A01"].places] == [
        ("notebooks/05_lines", "lesson 05", "It is 90%."),
        ("notebooks/evidence/lines", "the evidence", "Far: 80%."),
    ]
    lines, points = read_lessons(tmp_path)
    assert [entry.row["id"] for entry in found.values() if entry.belongs_to(lines)] == ["A01", "A02", "A03"]
    assert [entry.row["id"] for entry in found.values() if entry.belongs_to(points)] == ["A04"]
    assert found["A01"].places_in(points) == []


def page_of(root):
    """Return the ledger's section of the first lesson as HTML."""
    lesson = read_lessons(root)[0]
    own = [entry for entry in entries(root) if entry.belongs_to(lesson)]
    return str(HTML.claims([(entry, entry.places_in(lesson), True) for entry in own], lesson["page"]))


def test_trial_sabotage_and_control_stand_below_a_claim(tmp_path) -> None:
    page = page_of(book_of(tmp_path))
    assert "Trial, 9 runs; over five seeds: share 92% (90–94%)" in page
    assert "<td>holds</td><td>5 of 5</td>" in page
    assert "<td>holds</td><td>5 of 5</td><td>yes</td>" in page
    assert "To repeat: make trials NB=lines" in page
    assert "Sabotage, refused: the mask is &lt;gone&gt;; share 31% instead of 90%." in page
    assert "Control: An untrained one." in page
    assert page.count("<details") == 1, "the evidence was not tried"
    assert page.count("shown, not claimed") == 1
    for link, words in (("05_lines", "see it measured"), ("evidence/lines", "see the evidence")):
        assert f'<a href="../notebooks/{link}.html#claim-A01">{words}</a>' in page
    assert '<a href="../notebooks/05_lines.html#claim-A03">see it shown</a>' in page
    assert [f'id="ledger-A0{n}"' in page for n in (1, 2, 3, 4)] == [True, True, True, False]


def test_statements_of_a_lecture(tmp_path) -> None:
    rows = entries(book_of(tmp_path))
    rows[0].row["slide"] = "Memory & loss"
    page = str(HTML.lecture(rows))
    assert "<td>Memory &amp; loss</td>" in page
    assert '<a href="../notebooks/05_lines.html#claim-A01">lesson 05</a>: The first<br>' in page
    assert '<a href="../notebooks/evidence/lines.html#claim-A01">evidence</a>: The first</td>' in page
    assert page.count("<tr>") == 1 + len(ROWS)
    assert "<td>not yet</td>" in page


def test_a_row_says_how_it_is_reproduced_and_can_be_filtered(tmp_path) -> None:
    page = page_of(book_of(tmp_path))
    assert page.count("<code>make claim ID=A0") == 3
    assert '<li id="ledger-A02" data-lecture="A" data-verdict="care">' in page


def test_what_was_not_tried_or_not_refused_is_not_told(tmp_path) -> None:
    page = page_of(book_of(tmp_path, record={"claims": {}, "runs": {}}, doubt=DOUBT | {"refused": False}))
    assert "<details" not in page
    assert "Sabotage" not in page


def test_evidence_may_be_there_before_its_lesson(tmp_path) -> None:
    root = book_of(tmp_path)
    (root / "notebooks" / "05_lines.ipynb").unlink()
    lines, points = read_lessons(root)
    assert (lines["page"], lines["evidence"]) == ("", "notebooks/evidence/lines")
    found = entries(root)
    assert [entry.kind for entry in found if entry.row["id"] in ("A01", "A02")] == ["claimed", "claimed"]
    assert Ledger._section(None, lines, found, set()).astext().startswith("Lines\n")
    assert Ledger._section(None, points, found, {"A01"}).astext().startswith("Points\n")
    assert Ledger._section(None, points, found, {"A04"}) is None


def test_different_values_look_different(tmp_path) -> None:
    doubt = DOUBT | {
        "says": "{share:.0%} of {n}, {gap:.0f}, {times:.1%}, 10^{far:.0f} and {noise:.0%}.",
        "normally": {"share": 0.28, "n": 12, "gap": 0.0, "times": 0.002, "far": -14.2, "noise": 0.3},
        "sabotaged": {"share": 0.279, "n": 12, "gap": 6e-9, "times": 42.5, "far": -0.08, "noise": 0.3 + 1e-9},
    }
    page = page_of(book_of(tmp_path, doubt=doubt))
    assert (
        "share 27.9% instead of 28.0%, gap 6·10⁻⁹ instead of 0, times 42 times instead of 0.2%, far" in page
    )
    assert "far 10⁰ instead of 10⁻¹⁴." in page, "and no noise"


def test_what_no_training_varies_is_no_trial(tmp_path) -> None:
    runs = {
        name: run(0.9 + n / 100, values={"share": 0.9 + n / 100, "fixed": 0.25, "raw": n / 9})
        for n, name in enumerate(RUNS)
    }
    record = {"claims": {"A01": {"says": "{share:.0%}, not {fixed:.0%}.", "budget": True}}, "runs": runs}
    page = page_of(book_of(tmp_path, record=record))
    assert "over five seeds: share 92% (90–94%)</summary>" in page
    assert "<td>share</td>" in page
    assert "<td>fixed</td>" not in page
    assert "<td>raw</td>" not in page, "the sentence does not write it"


def test_widths_have_subscripts() -> None:
    row = ROWS[1] | {"claim": "√d_k <is> a root."}
    assert "√d<sub>k</sub> &lt;is&gt; a root." in str(HTML.card(row, "claim", "8 steps.", ""))


def test_a_trial_whose_seeds_all_diverged_says_so(tmp_path) -> None:
    diverged = {"code": "c", "diverged": "nan", "steps": 1, "losses": []}
    runs = {name: each | {"claims": {"A01": diverged}} for name, each in RUNS_OF_A01.items()}
    page = page_of(book_of(tmp_path, record=RECORD | {"runs": runs}))
    assert "<td>0 of 5, 5 diverged</td>" in page
    assert page.count("<td>diverged</td>") == 4


def test_the_summary_counts_what_is_claimed_shown_and_to_come(tmp_path) -> None:
    found = entries(book_of(tmp_path))
    text = " ".join(str(HTML.summary(found)).split())
    assert "<strong>4</strong> statements: 3 " in text
    assert "<strong>2</strong> are measured, 1 <span" in text
    one = '1 <span class="verdict shown">shown, not claimed</span>, as it is true by definition; '
    assert f"{one}1 waits to be measured." in text
    done = [entry for entry in found if entry.kind != "not yet"]
    assert f"{one}none waits to be measured." in " ".join(str(HTML.summary(done)).split())


@pytest.mark.parametrize(("kind", "badge"), [("claim", False), ("shown", True)])
def test_a_card_gets_its_verdict_and_leads_to_its_row(kind, badge) -> None:
    from exformer_lessons.claims import Finding

    match = CARD.fullmatch(Finding("A01", "It is 5 < 6.", kind=kind)._repr_html_())
    assert match.groups() == ("A01", kind.capitalize(), "It is 5 &lt; 6.")
    card = str(HTML.card(ROWS[0], kind, match[3], "../../"))
    assert 'href="../../book/claims.html#ledger-A01"' in card
    assert ("shown, not claimed" in card) == badge
    assert "5 &lt; 6." in card


def test_the_ledger_is_made_anew_when_a_source_changes(tmp_path) -> None:
    names = {path.relative_to(tmp_path).as_posix() for path in sources(book_of(tmp_path))}
    assert names == {
        *("book/claims.yml", "book/lessons.yml"),
        *("lib/exformer_lessons/doubts.json", "lib/exformer_lessons/lines/trials.json"),
        *("notebooks/05_lines.ipynb", "notebooks/evidence/lines.ipynb"),
    }
