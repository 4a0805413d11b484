"""The glossary: what readers search for leads to it, and each entry to a lesson that uses it."""

import html
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
#: How an entry ends. Words to look for are those of a lesson that does not use the term itself.
END = re.compile(
    r"Lesson (?P<lesson>\d\d)(?:; look for \*(?P<words>[^*]+)\*)?\."
    r"|See \{term\}`(?P<entry>[^`]+)`\.|See \{doc\}`(?P<page>\w+)`\."
)


def plain(text):
    """Return a text in small letters, without marks, all dashes and line breaks as spaces."""
    return re.sub(r"[\s\-–]+", " ", re.sub(r"[*_`$]|(?<=\])\([^()\s]*\)", "", text)).lower()


def glossary(text):
    """Return {term: (all terms of its entry, its last line)}."""
    body = text.split("```{glossary}\n")[1].split("\n```")[0]
    found = {}
    for entry in body.split("\n\n"):
        lines = entry.splitlines()
        terms = [line for line in lines if not line.startswith(" ")]
        found |= dict.fromkeys(terms, (terms, lines[-1].strip()))
    return found


def prose(path):
    """Return the words of a lesson or of a page, plain."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return plain(text)


def uses(text, term):
    """Tell whether a plain text has a term, or its plural."""
    stem, y = re.fullmatch(r"(.*?)(y?)", plain(term)).groups()
    return re.search(rf"(?<!\w){re.escape(stem)}{'(?:y|ies)' if y else '(?:e?s)?'}(?!\w)", text) is not None


def fault(term, entries, texts):
    """Return what is wrong with where the entry of a term leads, or an empty text.

    Args:
        term: One of its terms.
        entries: What `glossary` returns.
        texts: The plain words of lessons and pages, {lesson's number or page's name: words}.
    """
    terms, last = entries[term]
    end = END.fullmatch(last)
    if end is None:
        return f"{term}: the last line names no lesson, entry or page: {last}"
    if end["entry"]:
        other = END.fullmatch(entries[end["entry"]][1])
        return "" if other and not other["entry"] else f"{term}: {end['entry']} leads to no lesson or page"
    text = texts.get(end["lesson"] or end["page"], "")
    named = any(uses(text, each) for each in terms)
    if end["words"] and (named or not uses(text, end["words"])):
        return f"{term}: lesson {end['lesson']} {'uses the term' if named else 'lacks these words'}: {last}"
    return "" if end["words"] or named else f"{term}: it is not in the text: {last}"


GLOSSARY = glossary(TEXT)
TEXTS = {path.stem[:2]: prose(path) for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")}
TEXTS |= {path.stem: prose(path) for path in (ROOT / "book").glob("*.md")}


@pytest.mark.parametrize("term", dict.fromkeys(terms[0] for terms, _ in GLOSSARY.values()))
def test_an_entry_leads_to_a_lesson_that_uses_the_term(term: str) -> None:
    assert fault(term, GLOSSARY, TEXTS) == ""


@pytest.mark.parametrize(
    ("last", "wrong"),
    [
        ("Lesson 01.", ""),
        ("Lesson 02.", "it is not in the text"),
        ("Lesson 10.", "it is not in the text"),
        ("Lesson 02; look for *shortcut*.", ""),
        ("Lesson 02; look for *jump*.", "lacks these words"),
        ("Lesson 01; look for *shortcut*.", "uses the term"),
        ("See {term}`good`.", ""),
        ("See {term}`poor`.", "leads to no lesson"),
        ("See {doc}`page`.", ""),
        ("It is good.", "names no lesson"),
    ],
)
def test_an_entry_that_leads_nowhere_is_found(last: str, wrong: str) -> None:
    body = (
        f"skip connection\nresidual connection\n  A sum.\n  {last}\n\ngood\n  G.\n  Lesson 01.\n\npoor\n  P."
    )
    entries = glossary(f"```{{glossary}}\n{body}\n```")
    texts = {
        "01": plain("a *residual\nconnection*, a shortcut"),
        "02": plain("shortcut [x](residual-connection)"),
    }
    texts["page"] = "skip connections, frequencies"
    found = fault("residual connection", entries, texts)
    assert (wrong in found) if wrong else found == ""
    assert uses(texts["page"], "frequency")
    assert not uses(texts["page"], "frequenc")


def test_the_entries_are_in_order() -> None:
    first = list(dict.fromkeys(terms[0] for terms, _ in GLOSSARY.values()))
    assert first == sorted(first, key=lambda term: re.sub(r"\W", "", term.lower()))


def test_what_readers_search_for_begins_an_entry_of_the_index(book: Path) -> None:
    lines = (ROOT / "tests" / "book" / "searched_terms.txt").read_text(encoding="utf-8").splitlines()
    searched = [line for line in lines if not line.startswith("#")]
    page = (book / "genindex.html").read_text(encoding="utf-8")
    links = re.findall(r'<a href="book/glossary\.html#term-[^"]*">(?:<strong>)?(.*?)<', page)
    entries = [plain(html.unescape(words)) for words in links]
    starts = [re.compile(rf"{re.escape(plain(term))}(?!\w)") for term in searched]
    missing = [
        term for term, start in zip(searched, starts, strict=True) if not any(map(start.match, entries))
    ]
    assert not missing, f"book/glossary.md has no entry and no second name for {missing}"
    assert 'href="../genindex.html"' in (book / "book" / "glossary.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "anchor"),
    [("skip connection", "skip-connection"), ("BPTT", "BPTT"), ("nucleus sampling", "nucleus-sampling")],
)
def test_the_search_finds_a_second_name(book: Path, browser, words: str, anchor: str) -> None:
    from page_checks import visit

    page, _ = visit(browser, book / "search.html")
    page.goto((book / "search.html").as_uri() + f"?q={words}")
    page.locator(f'#search-results a[href*="book/glossary.html#term-{anchor}"]').wait_for(timeout=10_000)
    page.context.close()
