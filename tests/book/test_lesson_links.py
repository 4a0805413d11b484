"""Mentions of lessons become links: which words, and on the built pages all of them."""

import re
from pathlib import Path

import pytest
from lesson_links import LIST, pieces

ROOT = Path(__file__).parents[2]
PAGES = {"03": "three", "07": "seven"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("as lesson 03 shows", [("as ", ""), ("lesson 03", "three"), (" shows", "")]),
        ("Lesson 07.", [("Lesson 07", "seven"), (".", "")]),
        ("(lesson\n07)", [("(", ""), ("lesson\n07", "seven"), (")", "")]),
        ("lessons 03\nand 07", [("lessons 03", "three"), ("\nand ", ""), ("07", "seven")]),
        (
            "(lessons 03 and 07)",
            [("(", ""), ("lessons 03", "three"), (" and ", ""), ("07", "seven"), (")", "")],
        ),
        ("lessons 05, 07", [("lessons 05, ", ""), ("07", "seven")]),
        ("lesson 05 is not written", [("lesson 05 is not written", "")]),
        ("lesson 03, 07 h", [("lesson 03", "three"), (", 07 h", "")]),
        ("lesson 030, a lesson 3", [("lesson 030, a lesson 3", "")]),
    ],
)
def test_pieces(text, wanted):
    assert pieces(text, PAGES) == wanted
    assert "".join(words for words, _ in pieces(text, PAGES)) == text


def test_every_mention_of_another_lesson_is_a_link(book: Path) -> None:
    written = {path.stem[:2]: path.stem for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")}
    count, plain = 0, []
    for page in (book / "notebooks").glob("*.html"):
        text = page.read_text(encoding="utf-8")
        for paragraph in re.findall(r"<p>(.*?)</p>", text, flags=re.S):
            linked = re.sub(r"<a\b.*?</a>", "", paragraph, flags=re.S)
            count += paragraph.count('class="doc"')
            for mention in LIST.findall(linked):
                numbers = set(re.findall(r"\d\d", mention)) - {page.stem[:2]}
                plain += [f"{page.stem}: {mention}" for number in numbers if number in written]
    assert count > 5
    assert not plain, plain
