"""The built pages as a reader's browser has them: quiet, self-contained, readable, accessible to all."""

import re
from pathlib import Path

import pytest
from lxml.html import document_fromstring
from rotation import rotating_part


def pages(book):
    """Return the pages of words and lessons, two of those for teachers among them."""
    found = [*book.glob("book/*.html"), *book.glob("notebooks/**/*.html"), book / "search.html"]
    found += [book / "book" / "teach" / f"{name}.html" for name in ("mock", "lessons/self_attention")]
    assert len(found) > 5
    return sorted(found)


def descriptions(text):
    """Return the alternative texts of a page's pictures, img and svg with role img."""
    page = document_fromstring(text)
    found = [each.get("alt", "") for each in page.iter("img")]
    drawn = [each for each in page.iter("svg") if each.get("role") == "img"]
    return found + [each.get("aria-label") or each.get("aria-labelledby", "") for each in drawn]


def test_pages_in_a_browser(book: Path, browser) -> None:
    """An evidence page has no element that lessons do not have, so axe judges a part of them."""
    from page_checks import Known, faults, go, visit

    evidence = [path for path in pages(book) if "evidence" in path.parts]
    judged = {*pages(book)} - {*evidence} | {*rotating_part(evidence, parts=4)}
    wrong, known = [], Known()
    page, complaints = visit(browser, book / "book" / "index.html")
    for path in pages(book):
        go(page, path)
        found = faults(page, known, axe=path in judged)
        wrong += [f"{path.relative_to(book)}: {fault}" for fault in complaints + found]
        complaints.clear()
    page.context.close()
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["book/index.html", "book/api.html", "search.html"])
def test_who_prefers_dark_has_dark_pages(book: Path, browser, name: str) -> None:
    from page_checks import theme_of, visit

    page, complaints = visit(browser, book / name, prefers="dark")
    assert (theme_of(page), complaints) == ("dark", [])
    page.context.close()


#: The tables that a reader must scroll sideways, folded boxes opened.
CUT = """() => {
    for (const each of document.querySelectorAll("details")) each.open = true;
    const wide = (each) => each.scrollWidth > each.clientWidth + 1;
    const tables = [...document.querySelectorAll("figure.results .scroll")];
    return tables.filter(wide).map((each) => each.ariaLabel);
}"""


@pytest.mark.parametrize("name", ["results", "measurements"])
def test_on_a_desk_no_table_of_results_is_cut(book: Path, browser, name: str) -> None:
    from page_checks import visit

    page, _ = visit(browser, book / f"book/{name}.html")
    assert page.evaluate(CUT) == []
    page.context.close()


#: The height of the first line of the first such element, or of a figure, as it is seen.
HEIGHT = """(which) => {
    const found = document.querySelector(which), range = document.createRange();
    if (found.matches("svg")) return found.getBoundingClientRect().height;
    const words = document.createTreeWalker(found, NodeFilter.SHOW_TEXT);
    while (!words.currentNode.data?.trim()) words.nextNode();
    range.selectNodeContents(words.currentNode);
    return range.getClientRects()[0].height;
}"""


@pytest.mark.parametrize("width", ["desk", "phone"])
def test_type_grows_on_demand(book: Path, browser, width: str) -> None:
    from page_checks import WIDTHS, too_wide, visit

    def heights():
        seen = (".bd-article section > p", ".cell:not(.tag_hide-input) pre")
        return [page.evaluate(HEIGHT, which) for which in seen]

    page, complaints = visit(browser, book / "book" / "measurements.html")
    page.set_viewport_size(WIDTHS[width])
    cell = page.evaluate(HEIGHT, ".bd-article td")
    page.goto((book / "notebooks" / "03_self_attention.html").as_uri())
    button = page.get_by_role("button", name="Type size")
    letters, figure, sizes = heights(), page.evaluate(HEIGHT, "svg.book-figure"), []
    for factor in (1.25, 1.5, 1.8):
        button.press("Enter")
        sizes.append(page.locator(".type-size-button + [role=status]").inner_text())
        grown = [after / before for after, before in zip(heights(), letters, strict=True)]
        assert grown == pytest.approx([factor] * 2, rel=0.1)
        assert too_wide(page) == []
    assert sizes == ["Type size: 125%", "Type size: 150%", "Type size: 180%"]
    assert page.evaluate(HEIGHT, "svg.book-figure") > (1.2 if width == "desk" else 0.9) * figure
    for name in ("book/api.html", "book/glossary.html", "book/references.html", "book/measurements.html"):
        page.goto((book / name).as_uri())  # the size is kept
        assert (page.get_by_role("button", name="Type size: 180%").count(), too_wide(page)) == (1, []), name
    assert page.evaluate(HEIGHT, ".bd-article td") == pytest.approx(1.8 * cell, rel=0.1)
    button.press("Enter")
    assert (page.evaluate("document.documentElement.dataset.typeSize"), complaints) == (None, [])
    page.context.close()


