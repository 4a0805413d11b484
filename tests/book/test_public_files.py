"""What strangers look for: how to cite, what changed, where to report, whose data it is."""

import doctest
import json
import re
from pathlib import Path
from statistics import mean, stdev

import pytest
import torch
import yaml
from course import parts

import exformer
from exformer.cli.parser import make_parser
from exformer.corpora.real.manifest import FILES
from exformer.hub.pretrained import load_model
from exformer.hub.shipped import shipped_models
from exformer.recipes.datasets import licenses
from exformer_lessons.todays_block.measure import runs

ROOT = Path(__file__).parents[2]
VERSION = exformer.__version__
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))


@pytest.mark.parametrize("name", ["troubleshooting", "licenses", "teach/doubt", "teach/project"])
def test_the_examples_of_a_page_print_what_it_says(name: str) -> None:
    page = ROOT / "book" / f"{name}.md"
    examples = doctest.DocTestParser().get_doctest(page.read_text(encoding="utf-8"), {}, name, str(page), 0)
    assert examples.examples
    said: list[str] = []
    with torch.random.fork_rng():
        assert doctest.DocTestRunner().run(examples, out=said.append).failed == 0, "".join(said)


def test_a_page_with_full_marks_quotes_its_row_and_predicts() -> None:
    page = (ROOT / "book" / "teach" / "doubt.md").read_text(encoding="utf-8")
    page = page.partition("## A page with full marks")[2].partition("\n## ")[0]
    rows = yaml.safe_load((ROOT / "book" / "claims.yml").read_text(encoding="utf-8"))
    row = next(row for row in rows if row["id"] == "A15")
    claim = row["claim"][0].lower() + row["claim"][1:].rstrip(".")
    assert f"**Row A15**: {claim}, *{row['clause']}*." in page
    doubts = json.loads((ROOT / "lib" / "exformer_lessons" / "doubts.json").read_text(encoding="utf-8"))
    measured = doubts["evidence/self_attention"]["A15"]["normally"]
    assert row["figure"].format(**measured).replace("d_k =", "a width of") in page
    predicted = [((d + 3) / 4) ** 0.5 for d in (4, 64, 1024)]
    assert "{:.1f}, {:.1f} and {:.1f} at the widths 4, 64 and 1,024".format(*predicted) in page
    scores = predicted[-1] * torch.randn(100_000, 8, generator=torch.Generator().manual_seed(0))
    assert scores.softmax(dim=-1).amax(dim=-1).mean() > 0.9  # what it expected, and did not find
    points = [int(found) for found in re.findall(r"[a-z] (\d)[,;.]", page.partition("*Marks:*")[2])]
    assert f"**{sum(points)} of 10.**" in page
    assert len(re.sub(r"^(>>>|\.\.\.|\d).*$", "", page, flags=re.M).split()) < 400


