"""What `make slides` writes: decks made from notebooks, which fit the wall and need no network."""

import json
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
import slides
import yaml
from axe_playwright_python.sync_playwright import Axe
from page_checks import RULES, go, visit

ROOT = Path(__file__).parents[2]
TEACH = ROOT / "book" / "teach"
LESSONS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
each_lesson = pytest.mark.parametrize("path", LESSONS, ids=[path.stem for path in LESSONS])
#: How far anything of the slide that is shown is outside of it, in pixels.
OUTSIDE = """number => {
    Reveal.slide(number);
    const parts = "h1, h2, p, li, pre, table, mjx-container, svg";
    const shown = [...Reveal.getCurrentSlide().querySelectorAll(parts)];
    const boxes = shown.filter(part => !part.closest("aside")).map(part => part.getBoundingClientRect());
    return Math.max(...boxes.map(box => Math.max(-box.left, -box.top, box.right - 1280, box.bottom - 700)));
}"""

#: The pictures and paragraphs that a printed page cuts.
CUT = """() => [...document.querySelectorAll(".pdf-page")].flatMap(page => {
    const end = page.getBoundingClientRect().bottom;
    return [...page.querySelectorAll("svg, p, li")].map(part => part.getBoundingClientRect().bottom - end);
}).filter(by => by > 0)"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write the slides of all lessons; return their folder."""
    folder = tmp_path_factory.mktemp("slides")
    slides.main([], folder)
    return folder


def markdown(source):
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def picture(name, size="0 0 10 5"):
    told = {"figure": {"name": name, "caption": "*Two* <b> bars."}, "image": {"alt": 'Bars "here"'}}
    data = {"image/svg+xml": f'<svg viewBox="{size}"><g id="a" color="#767676"/></svg>'}
    return {"cell_type": "code", "metadata": {"mystnb": told}, "source": "", "outputs": [{"data": data}]}


def printed(text):
    return {"cell_type": "code", "metadata": {}, "source": "", "outputs": [{"name": "stdout", "text": text}]}


LESSON = [
    markdown("# One: two things\n\nWhy this picture?"),
    picture("first"),
    markdown(
        "> **Question.** What is\n> one?\n\n## By hand\n\nTake [a word](x.md#y) of $d_k$.\n\n"
        "$$\nx^2 < 1\n\\tag{1.1}\n$$"
    ),
    markdown("So it goes.\n\n> **Predict.** What is\n> it: (a) no, (b) yes, or (c) both?"),
    printed("it is 3 < 4\n"),
    markdown("The answer is (b). It is *yes*. Since it can.\n\n## Later\n\nAlso this."),
    picture("second", "0 0 10 20"),
    markdown(
        "The end.\n\n## In models of today\n\nToday.\n\n## In short\n\n"
        "> **In short.**\n>\n> - One is\n>   $1$.\n> - Two."
    ),
    markdown("## Exercises\n\nNo more."),
]


def test_a_deck_follows_its_notebook():
    deck = slides.deck(LESSON, equations=["1.1"])
    assert [slide.heading for slide in deck] == [
        "One",
        "One",
        "By hand",
        "Predict",
        "By hand",
        "Later",
        "In short",
    ]
    title, first, formula, asked, answered, second, short = (slide.body for slide in deck)
    assert title == '<p class="claim">Two things</p><p class="question">What is one?</p>'
    assert '<p class="caption"><em>Two</em> &lt;b&gt; bars.</p>' in first
    assert 'aria-label="Bars &quot;here&quot;"' in first
    assert 'id="s1-a" color="currentColor"' in first
    assert r"\[x^2 &lt; 1\]" in formula
    assert (
        "What is it?</p><ol><li><b>(a)</b>no</li><li><b>(b)</b>yes</li><li><b>(c)</b>both</li></ol>" in asked
    )
    assert answered.startswith('<p class="right"><b>(b)</b>yes</p>')
    assert "<pre>it is 3 &lt; 4</pre>" in answered
    assert answered.endswith('<p class="told">It is <em>yes</em>.</p>')
    assert '<div class="beside">' in second
    assert short == '<div class="body"><ul><li>One is \\(1\\).</li><li>Two.</li></ul></div>'


def test_the_notes_are_what_the_lesson_says_around():
    said = [slide.said for slide in slides.deck(LESSON, equations=["1.1"])]
    answer = "The answer is (b). It is *yes*. Since it can."
    assert said == [
        [],
        ["Why this picture?"],
        ["Take [a word](x.md#y) of $d_k$."],
        ["So it goes."],
        [answer],
        ["Also this.", "The end."],
        ["Today."],
    ]
    assert slides.Slide("", "", ["[a *b*](x.md#y) of $d_k$"]).notes == r"<p>a <em>b</em> of \(d_k\)</p>"


