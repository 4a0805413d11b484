"""The bank's questions on a lesson, and which questions test which of its objectives."""

from functools import cache

import yaml

from exformer_lessons.teacher.exams import read_exams
from exformer_lessons.teacher.mock import mocks, read_mock
from exformer_lessons.teacher.questions import read_questions, sheet


def bank(folder, lesson):
    """Return in Markdown which questions test which objective of a lesson, and those of the bank, folded.

    Args:
        folder: ``book/teach``.
        lesson: Its slug.
    """
    found = read_questions(folder, lesson)
    told = f"{len(found)} questions, {sum(each.minutes for each in found)} points"
    tests = table("Objective", by_objective(folder, lesson), ["Bank", "With a public scheme"])
    return f"## Bank\n\n{tests}\n\n{folded(told, sheet(found))}"


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


def by_objective(folder, lesson):
    """Return which questions test each objective: those of the bank, and of mock exams and tests."""
    rows = yaml.safe_load((folder.parent / "lessons.yml").read_text(encoding="utf-8"))
    able = next(row["able"] for row in rows if row["slug"] == lesson)
    found = {}
    for which, words in enumerate(able, 1):
        here = [
            f"{number} ({taken(folder)[each.name]})" if each.name in taken(folder) else str(number)
            for number, each in enumerate(read_questions(folder, lesson), 1)
            if each.objective == which
        ]
        there = [
            f"sheet {number}" if key == f"tutorial_{lesson}" else f"`{key}` {number}"
            for key, number, each in public(folder)
            if (each.lesson, each.objective) == (lesson, which)
        ]
        found[words] = [", ".join(here), ", ".join(there)]
    return found


@cache
def taken(folder):
    """Return which public exam has a question of the bank."""
    return {name: exam.key for exam in read_exams(folder) if exam.public for name in exam.questions}


@cache
def public(folder):
    """Return the questions of mock exams, tests and tutorials, each with its place."""
    return [
        (key, number, task.question)
        for key in mocks(folder)
        for number, task in enumerate(read_mock(folder, key).tasks, 1)
    ]
