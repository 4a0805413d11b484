"""The built pages as a reader's browser has them: quiet, self-contained, readable, accessible to all."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

WIDTHS = {"desk": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
#: A page in a file may not read its own style sheets again (preload); what is well is not reported.
AXE = {"preload": False, "resultTypes": ["violations"]}
#: What axe reads where: colours do not depend on the width, and nothing but colours depends on the theme.
COLOURS = ("color-contrast", "link-in-text-block")
RULES = {
    ("light", "desk"): {},
    ("light", "phone"): {"rules": {rule: {"enabled": False} for rule in COLOURS}},
    ("dark", "desk"): {"runOnly": {"type": "rule", "values": [*COLOURS]}},
    ("dark", "phone"): None,
}


def pages(book):
    """Return the pages of words and lessons, without the theme's listings of program text."""
    found = [*book.glob("book/*.html"), *book.glob("notebooks/**/*.html"), book / "search.html"]
    assert len(found) > 5
    return sorted(found)


class Images(HTMLParser):
    """The alternative texts of a page's pictures."""

    def __init__(self, text):
        super().__init__()
        self.alts = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Collect the text of img and of svg with role img."""
        found = dict(attrs)
        if tag == "img":
            self.alts.append(found.get("alt") or "")
        elif tag == "svg" and found.get("role") == "img":
            self.alts.append(found.get("aria-label") or found.get("aria-labelledby") or "")


def visit(browser, path, theme="light"):
    """Open a page; return it with the addresses that it asked for and what its scripts complained of."""
    context = browser.new_context(viewport=WIDTHS["desk"], color_scheme=theme)
    page = context.new_page()
    requests, complaints = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda note: complaints.append(note.text) if note.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    page.evaluate("async () => { await window.MathJax?.startup?.promise; await document.fonts.ready }")
    return page, requests, complaints


def faults(page, axe, *, theme, width):
    """Return what is wrong with an open page in one theme at one width, in words."""
    show(page, width)
    if RULES[theme, width] is None:
        return too_wide(page, width)
    report = axe.run(page, options=AXE | RULES[theme, width]).response
    found = [f"axe {v['id']}: {node['html'][:160]}" for v in report["violations"] for node in v["nodes"][:3]]
    return found + too_wide(page, width)


def show(page, width):
    """Give the window a width, and its side bars the time to move."""
    if page.viewport_size != WIDTHS[width]:
        page.set_viewport_size(WIDTHS[width])
        page.wait_for_timeout(500)


def too_wide(page, width):
    """Return a complaint where the whole page must be scrolled sideways."""
    show(page, width)
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [f"{wide} px wider than the screen"] if wide > 0 else []


def unset_formulas(page):
    """Return complaints about formulas that MathJax did not set."""
    found = ["a formula that MathJax does not understand"] * page.locator("mjx-merror").count()
    if page.locator(".math").count() and not page.locator("mjx-container").count():
        found.append("formulas that are not set")
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_in_a_browser(book: Path, browser, theme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    axe, wrong = Axe(), []
    for path in pages(book):
        page, requests, complaints = visit(browser, path, theme)
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        found = complaints + unset_formulas(page)
        found += [f"asks for {url}" for url in requests if not url.startswith(("file:", "data:", "blob:"))]
        for width in WIDTHS:
            found += [f"{width}, {theme}: {fault}" for fault in faults(page, axe, theme=theme, width=width)]
        wrong += [f"{path.relative_to(book)}: {fault}" for fault in found]
        page.context.close()
    assert not wrong, "\n".join(wrong)


def test_search_finds_attention(book: Path, browser) -> None:
    page, *_ = visit(browser, book / "search.html")
    page.goto((book / "search.html").as_uri() + "?q=attention")
    page.locator("#search-results li").first.wait_for(timeout=10_000)
    assert page.locator("#search-results li").count() >= 3
    page.context.close()


def test_every_figure_has_words(book: Path) -> None:
    for path in pages(book):
        for alt in Images(path.read_text(encoding="utf-8")).alts:
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


def test_the_table_of_contents_lists_each_lesson(book: Path) -> None:
    root = Path(__file__).parents[1]
    folder = root / "notebooks"
    names = [path.relative_to(folder).with_suffix("").as_posix() for path in sorted(folder.rglob("*.ipynb"))]
    _, *parts = re.split(r"- caption: (.+)", (root / "_toc.yml").read_text(encoding="utf-8"))
    texts = zip(parts[::2], parts[1::2], strict=True)
    listed = {title: re.findall(r"file: notebooks/(\S+)", text) for title, text in texts}
    assert listed["Lessons"] == [name for name in names if "/" not in name]
    assert sorted(listed.get("Evidence", [])) == [name for name in names if "/" in name]
    assert sum(map(len, listed.values())) == len(names)
    assert all((book / "notebooks" / f"{name}.html").is_file() for name in names)


def test_every_claim_stands_on_the_ledger(book: Path) -> None:
    import yaml

    root = Path(__file__).parents[1]
    rows = yaml.safe_load((root / "book" / "claims.yml").read_text(encoding="utf-8"))
    page = (book / "book" / "claims.html").read_text(encoding="utf-8")
    assert [row["id"] for row in rows if f'id="ledger-{row["id"]}"' not in page] == []
