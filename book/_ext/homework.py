"""Which exercises a class begins with in a meeting, and which are left for home."""

import re
from math import ceil
from pathlib import Path

from course import EXERCISES
from ledger_data import cells_of

NUMBER = re.compile(r"^> \*\*Exercise (\d+\.\d) ", flags=re.M)
ON_PAPER = re.compile(r"^(\d)\. \*\*(?:Recall|Apply|Prove|Design)\.\*\*", flags=re.M)
BEGIN = re.compile(r"In class: begin Exercise (\d+\.\d)\.")
#: For exercises in a meeting with a lesson, at least and at most, in steps of five minutes.
AT_LEAST, AT_MOST, STEP = 10, 50, 5


def exercises_of(root, lesson, starts):
    """Return the exercises of a lesson, first the one with which a class begins.

    Some have numbers; those on paper may be a list, whose items have none.
    """
    text = "\n".join("".join(cell["source"]) for cell in cells_of(root, lesson["page"]))
    found = NUMBER.findall(text)
    found += [f"{int(lesson['number'])}.paper {n}" for n in ON_PAPER.findall(text)]
    return sorted(found, key=lambda number: (number != starts.get(lesson["slug"]), found.index(number)))


def starts_of(root):
    """Return with which exercise a class begins, by lesson, as the lecturer's notes say."""
    notes = Path(root, "book", "teach", "lessons").glob("*.md")
    return {path.stem: BEGIN.search(path.read_text(encoding="utf-8"))[1] for path in notes}


def share(rows):
    """Give each exercise its place: the meeting of its lesson, one to catch up, or home.

    What is caught up is not homework: the last exercises of the lessons since the last such meeting.
    """
    waiting = []
    for row in rows:
        row["here"], row["each"] = "", []
        if row["left"]:
            first = row["left"][0]
            count = max(1, len(first) * row["exercises"] // EXERCISES)
            row["here"], row["left"][0] = listed([first[:count]]), first[count:]
            own = [EXERCISES - row["exercises"] * (n == 0) for n in range(len(row["left"]))]
            row["each"] = [minutes / len(some) for minutes, some in zip(own, row["left"], strict=True)]
            waiting.append(row)
        elif row["lab"]:
            row["here"] = "of the lab"
        elif row["catch"]:
            row["here"], used = catch_up(waiting, row["exercises"])
            row["exercises"] = min(row["exercises"], ceil(used / STEP) * STEP)
            waiting = []
        row["slack"] = row.pop("free") - row["exercises"]
    for row in rows:
        row["home"] = round(
            sum(len(some) * each for some, each in zip(row["left"], row["each"], strict=True))
        )


def catch_up(rows, minutes):
    """Take exercises that were left to home, from the longest lists first; return them, and their minutes."""
    places = [(row, n) for row in rows for n in range(len(row["left"]))]
    taken, used = [[] for _ in places], 0
    while True:
        open_ones = [
            (len(row["left"][n]), -i)
            for i, (row, n) in enumerate(places)
            if row["left"][n] and used + row["each"][n] <= minutes
        ]
        if not open_ones:
            return listed(taken), used
        place = -max(open_ones)[1]
        row, n = places[place]
        taken[place].insert(0, row["left"][n].pop())
        used += row["each"][n]


def listed(lists):
    """Return the exercises of some lessons in words."""
    return "; ".join(filter(None, map(exercise_list, lists)))


def by_lesson(exercises):
    """Return exercises as a list for each lesson.

    >>> by_lesson(["12.3", "5.paper 1", "12.4"])
    [['5.paper 1'], ['12.3', '12.4']]
    """
    found = {}
    for each in exercises:
        found.setdefault(each.partition(".")[0], []).append(each)
    return [found[lesson] for lesson in sorted(found, key=int)]


def exercise_list(exercises):
    """Return exercises of a lesson in a few words, neighbors joined.

    >>> exercise_list(["18.2", "18.1", "18.3", "18.6"])
    '18.1–18.3, 18.6'
    """
    graded = sorted((each for each in exercises if "paper" not in each), key=lambda each: each.split(".")[1])
    paper = [each for each in exercises if "paper" in each]
    lesson = f"{paper[0].partition('.')[0]} " if paper and not graded else ""
    on_paper = join_neighbors([each.split("paper ")[1] for each in paper])
    parts = [join_neighbors(graded), f"{lesson}on paper\u00a0{on_paper}" if paper else ""]
    return ", ".join(filter(None, parts))


def join_neighbors(numbers):
    """Return numbers with neighbors joined: 2, 4–6."""
    groups = []
    for number in numbers:
        place = int(number.rpartition(".")[2])
        if groups and groups[-1][2] + 1 == place:
            groups[-1][1:] = [number, place]
        else:
            groups.append([number, number, place])
    return ", ".join(first if first == last else f"{first}–{last}" for first, last, _ in groups)