def test_a_marked_report_states_the_numbers_of_its_runs() -> None:
    page = (ROOT / "book" / "teach" / "project.md").read_text(encoding="utf-8")
    _, report = page.split("(marked-report)=\n")
    rubric = {name: int(most) for name, most in re.findall(r"^\| (\w+), (\d) \|", page, flags=re.M)}
    marks = [
        (name, int(got), int(most)) for name, got, most in re.findall(r"\*(\w+), (\d) of (\d):\*", report)
    ]
    assert {name: most for name, _, most in marks} == rubric
    assert all(got in (most, most / 2) for _, got, most in marks)
    total = sum(got for _, got, _ in marks)
    assert f"**{total} of {sum(rubric.values())}.**" in report
    assert 0.7 <= total / 20 <= 0.85
    assert len(report.split()) <= 1500
    alone, common = runs("alone"), runs("common")
    old, new = (alone[name]["excess"] for name in ("2017", "QK-norm"))
    assert f"{1000 * old[0]:.0f} millinats without QK-norm and {1000 * new[0]:.0f} with it" in report
    assert f"{1000 * mean(old):.1f}, from {1000 * min(old):.1f} to {1000 * max(old):.1f}" in report
    assert max(old) == old[0]  # the worst of them, as the page says
    assert f"rotary positions have {1000 * alone['rotary']['excess'][0]:.0f} there by coincidence" in report
    assert f"a gain of {mean(old) * 1000 - mean(new) * 1000:.0f} millinats" in report
    assert "wider than ± 8, half of the gain" in report
    worse = [
        1000 * (alone[name]["sweep"]["0.02"] - alone[name]["sweep"]["0.01"]) for name in ("2017", "QK-norm")
    ]
    assert "worse by {:.0f} millinats, with QK-norm only by {:.0f}".format(*worse) in report
    lead = [1000 * (a - b) for a, b in zip(old, alone["pre-norm"]["excess"], strict=True)]
    assert f"{mean(lead):.1f} ± {2.776 * stdev(lead) / 5**0.5:.1f}, and QK-norm" in report
    lead = [1000 * (a - b) for a, b in zip(common["2017"]["0.02"], common["pre-norm"]["0.02"], strict=True)]
    assert f"leads there by {mean(lead):.0f} ± {2.776 * stdev(lead) / 5**0.5:.0f} millinats" in report


def numbers_of(told: str) -> set[str]:
    """Return the lessons that words name: 04, 08 to 12."""
    found = re.findall(r"(\d\d)(?: to (\d\d))?", told)
    return {f"{n:02}" for first, last in found for n in range(int(first), int(last or first) + 1)}


def test_a_course_has_project_questions_on_what_it_teaches() -> None:
    page = (ROOT / "book" / "teach" / "project.md").read_text(encoding="utf-8")
    rows = yaml.safe_load((ROOT / "book" / "lessons.yml").read_text(encoding="utf-8"))
    number = {row["slug"]: row["number"] for row in rows}
    ways = yaml.safe_load((ROOT / "book" / "courses.yml").read_text(encoding="utf-8"))
    taught = {
        way["title"].lower(): {
            number[slug] for words in way["meetings"] for _, slug in parts(words) if slug in number
        }
        for way in ways
        if way["key"].endswith("14-90")
    }
    told = re.search(r"^\*The core\* has the lessons up to 13, (.+?)\. ", page, flags=re.M)[1]
    asked = {*re.findall(r"^- \[?Lesson (\d\d)", page, flags=re.M)}
    assert {lesson for lesson in asked if lesson <= "13"} <= taught["the core"]
    for title, words in re.findall(r"\*(.+?)\* ([^*]+)", told):
        lessons = taught[title.lower()]
        translator = set() if "07" in lessons else {"13"}  # the question on 13 asks about one
        assert numbers_of(words) == asked & lessons - translator, title


def test_a_project_question_says_where_the_ledger_has_its_row() -> None:
    page = (ROOT / "book" / "teach" / "project.md").read_text(encoding="utf-8")
    rows = yaml.safe_load((ROOT / "book" / "lessons.yml").read_text(encoding="utf-8"))
    number = {row["slug"]: row["number"] for row in rows}
    ledger = {
        row["id"]: min(number[slug] for slug in row["lessons"] + row["evidence"])
        for row in yaml.safe_load((ROOT / "book" / "claims.yml").read_text(encoding="utf-8"))
        if row["lessons"] + row["evidence"]
    }
    found = re.findall(
        r"^- \[?Lesson (\d\d).*? row \[(\w+)\]\S+?\)(?:, in the ledger under (\d\d))?:", page, re.M
    )
    assert len(found) == page.count(" row [")
    for lesson, row, elsewhere in found:
        assert (elsewhere or lesson) == ledger[row], row


def test_hours_of_the_small_project_add_up() -> None:
    page = (ROOT / "book" / "teach" / "project.md").read_text(encoding="utf-8")
    told = re.search(r"a small project takes (\d+) hours: (.+)", page)
    assert sum(int(hours) for hours in re.findall(r"\b(\d) (?:to|for) ", told[2])) == int(told[1]) == 23