#: Height of each live figure, as it is or as it begins, and of its smallest letters, in pixels of the screen.
LIVE = """() => [...document.querySelectorAll("[data-scripts]")].map((figure) => {
    const said = (each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const parts = [...figure.querySelectorAll(".live-stage *")];
    const worded = parts.filter((each) => each.checkVisibility() && said(each));
    const letters = worded.map((each) => parseFloat(getComputedStyle(each).fontSize) * each.currentCSSZoom);
    return [figure.getBoundingClientRect().height, Math.min(...letters)];
})"""


def test_live_figures_fit_a_wall(book: Path, browser) -> None:
    """In each larger type a figure has room below the page's header, in each view, and is read from afar."""
    from page_checks import SETTLE, go, visit

    rows, seen = 1080 - 48, 0
    page, complaints = visit(browser, book / "book" / "index.html")
    for path in pages(book):
        if "data-scripts" not in path.read_text(encoding="utf-8"):
            continue
        go(page, path)
        page.set_viewport_size({"width": 1920, "height": 1080})
        page.locator("[data-scripts]").first.scroll_into_view_if_needed()
        if page.locator(".live-begin").count():
            page.locator(".live-begin").first.click()
        page.locator("[data-scripts].live").first.wait_for()
        for view in page.locator("[data-scripts] [role=tab]").all() or [page.locator("[data-scripts]")]:
            view.click(position={"x": 2, "y": 2})
            page.wait_for_timeout(100)
            for step in (1, 2, 3):
                page.evaluate("(step) => { document.documentElement.dataset.typeSize = step; }", step)
                page.evaluate(SETTLE)
                for height, letters in page.evaluate(LIVE):
                    assert height <= rows, f"{path.name}: {height:.0f} pixels in type of step {step}"
                    assert letters >= 16, (
                        f"{path.name}: letters of {letters:.1f} pixels in type of step {step}"
                    )
                    seen += 1
        assert not complaints, path.name
    page.context.close()
    assert seen > 15


def test_search_finds_attention(book: Path, browser) -> None:
    from page_checks import visit

    page, _ = visit(browser, book / "search.html")
    page.goto((book / "search.html").as_uri() + "?q=attention")
    page.locator("#search-results li").first.wait_for(timeout=10_000)
    assert page.locator("#search-results li").count() >= 3
    page.context.close()


def test_the_ledger_is_filtered_and_the_choice_is_in_the_address(book: Path, browser) -> None:
    import yaml
    from page_checks import visit

    rows = yaml.safe_load((Path(__file__).parents[2] / "book" / "claims.yml").read_text(encoding="utf-8"))
    wrong = {row["id"] for row in rows if (row["lecture"], row["verdict"]) == ("B", "wrong")}
    page, complaints = visit(browser, book / "book" / "claims.html")
    page.goto((book / "book" / "claims.html").as_uri() + "#lecture=B&verdict=wrong&lesson=none")
    visible = """() => [...document.querySelectorAll("li[data-lecture]")]
      .filter((each) => each.offsetParent).map((each) => each.querySelector(".claim-id").textContent)"""
    assert set(page.evaluate(visible)) == wrong
    assert page.locator(".ledger-filter [name=lesson]").evaluate("(each) => each.selectedIndex") == 0
    page.locator(".ledger-filter [name=verdict]").select_option("")
    assert page.url.endswith("#lecture=B")
    assert set(page.evaluate(visible)) == {row["id"] for row in rows if row["lecture"] == "B"}
    page.locator(".ledger-filter input").fill("a word that is nowhere")
    assert page.evaluate(visible) == []
    assert page.locator(".ledger-filter [role=status]").inner_text() == f"0 of {len(rows)}"
    page.goto(
        (book / "book" / "claims.html").as_uri() + "#ledger-A15"
    )  # of another lecture: the row is shown
    assert page.locator("#ledger-A15").is_visible()
    top = page.locator("#ledger-A15").evaluate("(each) => each.getBoundingClientRect().top")
    assert 0 < top < 400, "it was filtered out when the browser looked for it"
    assert len(page.evaluate(visible)) == len(rows)
    assert page.locator("details[open]").count() == 1
    page.locator("a[href='#lecture=E']").click()
    page.locator("#ledger-A15").wait_for(state="hidden")  # the browser reports a new hash when it has time
    assert set(page.evaluate(visible)) == {row["id"] for row in rows if row["lecture"] == "E"}
    assert complaints == []
    page.context.close()


