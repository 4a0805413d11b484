"""The page of questions: its words, what exams ask, which plans they fit, and each lesson's questions."""

import yaml
from course import parts as parts_of

from exformer_lessons.teacher.exams import read_exams
from exformer_lessons.teacher.questions import lessons_with_questions, read_questions, sheet, titles

ASK = """## What the exams ask

Each cell is a question: its lesson, its points and its kind. A and B are public. The others are sealed, and
`--seed` changes the numbers of their *apply* questions."""
FIT = """## Which exam fits which plan

A class leaves out the questions on lessons that [its plan](../teach.md) leaves out, here by their
numbers, and the limits of the grades fall in proportion. A dash: half of the points or more would go."""


def all_questions(folder):
    """Return exams and questions in Markdown.

    Args:
        folder: ``book/teach``.
    """
    title, exams = titles(folder), read_exams(folder)
    parts = [ASK, table("Exam", {each.key: asks(each, title) for each in exams})]
    parts.append("These exams are put together, and `D/3` is question 3 of exam D.")
    mixed = {each.key: each.questions for each in exams if not each.public and each.questions}
    parts.append("\n".join(f"- {key}: `{'`, `'.join(names)}`" for key, names in mixed.items()))
    parts.append(FIT)
    parts.append(table("Plan", fits(folder, exams), [each.key for each in exams]))
    for exam in exams:
        if exam.public:
            rows = [f"1. `{name}`" for name in exam.questions]
            parts.append("\n".join([f"## Exam {exam.key}: {exam.title}\n", *rows]))
    for lesson in lessons_with_questions(folder):
        parts.append(f"## {title[lesson]}\n\n{sheet(read_questions(folder, lesson))}")
    return "\n\n".join(parts)


def asks(exam, title):
    """Return the number of the lesson, the points and the kind of each question."""
    return [f"{title[lesson].split()[0]},\u00a0{points} {kind}" for lesson, kind, points in exam.asks]


def fits(folder, exams):
    """Return, for plans that leave out the same questions, which these are in each exam."""
    same = {}
    for way in yaml.safe_load((folder.parent / "courses.yml").read_text(encoding="utf-8")):
        taught = {slug for words in way["meetings"] for _, slug in parts_of(words)}
        if not way.get("flipped"):
            titled = same.setdefault(tuple(left_out(exam, taught) for exam in exams), {})
            sizes = titled.setdefault(way["title"], [])
            sizes += [f"{len(way['meetings'])}\u00a0×\u00a0{way['meeting']}"] * way.get("weekly", False)
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
