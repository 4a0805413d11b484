"""The ledger of claims, book/claims.yml: complete, of the announced form, and readable."""

import re
from pathlib import Path

import pytest
import yaml

PATH = Path(__file__).parents[2] / "book" / "claims.yml"
ROWS = yaml.safe_load(PATH.read_text(encoding="utf-8"))
LAST = {"A": 19, "B": 14, "C": 31, "D": 11, "E": 11}
PLAN = yaml.safe_load((PATH.parent / "lessons.yml").read_text(encoding="utf-8"))
TOPICS = {lesson["slug"] for lesson in PLAN}
ORDER = [lesson["slug"] for lesson in PLAN]
each_row = pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])


def sentences(text: str) -> int:
    return len(re.findall(r"\.(?:\s|$)", text))


def test_rows_in_their_order() -> None:
    wanted = [f"{lecture}{number:02}" for lecture, last in LAST.items() for number in range(1, last + 1)]
    assert [row["id"] for row in ROWS] == wanted


@each_row
def test_fields_and_their_words(row: dict) -> None:
    assert set(row) - {"exact", "evidence", "control"} == {
        "id",
        "lecture",
        "slide",
        "claim",
        "verdict",
        "lessons",
    }
    assert row["lecture"] == row["id"][0]
    assert row["verdict"] in {"holds", "care", "wrong"}
    assert row["verdict"] == "holds" or "exact" in row, "say what is exact"
    assert row["lessons"] or row["evidence"], "name a lesson, or evidence"
    assert set(row.get("evidence", [])) <= TOPICS, "evidence is named by the topic of its lesson"
    assert set(row["lessons"]) <= TOPICS, "lessons are named by their slugs"
    assert row["lessons"] == sorted(set(row["lessons"]), key=ORDER.index)


@each_row
def test_claims_in_one_plain_sentence(row: dict) -> None:
    claim = row["claim"]
    assert sentences(claim) == 1
    assert claim.endswith(".")
    assert 20 <= len(claim) <= 140, f"{len(claim)} characters"


@each_row
def test_sentences_of_what_is_exact(row: dict) -> None:
    exact = row.get("exact", "It is exact.")
    assert sentences(exact) in (1, 2)
    assert exact.endswith(".")
    assert all(len(part) <= 170 for part in re.split(r"(?<=\.)\s", exact))


@each_row
def test_plain_text(row: dict) -> None:
    for text in (row["claim"], row.get("exact", ""), row.get("control", "")):
        assert not re.search(r"[$`*<>\\]|  |\n", text), "no markup: the ledger shows it as it stands"
        assert not re.search(
            r"\b(slides?|lectures?|professor|mistake|error|simply|just)\b", text, re.IGNORECASE
        )


def test_a_claim_of_every_lesson_or_its_evidence() -> None:
    found = {topic for row in ROWS for topic in (*row["lessons"], *row.get("evidence", []))}
    written = {path.stem[3:] for path in (PATH.parents[1] / "notebooks").glob("[0-9][0-9]_*.ipynb")}
    assert not written - found


def test_the_evidence_that_rows_name() -> None:
    """A row may name a lesson that is to come, but no evidence that is."""
    written = {path.stem for path in (PATH.parents[1] / "notebooks" / "evidence").glob("*.ipynb")}
    assert {topic for row in ROWS for topic in row.get("evidence", [])} <= written


def test_a_correcting_row_for_each_misconception() -> None:
    topics = yaml.safe_load((PATH.parent / "misconceptions.yml").read_text(encoding="utf-8"))
    rows = {row["id"]: row for row in ROWS}
    beliefs = [each for topic in topics for each in topic["beliefs"]]
    assert len({each["row"] for each in beliefs}) == len(beliefs)
    for each in beliefs:
        assert rows[each["row"]]["verdict"] != "holds", each["row"]
        assert each["belief"].endswith(".")