def test_every_drawing_is_a_part_of_its_page(book: Path) -> None:
    """Only then it follows the page's light and dark, not those of the system."""
    files = {path.relative_to(book).as_posix(): path.read_text(encoding="utf-8") for path in pages(book)}
    assert [name for name, text in files.items() if re.search(r"<img\b[^>]*_images/[^>]*\.svg", text)] == []
    assert sum(text.count('class="book-figure"') for text in files.values()) > 100


def test_every_figure_has_words(book: Path) -> None:
    for path in pages(book):
        for alt in descriptions(path.read_text(encoding="utf-8")):
            assert not alt.startswith(("../", "_images/", "/")), (
                f"{path.name}: a file name is no description: {alt}"
            )
            assert len(alt) >= 10, f"{path.name}: a figure without alternative text"


def test_nothing_is_asked_of_other_hosts(book: Path) -> None:
    asks = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)="(?:https?:)?//[^"]*"')
    harmless = re.compile(r'rel="(?:canonical|author|license)"')
    for path in book.rglob("*.html"):
        found = [tag for tag in asks.findall(path.read_text(encoding="utf-8")) if not harmless.search(tag)]
        assert not found, f"{path.name}: {found[0]}"


def sidebar_of(page):
    """Return the list of pages beside a page."""
    text = page.read_text(encoding="utf-8")
    return text[text.index('<nav class="bd-links') :].partition("</nav>")[0]


def test_the_table_of_contents_lists_each_lesson(book: Path) -> None:
    root = Path(__file__).parents[2]
    folder = root / "notebooks"
    names = [path.relative_to(folder).with_suffix("").as_posix() for path in sorted(folder.rglob("*.ipynb"))]
    assert all((book / "notebooks" / f"{name}.html").is_file() for name in names)
    listed = re.findall(r'href="\.\./notebooks/(\w+)\.html"', sidebar_of(book / "book" / "index.html"))
    assert listed == [name for name in names if "/" not in name]


def test_every_claim_stands_on_the_ledger(book: Path) -> None:
    import yaml

    root = Path(__file__).parents[2]
    rows = yaml.safe_load((root / "book" / "claims.yml").read_text(encoding="utf-8"))
    page = (book / "book" / "claims.html").read_text(encoding="utf-8")
    assert [row["id"] for row in rows if page.count(f'id="ledger-{row["id"]}"') != 1] == []


def test_next_leads_from_the_title_through_the_lessons(book: Path) -> None:
    lessons = sorted(path.stem for path in (book / "notebooks").glob("[0-9][0-9]_*.html"))
    next_link = re.compile(r'<a class="right-next"\s+href="([^"]+)"')
    page, seen = book / "book" / "index.html", []
    while found := next_link.search(page.read_text(encoding="utf-8")):
        page = (page.parent / found[1]).resolve()
        seen.append(page.stem)
    assert seen == lessons
    parts = re.findall(r"caption: (.+)", (Path(__file__).parents[2] / "_toc.yml").read_text(encoding="utf-8"))
    for name in ("book/glossary", "notebooks/evidence/tokens"):
        text = (book / f"{name}.html").read_text(encoding="utf-8")
        assert "right-next" not in text
        assert "left-prev" not in text
        sidebar = sidebar_of(book / f"{name}.html")
        assert "evidence/" not in sidebar
        shown = re.findall(r'class="caption-text">([^<]+)<', sidebar)
        assert shown == [part for part in parts if part not in ("Evidence", "Reference")]
