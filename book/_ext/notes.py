"""A lesson's page for teachers: the notes of its lecture, the sheet of its tutorial, and its questions.

A line ``- Predict (b).`` or ``- Break it (b).`` of the notes has the right letter; the page names the part of
the lecture, the slide, and the right option. A line such as ``**Minutes.** Cabinet 5, factors 8 + a vote.``
becomes a table of the minutes at which each part begins.
"""

import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "_tools"))

import slides
import yaml
from course import VOTE
from ledger_data import cells_of, read_lessons
from mocks import TUTORIAL, on_page
from questions import bank

from exformer_lessons.teacher.mock import mocks, read_mock

#: Where the notes are, a file for each lesson.
FOLDER = "book/teach/lessons"
ASK = re.compile(r"^- (?:Predict|Break it) \((\w)\)\.", flags=re.M)
MINUTES = re.compile(r"^\*\*Minutes\.\*\* (.+?)\. In class: begin (Exercise \d+\.\d)\. ", flags=re.M)
PART = re.compile(r"(.+?) (\d+)(?: \+ (a|\d) votes?)?(?:, |$)")


def read_notes(root):
    """Return the lecturer's notes by lesson, in the order of the book."""
    paths = {row["slug"]: Path(root, FOLDER, f"{row['slug']}.md") for row in read_lessons(root)}
    return {slug: path.read_text(encoding="utf-8") for slug, path in paths.items() if path.is_file()}


def lesson_page(root, slug, text):
    """Return a page in Markdown, from its notes.

    Raises:
        ValueError: If notes ask other predictions than those of their lesson.
    """
    page = next(lesson["page"] for lesson in read_lessons(root) if lesson["slug"] == slug)
    name, teach = Path(page).name, Path(root, "book", "teach")
    deck = f"../../../_static/slides/{name}.html"
    lesson = f"../../../{page}.ipynb"
    links = f'[lesson]({lesson}), <a href="{deck}">slides</a>, '
    links += f'<a href="../../../_static/handouts/{name}.ipynb" download>handout</a>'
    title, _, notes = with_questions(root, slug, text, deck=deck, lesson=lesson).partition("\n\n")
    sheet = f"{TUTORIAL}{slug}"
    parts = [title, f"[Lesson by lesson](../notes.md): {links}", notes]
    if sheet in mocks(teach):
        parts += ['<div class="new-page"></div>', on_page(read_mock(teach, sheet))]
    return "\n\n".join([*parts, bank(teach, slug)])


def with_questions(root, slug, text, *, deck, lesson):
    """Return notes in which each vote has its slide, and the lecture a table; links lead to these files."""
    cells = cells_of(root, next(each["page"] for each in read_lessons(root) if each["slug"] == slug))
    chosen = yaml.safe_load(Path(root, "book", "slides", "slides.yml").read_text(encoding="utf-8"))
    boxes = [content for kind, content in slides.blocks(cells) if kind == "asked"]
    found = [(n, slides.Asked(each)) for n, each in enumerate(boxes, 1) if "(a)" in each]
    if len(ASK.findall(text)) != len(found):
        raise ValueError(f"notes on {slug}: expected {len(found)} predictions, got {len(ASK.findall(text))}")
    shown = [each.asked for each in slides.deck(cells, **chosen.get(slug, {}))]
    place = {n: f'<a href="{deck}#/{at}">slide {at + 1}</a>' for at, n in enumerate(shown) if n}
    places = [place.get(n, f"[the page]({lesson})") for n, _ in found]
    rows, end = timed(MINUTES.search(text)[1])
    parts = [part for _, part, votes in rows for _ in range(votes)]
    told = iter(zip(parts, places, found, strict=True))

    def ask(match):
        part, place, (_, asked) = next(told)
        right = slides.LINK.sub(r"\1", f"({match[1]}) {asked.options.get(match[1], '')}".strip())
        return f"- **{part}**, {place}: {right}."

    text = ASK.sub(ask, text)
    return MINUTES.sub(lambda match: _sheet(rows, end, match[2], iter(places)), text)


def timed(words):
    """Return (first minute, part, number of its votes) of each part of a lecture, and then its end.

    >>> timed("cabinet 5, factors 8 + 2 votes")
    ([(0, 'Cabinet', 0), (5, 'Factors', 2)], 19)
    """
    rows, now = [], 0
    for part, minutes, votes in PART.findall(words):
        count = int(votes.replace("a", "1") or 0)
        rows.append((now, part[:1].upper() + part[1:], count))
        now += int(minutes) + VOTE * count
    return rows, now


def _sheet(rows, end, in_class, places):
    """Return the table of a lecture, whose votes are at these places."""
    lines = [(now, part, ", ".join(next(places) for _ in range(count))) for now, part, count in rows]
    lines = [("From minute", "Part", "Vote"), ("---",) * 3, *lines, (end, in_class, "")]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n\n"
