"""The ledger of claims, book/claims.yml: complete, of the announced form, and readable."""

import re
from pathlib import Path

import pytest
import yaml

PATH = Path(__file__).parents[2] / "book" / "claims.yml"
ROWS = yaml.safe_load(PATH.read_text(encoding="utf-8"))
LAST = {"A": 19, "B": 14, "C": 31, "D": 11, "E": 11, "F": 8}
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
    own = row["lecture"] == "F"
    needed = {"id", "lecture", "claim", "verdict", "figure", "lessons"} | (set() if own else {"slide"})
    assert set(row) - {"clause", "exact", "evidence", "control"} - ({"trial"} if own else set()) == needed
    assert row["lecture"] == row["id"][0]
    assert row["verdict"] in {"holds", "condition", "wrong", "definition"}
    assert ("clause" in row) == (row["verdict"] in {"condition", "wrong"}), (
        "what must be added, or what is right"
    )
    assert row["lessons"] or row["evidence"], "name a lesson, or evidence"
    assert set(row.get("evidence", [])) <= TOPICS, "evidence is named by the topic of its lesson"
    assert set(row["lessons"]) <= TOPICS, "lessons are named by their slugs"
    assert row["lessons"] == sorted(set(row["lessons"]), key=ORDER.index)


@each_row
def test_claims_in_one_plain_sentence(row: dict) -> None:
    claim, clause = row["claim"], row.get("clause", "it is so")
    assert sentences(claim) == 1
    assert claim.endswith(".")
    assert 20 <= len(claim) <= 110, f"{len(claim)} characters"
    assert len(clause.split()) <= 12
    assert not clause.endswith(".")


@each_row
def test_sentences_of_what_is_exact(row: dict) -> None:
    exact = row.get("exact", "It is exact.")
    assert sentences(exact) in (1, 2)
    assert exact.endswith(".")
    assert all(len(part) <= 170 for part in re.split(r"(?<=\.)\s", exact))


@each_row
def test_plain_text(row: dict) -> None:
    for text in (row["claim"], *(row.get(name, "") for name in ("clause", "exact", "control", "trial"))):
        assert not re.search(r"[$`*<>\\]|  |\n", text), "no markup: the ledger shows it as it stands"
        assert not re.search(r"\b(professor|mistake|error|simply|just)\b", text, re.IGNORECASE)
    for text in (row.get("clause", ""), row.get("exact", "")):
        assert "%" not in text, "a measured number is typed by nobody"


def test_a_claim_of_every_lesson_or_its_evidence() -> None:
    found = {topic for row in ROWS for topic in (*row["lessons"], *row.get("evidence", []))}
    written = {path.stem.split("_", 1)[1] for path in (PATH.parents[1] / "notebooks").glob("*.ipynb")}
    assert written <= found


def test_the_evidence_that_rows_name() -> None:
    """A row may name a lesson that is to come, but no evidence that is."""
    written = {path.stem for path in (PATH.parents[1] / "notebooks" / "evidence").glob("*.ipynb")}
    assert {topic for row in ROWS for topic in row.get("evidence", [])} <= written


def test_a_correcting_row_for_each_misconception() -> None:
    text = (PATH.parent / "misconceptions.md").read_text(encoding="utf-8")
    rows = {row["id"]: row for row in ROWS}
    ids = re.findall(r"^```\{misconception\} (\w+)$", text, flags=re.M)
    assert len(set(ids)) == len(ids) >= 12
    wrong, others = (
        re.findall(r"\{misconception\} (\w+)$", part, flags=re.M) for part in text.split("\n## ")[1:]
    )
    assert {rows[one]["verdict"] for one in wrong} == {"wrong"}
    assert {rows[one]["verdict"] for one in others} == {"condition"}
    told = re.findall(r"^```\{misconception\} \w+\n(.+)\n\n(.+)\n\n(.+)\n```$", text, flags=re.M)
    assert len(told) == len(ids), "three paragraphs: what is believed, where it is said, what was measured"
    for belief, source, found in told:
        assert belief.endswith(".")
        assert "](" in source, "a source has a link"
        values = re.findall(r"\{\w+:?[^}]*\}", re.sub(r"\$[^$]+\$", "", found))
        assert 1 <= len(values) <= 2, f"one number, and what it is compared with: {found}"
