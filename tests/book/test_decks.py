"""What `make figures` writes: each figure of a lesson on a slide of its own, and as a file."""

import json
import re
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_tools"))

import decks  # noqa: E402

LESSONS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write the decks of all lessons; return their folder."""
    folder = tmp_path_factory.mktemp("figures")
    decks.main([], folder)
    return folder


def shown(path):
    """Return how many SVGs the outputs of a notebook hold."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return sum("image/svg+xml" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("path", LESSONS, ids=[path.stem for path in LESSONS])
def test_a_deck_has_a_slide_for_each_figure(written: Path, path: Path) -> None:
    page = (written / f"{path.stem}.html").read_text(encoding="utf-8")
    assert page.count("<section>") == shown(path) + 1  # and one with the title
    files = sorted((written / path.stem).glob("*.svg"))
    assert len(files) == shown(path)
    for file in files:
        assert ElementTree.parse(file).getroot().tag.endswith("svg")
    assert not re.search(r"(?:src|href)=[\"'](?!#|data:)", page)  # needs nothing else
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_a_slide_says_what_its_figure_shows() -> None:
    svg = ["<?xml version='1.0'?>\n", '<svg width="9"><g id="a" color="#767676"/></svg>']
    told = {"figure": {"name": "one", "caption": "*Two* <b> bars."}, "image": {"alt": 'Bars "here"'}}
    cell = {"metadata": {"mystnb": told}, "outputs": [{"data": {"image/svg+xml": svg}}, {"text": "no"}]}
    (figure,) = decks.figures([{"metadata": {}, "source": "# A"}, cell])
    assert (figure.name, figure.svg) == ("one", svg[1])
    page = decks.deck("One & two", [figure])
    assert "<p><em>Two</em> &lt;b&gt; bars.</p>" in page
    assert 'aria-label="Bars &quot;here&quot;"' in page
    assert 'id="s0-a" color="currentColor"' in page
    assert "<h1>One &amp; two</h1>" in page


def test_the_page_for_teachers_offers_what_make_writes(book: Path, written: Path) -> None:
    page = (book / "book" / "teach.html").read_text(encoding="utf-8")
    offered = re.findall(r'<a href="([^"]+)" download', page)
    assert [Path(each).name for each in offered] == ["figures.zip", "notebooks.zip"]
    decks_in, notebooks_in = (zipfile.ZipFile(book / "book" / each).namelist() for each in offered)
    ours = {f"figures/{path.relative_to(written)}" for path in written.rglob("*.*")}
    assert {name for name in decks_in if not name.endswith("/")} == ours
    given = {
        f"notebooks/{path.relative_to(ROOT / 'notebooks')}" for path in (ROOT / "notebooks").rglob("*.ipynb")
    }
    assert {name for name in notebooks_in if not name.endswith("/")} == given
