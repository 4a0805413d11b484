"""Every link inside the book leads somewhere: to a page that exists, to an anchor that exists."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from lxml.html import document_fromstring


class Page:
    """The ids and the links of one page."""

    def __init__(self, path):
        tags = [tag.attrib for tag in document_fromstring(path.read_bytes()).iter("*")]
        self.ids = {tag[key] for tag in tags for key in ("id", "name") if tag.get(key)}
        # A link such as #lecture=B chooses rows of the ledger.
        chosen = ("lecture", "verdict")
        self.ids |= {f"{key}={tag[f'data-{key}']}" for tag in tags for key in chosen if f"data-{key}" in tag}
        self.links = [tag[key] for tag in tags for key in ("href", "src") if tag.get(key)]


def broken(root):
    """Return (number of links, list of those that lead nowhere)."""
    pages = {path.resolve(): Page(path) for path in root.rglob("*.html") if "_static" not in path.parts}
    count, bad = 0, []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                bad.append(f"{path.relative_to(root.resolve())}: {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                bad.append(f"{path.relative_to(root.resolve())}: {link} (no such id)")
    return count, sorted(set(bad))


def test_internal_links(book: Path) -> None:
    count, bad = broken(book)
    assert count > 100
    assert not bad, "\n".join(bad)


def test_a_dead_link_and_a_dead_anchor_are_found(tmp_path: Path) -> None:
    text = '<h1 id="here"></h1><a href="#here"></a><a href="#gone"></a><a href="gone.html"></a>'
    text += '<li data-lecture="B"></li><a href="#lecture=B"></a><a href="#lecture=X"></a>'
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    dead = [f"page.html: {link} (no such id)" for link in ("#gone", "#lecture=X")]
    assert broken(tmp_path) == (5, [*dead, "page.html: gone.html"])