@pytest.mark.parametrize("lead", ["It takes three:", "What is a *so*?", "It takes three."])
def test_a_short_list_that_is_announced_gets_a_slide(lead):
    told = "1. One [word](x.md#y).\n2. Two."
    [_, *deck] = slides.deck(
        [markdown(f"# One: two\n\n## By hand\n\nFirst. {lead}\n\n{told}\n\nSo.\n\n$$\nx\\tag{{1.1}}\n$$")],
        equations=["1.1"],
    )
    items = "<ol>\n<li>One word.</li>\n<li>Two.</li>\n</ol>"
    if lead.endswith("."):
        assert deck[0].said == [f"First. {lead}", told, "So."]
        assert deck[0].notes == f"<p>First. {lead}</p>\n{items}\n<p>So.</p>"
    else:
        assert (
            deck[0].body == f'<div class="body listed"><p class="lead">{slides.inline(lead)}</p>{items}</div>'
        )
        assert deck[1].said == ["So."]


def test_a_long_list_is_for_the_notes():
    told = "- " + "word " * 61
    deck = slides.deck(
        [markdown(f"# One: two\n\nThese:\n\n{told}\n\n$$\nx\\tag{{1.1}}\n$$")], equations=["1.1"]
    )
    assert deck[1].said == ["These:", told.strip()]


def test_lists_that_were_lost_are_in_their_decks(written: Path) -> None:
    for name, announced, words in (
        ("14_training", "It assumes three things:", "The sum counts every token of the text once"),
        ("09_embeddings", "What is a <em>plimmet</em>?", "He left his <em>plimmet</em>"),
    ):
        page = (written / f"{name}.html").read_text(encoding="utf-8")
        shown = re.sub(r"<aside.*?</aside>", "", page, flags=re.S)
        assert re.search(f'<p class="lead">{re.escape(announced)}</p><.l>[^§]*?{words}', shown)
    page = (written / "03_self_attention.html").read_text(encoding="utf-8")
    assert re.search(r'<aside class="notes">(?:(?!</aside>).)*<li><strong>Weigh', page, flags=re.S)


def test_a_prediction_shows_the_words_that_it_needs():
    [_, _, _, asked, *_] = slides.deck(LESSON, equations=["1.1"], before={1: "So it goes"})
    assert asked.body.startswith('<div class="body"><p class="before">So it goes.</p><p class="asked">')
    said = ["Two. Now: a *word* of $d$. The rest.", "Other."]
    assert slides.excerpt("now … d$", [said[0].lower()]) == "Now: a *word* of $d$"
    assert slides.excerpt("Now: a", said) == "Now: a *word* of $d$. The rest."
    with pytest.raises(ValueError, match=r"slides.yml: expected words .*, got 'Three'"):
        slides.excerpt("Three", said)


def test_what_is_left_out_leaves_its_words():
    deck = slides.deck(LESSON, without=["second", "predict 1"])
    assert [slide.heading for slide in deck] == ["One", "One", "In short"]
    assert "Also this." in deck[-1].said
    assert "So it goes." in deck[-1].said


