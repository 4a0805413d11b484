"""The page of questions: those of each lesson, and which of them test which objective."""

import yaml

from exformer_lessons.teacher.exams import read_exams
from exformer_lessons.teacher.mock import mocks, read_mock
from exformer_lessons.teacher.questions import lessons_with_questions, read_questions, sheet, titles

TESTED = """## Which questions test which objective

The bank's by their numbers above, with the public exam that has them; then those of
[mock exams and tests](mock.md)."""


def all_questions(folder):
    """Return in Markdown the questions of all lessons, and last which of them test which objective.

    Args:
        folder: ``book/teach``.
    """
    title = titles(folder)
    heads = ["Bank", "Mock exams and tests"]
    parts = []
    for lesson in lessons_with_questions(folder):
        found = read_questions(folder, lesson)
        told = f"{len(found)} questions, {sum(each.minutes for each in found)} points"
        parts.append(f"## {title[lesson]}\n\n{folded(told, sheet(found))}")
    return "\n\n".join([*parts, TESTED, folded("All objectives", table("Objective", tested(folder), heads))])


def folded(summary, text):
    """Return Markdown that is folded below a summary."""
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def left_out(exam, taught):
    """Return the questions of an exam on lessons that were not taught, in words."""
    out = {n: points for n, (lesson, _, points) in enumerate(exam.asks, 1) if lesson not in taught}
    if 2 * sum(out.values()) >= exam.points:
        return "–"
    return f"not {', '.join(map(str, out))}" if out else "all"


def table(corner, rows, heads):
    """Return a table in Markdown."""
    lines = [[corner, *heads], ["---"] * (1 + len(heads)), *([name, *row] for name, row in rows.items())]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def tested(folder):
    """Return which questions test each objective: those of the bank, and of mock exams and tests."""
    able = {
        row["slug"]: row.get("able", [])
        for row in yaml.safe_load((folder.parent / "lessons.yml").read_text(encoding="utf-8"))
    }
    taken = {name: exam.key for exam in read_exams(folder) if exam.public for name in exam.questions}
    public = [
        (key, number, task.question)
        for key in mocks(folder)
        for number, task in enumerate(read_mock(folder, key).tasks, 1)
    ]
    found = {}
    for lesson, title in titles(folder).items():
        bank = read_questions(folder, lesson) if lesson in lessons_with_questions(folder) else []
        for which, words in enumerate(able[lesson], 1):
            here = [
                f"{number} ({taken[each.name]})" if each.name in taken else str(number)
                for number, each in enumerate(bank, 1)
                if each.objective == which
            ]
            there = [
                f"`{key}` {number}"
                for key, number, each in public
                if (each.lesson, each.objective) == (lesson, which)
            ]
            found[f"{title.split()[0]} {words}"] = [", ".join(here), ", ".join(there)]
    return found
