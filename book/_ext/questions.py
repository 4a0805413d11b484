"""The pages of questions and of exams: each lesson's questions; what exams ask, and which plans they fit."""

import yaml
from course import parts, size

from exformer_lessons.teacher.exams import read_exams
from exformer_lessons.teacher.questions import lessons_with_questions, read_questions, sheet, titles

ASK = """## What they ask

Each cell is a question: its lesson, its points and its kind."""
MIX = "These consist of questions of the bank, by their names, or of other exams: `D/3` is question 3 of D."
FIT = """(which-plan)=
## Which exam fits which plan

A class leaves out the questions on lessons that [its plan](../teach.md) leaves out, here by their
numbers. `exformer-teacher exam F --key FILE --without 7,8` prints the others, with fewer points and minutes,
and the limits of the grades fall in proportion. A dash: half of the points or more would go."""


def all_questions(folder):
    """Return the questions of all lessons in Markdown.

    Args:
        folder: ``book/teach``.
    """
    title = titles(folder)
    return "\n\n".join(
        f"## {title[lesson]}\n\n{sheet(read_questions(folder, lesson))}"
        for lesson in lessons_with_questions(folder)
    )


def all_exams(folder):
    """Return in Markdown what is public about the exams.

    Args:
        folder: ``book/teach``.
    """
    title, exams = titles(folder), read_exams(folder)
    asked = table("Exam", {each.key: asks(each, title) for each in exams})
    mixed = "\n".join(f"- {each.key}: `{'`, `'.join(each.questions)}`" for each in exams if each.questions)
    return "\n\n".join(
        [ASK, asked, MIX, mixed, FIT, table("Plan", fits(folder, exams), [e.key for e in exams])]
    )


def asks(exam, title):
    """Return the number of the lesson, the points and the kind of each question."""
    return [f"{title[lesson].split()[0]},\u00a0{points} {kind}" for lesson, kind, points in exam.asks]


def fits(folder, exams):
    """Return, for plans that leave out the same questions, which these are in each exam."""
    same = {}
    for way in yaml.safe_load((folder.parent / "courses.yml").read_text(encoding="utf-8")):
        taught = {slug for words in way["meetings"] for _, slug in parts(words)}
        titled = same.setdefault(tuple(left_out(exam, taught) for exam in exams), {})
        titled.setdefault(way["title"], []).append(size(way))
    return {"; ".join(", ".join([one, *of]) for one, of in named.items()): row for row, named in same.items()}


def left_out(exam, taught):
    """Return the questions of an exam on lessons that were not taught, in words."""
    out = {n: points for n, (lesson, _, points) in enumerate(exam.asks, 1) if lesson not in taught}
    if 2 * sum(out.values()) >= exam.points:
        return "–"
    return f"not {', '.join(map(str, out))}" if out else "all"


def table(corner, rows, heads=None):
    """Return a table in Markdown; without heads its columns have numbers."""
    heads = heads or range(1, 1 + max(map(len, rows.values())))
    lines = [[corner, *heads], ["---"] * (1 + len(heads)), *([name, *row] for name, row in rows.items())]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