@each_lesson
def test_a_deck_has_ten_to_fourteen_slides_with_notes(written: Path, path: Path) -> None:
    page = (written / f"{path.stem}.html").read_text(encoding="utf-8")
    assert 10 <= page.count("<section>") <= 14
    assert len(re.findall("<h2>(?:Predict|Break it)</h2>", page)) >= 2
    assert page.count('<aside class="notes"></aside>') <= 2  # the title, and a picture that a title explains
    assert not re.search(r"(?:src|href)=[\"'](?!#|data:|reveal|notes|slides|mathjax)", page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    files = sorted((written / "figures" / path.stem).glob("*.svg"))
    assert len(files) == len(slides.figures(cells))
    for file in files:
        assert ElementTree.parse(file).getroot().tag.endswith("svg")


def test_what_the_file_names_is_in_the_lessons():
    chosen = slides.yaml.safe_load((ROOT / "book/slides/slides.yml").read_text(encoding="utf-8"))
    assert set(chosen) <= {path.stem[3:] for path in LESSONS}
    for path in LESSONS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        about, found = chosen.get(path.stem[3:], {}), [*slides.blocks(cells)]
        there = {content.name for kind, content in found if kind == "figure"}
        there |= {f"predict {n}" for n in range(1, 1 + sum(kind == "asked" for kind, _ in found))}
        assert set(about.get("without", [])) <= there, path.stem
        shown = {slide.asked for slide in slides.deck(cells, **about) if 'class="before"' in slide.body}
        assert set(about.get("before", {})) == shown, path.stem
        tags = {tag[1] for kind, text in found if kind == "equation" and (tag := slides.TAG.search(text))}
        assert set(about.get("equations", [])) <= tags, path.stem


@pytest.fixture(scope="module")
def tab(browser, written):
    """Open one tab for all decks, which takes half of the time of a new one for each."""
    page, complaints = visit(browser, written / f"{LESSONS[0].stem}.html")
    yield page, complaints
    page.context.close()


@each_lesson
def test_every_slide_fits_and_its_formulas_show(tab, written: Path, path: Path) -> None:
    page, complaints = tab
    complaints.clear()
    go(page, written / f"{path.stem}.html")
    page.set_viewport_size({"width": 1280, "height": 720})
    page.wait_for_function("Reveal.isReady()")
    assert page.locator("mjx-merror").count() == 0
    assert (page.locator("mjx-container").count() > 0) == (
        r"\(" in (written / f"{path.stem}.html").read_text()
    )
    outside = {n: page.evaluate(OUTSIDE, n) for n in range(page.evaluate("Reveal.getTotalSlides()"))}
    assert {n: by for n, by in outside.items() if by > 0} == {}
    page.evaluate(Axe().axe_script)
    assert page.evaluate(RULES) == []
    assert not complaints


def test_a_deck_is_printed(browser, written: Path) -> None:
    path = written / "08_tokens.html"
    slides.print_pdf(browser, path)
    pages = len(re.findall(rb"/Type\s*/Page\b", path.with_suffix(".pdf").read_bytes()))
    assert pages == path.read_text(encoding="utf-8").count("<section>")
    page, _ = visit(browser, path)
    page.goto(f"{path.as_uri()}?view=print")
    page.wait_for_selector(".pdf-page:last-of-type")
    page.emulate_media(media="print")
    assert page.evaluate(CUT) == []
    page.context.close()


def test_pages_for_teachers_offer_what_make_writes(book: Path, written: Path) -> None:
    page = (book / "book" / "teach.html").read_text(encoding="utf-8")
    offered = {}
    for path in (book / "book" / "teach.html", book / "book" / "teach" / "grading.html"):
        for each in re.findall(r'<a href="([^"]+)" download', path.read_text(encoding="utf-8")):
            offered[Path(each).stem] = zipfile.ZipFile(path.parent / each).namelist()
    assert {*offered} == {"slides", "moodle", "canvas", "notebooks"}
    assert {each.removeprefix("canvas/") for each in offered["canvas"]} == {
        *("", "votes.zip", "pretest.zip", "tests.zip", "questions.zip")
    }
    decks_in, banks_in, notebooks_in = (offered[name] for name in ("slides", "moodle", "notebooks"))
    ours = {f"slides/{path.relative_to(written)}" for path in written.rglob("*.*") if path.suffix != ".pdf"}
    assert {name for name in decks_in if not name.endswith("/")} == ours
    given = {
        f"notebooks/{path.relative_to(ROOT / 'notebooks')}" for path in (ROOT / "notebooks").rglob("*.ipynb")
    }
    given |= {f"notebooks/assignments/{path.name}" for path in (TEACH / "assignments").glob("*.ipynb")}
    assert {name for name in notebooks_in if not name.endswith("/")} == given
    banks = {f"moodle/{name}.xml" for name in ("votes", "pretest", "tests", "questions")}
    plans = yaml.safe_load((TEACH.parent / "courses.yml").read_text(encoding="utf-8"))
    names = [
        "-".join(words)
        for plan in plans
        for words in {(plan["key"],), (plan["key"], *plan.get("instead", ()))}
    ]
    banks |= {f"moodle/weeks/{name}.html" for name in names}
    assert {name for name in banks_in if not name.endswith("/")} == banks
    for path in LESSONS:
        deck = (book / "_static" / "slides" / f"{path.stem}.html").read_text(encoding="utf-8")
        [mathjax] = re.findall(r'src="([^"]+mathjax[^"]+)"', deck)
        assert (book / "_static" / "slides" / mathjax).is_file()
        assert f'href="../_static/slides/{path.stem}.html"' in page
