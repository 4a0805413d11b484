"""Which code of a lesson is folded, under which label; and what stands at the top of its page."""

import copy
import json
import re
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from folding import fold
from lesson_opening import minutes, rounded

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("**/*.ipynb"))
FIGURE = {"data": {"image/png": "", "image/svg+xml": "", "text/plain": ["<Figure>"]}}


def card(*ids):
    return [{"data": {"text/plain": [f"claim {key} | It is so."]}} for key in ids]


def code(source, outputs=(), tags=(), **mystnb):
    metadata = {"tags": list(tags)} if tags else {}
    metadata |= {"mystnb": mystnb} if mystnb else {}
    return {"cell_type": "code", "source": source, "outputs": list(outputs), "metadata": metadata}


def prose(source):
    return {"cell_type": "markdown", "source": source, "metadata": {}}


def label(cell):
    """Return a folded cell's label, None for an open cell."""
    folded = "hide-input" in cell["metadata"].get("tags", [])
    assert folded == cell["metadata"].get("jupyter", {}).get("source_hidden", False)
    told = cell["metadata"].get("mystnb", {}).get("code_prompt_show")
    assert folded or told is None, "an open cell has no label"
    return told or "" if folded else None


def alt(words):
    return {"image": {"alt": words}}


@pytest.mark.parametrize(
    ("cell", "wanted"),
    [
        (code("x = 1"), None),
        (code("print(1)", [{"text": "claim of a kind"}]), None),
        (code("claim('A01')", card("A01")), "Assemble claim A01"),
        (code("both()", card("A01", "B02")), "Assemble claims A01 and B02"),
        (code("shown('B05')", [{"data": {"text/plain": ["shown B05 | By definition."]}}]), "Show B05"),
        (code("plot()", [FIGURE]), "Plot the figure"),
        (code("plot()", [FIGURE], **alt("Two heat maps, side by side.")), "Plot the heat maps"),
        (code("plot()", [FIGURE], **alt("Diagram of a layer.")), "Draw the diagram"),
        (code("plot()", [FIGURE], figure={"caption": "All heads. Read rows."}), "Plot: All heads"),
        (code("plot()", [FIGURE], figure={"caption": "The $x$ of. Rows."}), "Plot the figure"),
        (code("plot()", [FIGURE], tags=["timing"]), "Plot the figure"),
        (code("plot()", [FIGURE], tags=["show-input"]), None),
        (code("check(f)", [FIGURE], tags=["exercise"]), None),
        (code("def f(): ...", card("A01"), tags=["twin:exformer.f"]), None),
        (code("def used(): ...\nclaim('A01')", card("A01")), None),
        (code("def local(): ...\nclaim('A01')", card("A01")), "Assemble claim A01"),
        (code("import x", tags=["setup", "hide-input"]), "Set up the lesson"),
        (code("table()", tags=["hide-input"], code_prompt_show="Tabulate it"), "Tabulate it"),
        (code("plot()", [FIGURE], code_prompt_show="Draw my words"), "Draw my words"),
        (
            code("claim('A01')", card("A01"), ["hide-input"], code_prompt_show="Assemble claim B02"),
            "Assemble claim A01",
        ),
        (code("x = 1", tags=["hide-input"], code_prompt_show="Assemble claim B02"), None),
    ],
)
def test_what_is_folded_and_how_it_is_labelled(cell: dict, wanted: str | None) -> None:
    cells = [cell, prose("local"), code("used()"), code("local()", tags=["exercise"])]
    tags = set(cell["metadata"].get("tags", [])) - {"hide-input"}
    fold(cells)
    assert label(cell) == wanted
    assert set(cell["metadata"].get("tags", [])) - {"hide-input"} == tags
    once = copy.deepcopy(cells)
    fold(cells)
    assert cells == once


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_lesson_is_folded_by_the_rule(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    stored = copy.deepcopy(cells)
    fold(cells)
    for before, after in zip(stored, cells, strict=True):
        assert before == after, f"python book/_tools/folding.py:\n{''.join(before['source'])}"
    unnamed = [cell["source"] for cell in cells if cell["cell_type"] == "code" and label(cell) == ""]
    assert not unnamed, f"a folded cell needs a label, mystnb.code_prompt_show: {unnamed[0]}"


def test_minutes_of_words_lines_figures_and_pauses() -> None:
    assert minutes([prose("word " * 240)]) == 3
    boxes = prose("> **Predict.** [two words](https://example.org)\n> here\n\n```\nnot read\n```")
    assert minutes([boxes]) == pytest.approx(4 / 80 + 1.5)
    asides = prose(
        "one\n\n## Exercises\n\nnot read\n\n<details>\n\nnor this\n\n</details>\n\n## In short\n\ntwo"
    )
    assert minutes([asides]) == 5 / 80  # with the three words of the heading
    assert minutes([prose("one\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\ntwo")]) == pytest.approx(2 / 80 + 1.5)
    cells = [code("a = 1\n\nb = 2"), code("c", tags=["hide-input"]), code("d", tags=["exercise"])]
    assert minutes(cells) == 2 / 15
    assert minutes([code("", [FIGURE, {"text": "no figure"}], ["hide-input"])]) == 1.25
    assert minutes([code("", [FIGURE], ["hide-input"], figure={"caption": "word " * 12})]) == 1.4
    assert minutes([code("", [{"data": {"text/html": "<table></table>"}}], ["hide-input"])]) == 1.5
    assert [rounded(number) for number in (0, 6, 23, 58)] == [5, 5, 25, 60]


def test_each_lesson_says_what_it_needs_and_gives(book: Path) -> None:
    lessons = yaml.safe_load((ROOT / "book" / "lessons.yml").read_text(encoding="utf-8"))
    place = {lesson["slug"]: i for i, lesson in enumerate(lessons)}
    for i, lesson in enumerate(lessons):
        path = next((ROOT / "notebooks").glob(f"{lesson['number']}_*.ipynb"), None)
        if path is None:
            continue
        assert all(place[before] < i for before in lesson["after"]), lesson["slug"]
        assert 2 <= len(lesson["able"]) <= 4, lesson["slug"]
        page = (book / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
        top = page[page.index('<div class="lesson-opening') :].split("</div>")[0]
        words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", top)).replace("’", "'")
        assert all(able in words for able in lesson["able"])
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert f"About {rounded(minutes(cells))} minutes to read, exercises apart." in words
        assert top.count("<a ") == len(lesson["after"])


def test_a_folded_cell_bears_its_label_on_the_page(book: Path) -> None:
    page = (book / "notebooks" / "03_self_attention.html").read_text(encoding="utf-8")
    labels = re.findall(r'<p class="collapsed admonition-title">(.*?)</p>', page)
    assert "Draw queries, keys and values" in labels
    assert "Set up the lesson" in labels
    assert re.findall(r'<p class="expanded admonition-title">(.*?)</p>', page) == labels
    assert not [words for words in labels if "Show code" in words]


def test_a_lesson_is_named_by_its_concept_then_its_claim(book: Path) -> None:
    lessons = yaml.safe_load((ROOT / "book" / "lessons.yml").read_text(encoding="utf-8"))
    page = (book / "book" / "glossary.html").read_text(encoding="utf-8")
    side = BeautifulSoup(page, "html.parser").select_one(".bd-sidebar-primary")
    for lesson in lessons:
        path = next((ROOT / "notebooks").glob(f"{lesson['number']}_*.ipynb"), None)
        if path is None:
            continue
        first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        concept, colon, claim = first.partition("\n")[0].removeprefix("# ").partition(": ")
        assert (concept, colon) == (lesson["title"], ": "), path.stem
        concept = concept.replace("'", "’")  # as it is typeset
        [link] = side.select(f'a[href$="/{path.stem}.html"]')
        assert link.get_text().strip() == f"{int(lesson['number'])}. {concept}: {claim}"
        assert [each.get_text() for each in link.select(".claimed")] == [claim]
        top = (book / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8").partition("<h1>")[2]
        heading = re.sub(r"<a .*?</a>|<[^>]+>", "", top.partition("</h1>")[0])
        assert heading.strip().endswith(f"{concept}: {claim}")


def test_answers_are_folded_and_their_code_is_not(book: Path) -> None:
    """Each answer that a page announces is behind a button, with the figure that gives it away."""
    shown = re.compile(r"<p>(?:The answer is|It is) \([a-e]\)")
    pages = sorted((book / "notebooks").glob("[0-9][0-9]_*.html"))
    texts = {page.stem: page.read_text(encoding="utf-8") for page in pages}
    folded = re.compile(r'<details class="answer"><summary>Show the answer</summary>.*?</details>\n', re.S)
    for name, text in texts.items():
        bare = re.sub(r'<details class="admonition hide.*?</details>', "", text, flags=re.S)
        assert not shown.search(folded.sub("", bare)), name
    tokens = re.sub(r'<details class="admonition hide.*?</details>', "", texts["08_tokens"], flags=re.S)
    first = folded.findall(tokens)[0]
    assert 'id="merges"' in first
    assert "The answer is (b)" in first
    assert "cell_input" not in first, "code that is open stays in sight"