#: Sweeps of which the project asks: a lesson's folder, the row, the name; what the page says of its figures.
ASKED = {
    ("tokens/evidence", "C22", "captions_crossed"): lambda found: [
        f"needs {found['English']['German']:.0f} tokens",
        f"on German needs {found['German']['German']:.0f}",
    ],
    ("embeddings", "A08", "nearest_words"): lambda found: [
        {10: "all ten", 0: "fewer than one"}[int(mean(found["tasks"][name]["synonym"]))]
        for name in ("translation", "neighbors")
    ],
    ("language_model/evidence", "D03", "batching"): lambda found: [
        f"{mean(found['batches by length']['share']):.0%} where the language has "
        f"{mean(found['the language']['share']):.0%}"
    ],
    ("generation/evidence", "C28", "equal_diversity"): lambda found: [
        f"min-p leaves {mean(found['min-p']):.1f}%",
        *(f"{name} {mean(found[name]):.1f}%" for name in ("top-p", "temperature", "top-k")),
        {3: "the lesson shows the best"}[min(range(5), key=found["sampled"].__getitem__)],
    ],
    ("masked_language_model/evidence", "C29", "minimal_pairs"): lambda found: [f"judges {mean(found):.0%}"],
}


@pytest.mark.parametrize("sweep", ASKED, ids=lambda sweep: sweep[1])
def test_a_project_question_states_what_was_recorded(sweep: tuple[str, str, str]) -> None:
    home, row, name = sweep
    page = (ROOT / "book" / "teach" / "project.md").read_text(encoding="utf-8")
    question = re.search(rf"^- .* row \[{row}\].*$", page, flags=re.M)[0]
    record = ROOT / "lib" / "exformer_lessons" / home / "trials.json"
    kept = json.loads(record.read_text(encoding="utf-8"))["sweeps"][row]
    assert question.endswith(f", {kept[name]['minutes']:.1f} minutes.")
    for words in ASKED[sweep](kept[name]["figures"]):
        assert words in question
    if name == "minimal_pairs":
        others = kept["labels"]["figures"]["from scratch, 1,600 steps"]["256"]
        assert f"{mean(others):.0%} after 256 other labels" in question


def test_headings_of_troubleshooting_say_what_one_sees() -> None:
    text = (ROOT / "book" / "troubleshooting.md").read_text(encoding="utf-8")
    sections = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    assert len(sections) > 15
    for section in sections:
        heading, _, body = section.partition("\n")
        assert len(body.split()) > 10, heading


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)  # what the format requires
    assert (str(citation["version"]), citation["license"]) == (VERSION, "MIT")


def test_the_changelog_begins_with_this_version() -> None:
    headings = re.findall(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == VERSION


@pytest.mark.parametrize("path", FORMS, ids=[path.stem for path in FORMS])
def test_a_form_for_issues(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(form)
    for field in form["body"]:
        assert field["type"] in {"input", "textarea", "dropdown", "checkboxes", "markdown"}
        assert field["attributes"]["label"]
    asked = re.findall(r"`exformer (\w+)`", path.read_text(encoding="utf-8"))
    known = next(action.choices for action in make_parser()._actions if action.choices)
    assert set(asked) <= set(known)
    assert "doctor" in asked or path.stem == "3-lost"


@pytest.mark.parametrize("name", shipped_models())
def test_the_card_of_a_model_names_the_terms_of_its_data(name: str) -> None:
    card = load_model(name).card
    assert card["data_licenses"] == licenses(card["data"])
    real = [file for file in card["data"] if file in FILES]
    assert bool(card["data_licenses"]) == bool(real)
    assert any("commerce" in terms for terms in card["data_licenses"]) == any(
        "multi30k" in file for file in real
    )
