"""The lecturer's notes: each prediction to ask stands there with its words and its slide, from the lesson.

In the source a line begins ``- Predict (b).`` or ``- Break it (b).``, with the right letter. A line such as
``**Minutes.** Cabinet 5, factors 8 + a vote.`` becomes a table of the minutes at which each part begins.
"""

import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "_tools"))

import slides
import yaml
from course import VOTE
from ledger_data import cells_of, read_lessons

SECTION = re.compile(r"^\(notes-(\w+)\)=$", flags=re.M)
ASK = re.compile(r"^- (?:Predict|Break it) \((\w)\)\.", flags=re.M)
MINUTES = re.compile(r"^\*\*Minutes\.\*\* (.+?)\. (?=In class: begin (Exercise \d+\.\d)\.)", flags=re.M)
PART = re.compile(r"(.+?) (\d+)(?: \+ (a|\d) votes?)?(?:, |$)")


def with_questions(root, text):
    """Return the notes in Markdown, with the question and the slide of each prediction.

    Raises:
        ValueError: If notes ask other predictions than those of their lesson.
    """
    pages = {lesson["slug"]: lesson["page"] for lesson in read_lessons(root)}
    chosen = yaml.safe_load(Path(root, "book", "slides", "slides.yml").read_text(encoding="utf-8"))
    head, *parts = SECTION.split(text)
    for slug, part in zip(parts[::2], parts[1::2], strict=True):
        cells = cells_of(root, pages[slug])
        boxes = [content for kind, content in slides.blocks(cells) if kind == "asked"]
        found = [(n, slides.Asked(each)) for n, each in enumerate(boxes, 1) if "(a)" in each]
        deck = slides.deck(cells, **chosen.get(slug, {}))
        places = {each.asked: number for number, each in enumerate(deck, 1) if each.asked}
        if len(ASK.findall(part)) != len(found):
            raise ValueError(
                f"notes on {slug}: expected {len(found)} predictions, got {len(ASK.findall(part))}"
            )
        told = iter(_told(each, places.get(n)) for n, each in found)
        part = ASK.sub(lambda match, told=told: f"{next(told)} **It is ({match[1]}).**", part)
        part = MINUTES.sub(_sheet([_place(places.get(n)) for n, _ in found]), part)
        head += f"(notes-{slug})={part}"
    return head


def _told(asked, number):
    return f"- **{asked.name}**, {_place(number)}: {asked.words}"


def _place(number):
    return f"slide {number}" if number else "on the page"


def timed(words):
    """Return (first minute, part, number of its votes) of each part of a lecture, and then its end.

    >>> timed("cabinet 5, factors 8 + 2 votes")
    ([(0, 'cabinet', 0), (5, 'factors', 2)], 19)
    """
    rows, now = [], 0
    for part, minutes, votes in PART.findall(words):
        count = int(votes.replace("a", "1") or 0)
        rows.append((now, part, count))
        now += int(minutes) + VOTE * count
    return rows, now


def _sheet(places):
    """Return what writes the table of a lecture, whose votes are on these slides."""

    def table(match):
        (rows, end), left = timed(match[1]), iter(places)
        lines = [(now, part, ", ".join(next(left) for _ in range(count))) for now, part, count in rows]
        lines = [("From minute", "Part", "Vote"), ("---",) * 3, *lines, (end, match[2], "")]
        return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n\n"

    return table
