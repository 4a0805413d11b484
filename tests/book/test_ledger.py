"""The ledger says where each claim is measured, how it was tried and how it was doubted."""

import json
import re
from pathlib import Path

import pytest
import yaml

pytest.importorskip("jinja2")
pytest.importorskip("sphinx")

from ledger import CARD, HTML, filled, section
from ledger_data import entries, read_lectures, read_lessons, sources

from exformer_lessons.formatting import FIELD
from exformer_lessons.trials import RUNS

ROOT = Path(__file__).parents[2]
ROWS = [
    {
        "id": "A01",
        "lecture": "A",
        "slide": "Codes & loss",
        "claim": "One vector loses.",
        "verdict": "holds",
        "figure": "{share:.0%} arrive",
        "lessons": ["lines"],
        "evidence": ["lines"],
    },
    {
        "id": "A02",
        "lecture": "A",
        "slide": "Codes",
        "claim": "Steps.",
        "verdict": "condition",
        "clause": "with Ada's √d_k <steps>",
        "exact": "So.",
        "lessons": [],
        "evidence": ["lines"],
    },
    {
        "id": "A03",
        "lecture": "B",
        "slide": "Codes",
        "claim": "Codes.",
        "verdict": "definition",
        "lessons": ["lines"],
        "control": "An untrained one.",
    },
    {
        "id": "A04",
        "lecture": "B",
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
LECTURES = """## The five lectures

| Letter | Lecture |
|---|---|
| A | *Lines I*, N. Ada and A. Bea, University of Salerno |
| B | *Points*, attributed to U. Cid, "your cat" |
| C | *Planes*, R. Dan, University of Turin, after chapter 12 of [Eve (2024)](https://doi.org/1) |

## Rows

| A | *No lecture*, nobody |
"""


def notebook(*lines, **values):
    """Return a notebook that showed some lines, each with the same values."""
    outputs = [
        {
            "output_type": "display_data",
            "data": {"text/plain": line},
            "metadata": {"exformer": {"values": values}},
        }
        for line in lines
    ]
    return {"cells": [{"cell_type": "code", "outputs": outputs}, {"cell_type": "markdown"}]}


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
        "book/notation.md": LECTURES,
        "notebooks/05_lines.ipynb": json.dumps(
            notebook("claim A01 | It is 90%.", "shown A03 | It is.", "x", share=0.9, n=12)
        ),
        "notebooks/evidence/lines.ipynb": json.dumps(
            notebook("claim A02 | 8 steps.", "claim A01 | Far: 80%.", far=0.8)
        ),
        "lib/exformer_lessons/lines/trials.json": json.dumps(record),
        "lib/exformer_lessons/doubts.json": json.dumps({"lines": {"A01": doubt}}),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def page_of(root):
    """Return the rows of the ledger that are measured, as HTML."""
    return str(HTML.claims([entry for entry in entries(root) if entry.places]))


def summary_of(root):
    """Return the words above the ledger."""
    text = re.sub("<[^>]+>", "", str(HTML.summary(entries(root), read_lectures(root))))
    return " ".join(text.replace("&nbsp;", " ").split())


def test_rows_know_where_they_are_claimed_or_shown(tmp_path) -> None:
    found = {entry.row["id"]: entry for entry in entries(book_of(tmp_path))}
    kinds = {key: entry.kind for key, entry in found.items()}
    assert kinds == {"A01": "claimed", "A02": "claimed", "A03": "shown", "A04": "not yet"}
    assert [(place.page, place.name, place.says) for place in found["A01"].places] == [
        ("notebooks/05_lines", "lesson 05", "It is 90%."),
        ("notebooks/evidence/lines", "the evidence", "Far: 80%."),
    ]
    assert found["A01"].topics == ["lines"]


def test_a_number_comes_from_the_cell_that_measured_it(tmp_path) -> None:
    one = entries(book_of(tmp_path))[0]
    assert one.figure == ["", "90%", " (90–94%) arrive"], "with its range over the seeds"
    assert one.parts("far {far:.1f}, then nothing") == ["far ", "0.8", ", then nothing"]
    assert one.parts("{share:.0%} of {n}") == ["", "90%", " (90–94%) of ", "12", ""]
    assert one.page == "notebooks/05_lines"
    assert filled(one, r"Of $\sqrt{d_k}$ {share:.0%}.") == r"Of $\sqrt{d_k}$ **90%** (90–94%)."
    with pytest.raises(ValueError, match=r"A01 measures far, n, share, got 'nearly \{near\}'"):
        one.parts("nearly {near}")


def test_one_line_a_row_and_the_rest_is_folded(tmp_path) -> None:
    page = page_of(book_of(tmp_path))
    first = page.partition('id="ledger-A01"')[0]
    assert '<li data-lecture="A" data-verdict="holds" data-lessons="lines"><details><summary>' in first
    assert "One vector loses." in first
    assert "It is 90%." not in first
    assert '<a class="figure" href="../notebooks/05_lines.html#claim-A01">' in page
    assert "<strong>90%</strong> (90–94%) arrive</a>" in page
    assert "<em>with Ada’s √d<sub>k</sub> &lt;steps&gt;</em>" in page
    assert "“Codes &amp; loss”" in page
    assert page.count("<code>exformer-lessons claim A0") == 2, "what is shown is not measured again"


def test_trial_sabotage_and_control_in_words(tmp_path) -> None:
    page = page_of(book_of(tmp_path))
    assert "5 of 5 seeds and 4 of 4 runs with other steps, learning rates or another order" in page
    assert "The mask is &lt;gone&gt;; the number becomes 31%; the claim fails." in page
    nothing = DOUBT | {"sabotaged": {"share": 0, "n": 12}}
    assert "; the number becomes 0%; the claim" in page_of(book_of(tmp_path, doubt=nothing))
    assert "<b>Control.</b> An untrained one." in page
    assert page.count("<b>Trial.</b>") == 1, "the evidence was not tried"


def test_more_training_than_the_claim_names_is_no_failure(tmp_path) -> None:
    runs = RUNS_OF_A01 | {"4x steps": run(0.4)}
    page = page_of(book_of(tmp_path, record=RECORD | {"runs": runs}))
    assert "and 3 of 3 runs with other learning rates or another order" in page
    assert "with four times as much it need not hold" in page
    failed = {"claims": {"A01": {"says": "It is {share:.0%}."}}, "runs": runs}
    assert "and 3 of 4 runs with other steps" in page_of(book_of(tmp_path, record=failed))


def test_what_was_not_tried_or_not_refused_is_not_told(tmp_path) -> None:
    page = page_of(book_of(tmp_path, record={"claims": {}, "runs": {}}, doubt=DOUBT | {"refused": False}))
    assert "Trial" not in page
    assert "Sabotage" not in page


@pytest.mark.parametrize("after", [0.904, 1e-9, 42.5, "nan"], ids=["same", "rounded away", "huge", "a word"])
def test_a_sabotaged_number_that_says_nothing_is_left_out(after, tmp_path) -> None:
    page = page_of(book_of(tmp_path, doubt=DOUBT | {"sabotaged": {"share": after, "n": 12}}))
    assert "The mask is &lt;gone&gt;; the claim fails." in page


def test_evidence_may_be_there_before_its_lesson(tmp_path) -> None:
    root = book_of(tmp_path)
    (root / "notebooks" / "05_lines.ipynb").unlink()
    lines, points = read_lessons(root)
    assert (lines["page"], lines["evidence"]) == ("", "notebooks/evidence/lines")
    found = [entry for entry in entries(root) if entry.row["id"] == "A02"]
    assert section(lines, found).astext().startswith("Lines\n")
    assert section(points, found) is None


def test_the_summary_counts_each_verdict_and_names_lectures(tmp_path) -> None:
    root = book_of(tmp_path)
    text = summary_of(root)
    assert text.startswith("4 statements: 2 holds, 1 holds with a condition, 0 wrong, 1 true by definition.")
    assert "2 are measured and 1 shown; 1 wait to be measured." in text
    assert "By lecture, the last our own: A, B, C, F." in text
    links = re.findall(r'href="(#\w+=\w+)"(?: title="([^"]+)")?', str(HTML.summary([], {})))
    assert links == []
    links = re.findall(
        r'href="#lecture=(\w)" title="([^"]+)"', str(HTML.summary(entries(root), read_lectures(root)))
    )
    assert links == [
        ("A", "Lines I, N. Ada and A. Bea"),
        ("B", "Points, attributed to U. Cid"),
        ("C", "Planes, R. Dan"),
        ("F", "our own, of lessons that go on where the lectures end"),
    ]


@pytest.mark.parametrize("kind", ["claim", "shown"])
def test_a_card_gets_its_verdict_and_leads_to_its_row(kind) -> None:
    from exformer_lessons.claims import Finding

    match = CARD.fullmatch(Finding("A01", "It is 5 < 6.", kind=kind)._repr_html_())
    assert match.groups() == ("A01", kind.capitalize(), "It is 5 &lt; 6.")
    card = str(HTML.card(ROWS[1], kind, match[3], "../../"))
    assert 'href="../../book/claims.html#ledger-A02"' in card
    assert "holds with a condition" in card
    assert "<em>with Ada’s √d<sub>k</sub> &lt;steps&gt;</em>" in card
    assert "5 &lt; 6." in card


def test_the_ledger_is_made_anew_when_a_source_changes(tmp_path) -> None:
    names = {path.relative_to(tmp_path).as_posix() for path in sources(book_of(tmp_path))}
    assert names == {
        *("book/claims.yml", "book/lessons.yml", "book/notation.md"),
        *("lib/exformer_lessons/doubts.json", "lib/exformer_lessons/lines/trials.json"),
        *("notebooks/05_lines.ipynb", "notebooks/evidence/lines.ipynb"),
    }


# --- the book's own ledger ---

REAL = entries(ROOT)
#: What no reader should meet: a power of ten, six decimals, a count of a billion, a variable's name.
JUNK = re.compile(r"10[⁰¹²³⁴-⁹⁻]|\d\.\d{5}|\d{3},\d{3},\d{3}|\d{4} times|\de[-+]|−0\b|[a-z]{2}_[a-z]")
each_entry = pytest.mark.parametrize("entry", REAL, ids=[entry.row["id"] for entry in REAL])


def told(entry):
    """Return what the ledger says of a row in its own words, the measured sentences apart."""
    row = entry.row
    words = [
        row["claim"],
        row.get("clause", ""),
        "".join(entry.figure),
        row.get("exact", ""),
        row.get("control", ""),
    ]
    return [*words, *map(entry.tried, entry.places), *map(entry.doubted, entry.places)]


def test_claimed_and_shown_are_all() -> None:
    kinds = [entry.kind for entry in REAL]
    assert kinds.count("claimed") + kinds.count("shown") == len(REAL) == 86 + 8
    for entry in REAL:
        assert (entry.kind == "shown") >= (entry.row["verdict"] == "definition"), entry.row["id"]
        assert (entry.kind == "shown") <= (entry.row["verdict"] != "holds"), entry.row["id"]


@each_entry
def test_a_row_says_nothing_that_no_reader_understands(entry) -> None:
    for text in told(entry):
        assert not JUNK.search(text), text
        assert not re.search(r"(\S*\d\S*) instead of \1(?!\S)", text), text


@each_entry
def test_one_number_that_is_measured(entry) -> None:
    numbers = entry.figure[1::2]
    assert len(numbers) == 1
    known, typed = (
        {number for text in texts for number in re.findall(r"\d[\d,.]*\d|\d", FIELD.sub("", text))}
        for texts in ([place.template for place in entry.places], [entry.row["figure"]])
    )
    assert typed <= known, "a setting of the trial, as the measured sentence names it"
    assert len("".join(entry.figure)) <= 75
    if re.fullmatch(r"[−0.]+%?", numbers[0]):
        name = re.search(r"\{(\w+)", entry.row["figure"])[1]
        assert next(place.values[name] for place in entry.places if name in place.values) == 0, (
            "a zero is none"
        )
