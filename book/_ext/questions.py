"""The pages of questions and of exams: each lesson's questions; what exams ask, and which plans they fit."""

import yaml
from course import parts, size

from exformer_lessons.teacher.exams import read_exams
from exformer_lessons.teacher.mock import mocks, read_mock
from exformer_lessons.teacher.questions import lessons_with_questions, read_questions, sheet, titles

EACH = "## What each exam asks"
ASK = """<details><summary>Each question: its lesson, its points and its kind</summary>"""
MIX = "These consist of questions of the bank, by their names, or of other exams: `D/3` is question 3 of D."
FIT = """(which-plan)=
## Which exam fits which plan

The lessons of a plan that its exam and the resit do not ask about:

{passed}

A class leaves out the questions on lessons that [its plan](../teach.md) leaves out.
`exformer-teacher exam F --key FILE --without 7,8` prints the others, with fewer points and minutes, and the
limits of the grades fall in proportion.

<details><summary>Which questions to leave out, plan by plan</summary>

Exams not named lose half of their points or more."""
TESTED = """<details><summary>Which questions test which objective</summary>

The bank's by their numbers below, with the exam that has them; then those of [mock exams and tests](mock.md).
Of a sealed exam only lessons are public."""
END = "</details>"


def all_questions(folder):
    """Return in Markdown which questions test which objective, folded, and the questions of all lessons.

    Args:
        folder: ``book/teach``.
    """
    title = titles(folder)
    heads = ["Bank", "Mock exams and tests"]
    parts = [TESTED, table("Objective", tested(folder), heads), END]
    for lesson in lessons_with_questions(folder):
        parts.append(f"## {title[lesson]}\n\n{sheet(read_questions(folder, lesson))}")
    return "\n\n".join(parts)


def all_exams(folder):
    """Return in Markdown what is public about the exams.

    Args:
        folder: ``book/teach``.
    """
    title, exams = titles(folder), read_exams(folder)
    heads = ["Lessons", "Points on 14 to 20", "Takes questions from"]
    about = table("Exam", {each.key: about_exam(each, title) for each in exams}, heads)
    asked = table("Exam", {each.key: asks(each, title) for each in exams})
    mixed = "\n".join(f"- {each.key}: `{'`, `'.join(each.questions)}`" for each in exams if each.questions)
    rows = {plan: shared(exams, told) for plan, told in fits(folder, exams).items()}
    plans = table("Plan", rows, ["All of", "Without"])
    fit = FIT.format(passed=table("Plan", passed_over(folder, exams, title), ["Exam", "Resit", "Neither"]))
    return "\n\n".join([EACH, about, fit, plans, END, ASK, asked, MIX, mixed, END])


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


def passed_over(folder, exams, title):
    """Return, for plans in which it is the same, which taught lessons exam and resit do not ask about."""
    asked = {exam.key: {lesson for lesson, *_ in exam.asks} for exam in exams}
    same = {}
    for way in yaml.safe_load((folder.parent / "courses.yml").read_text(encoding="utf-8")):
        taught = {slug for words in way["meetings"] for _, slug in parts(words)} & {*title}
        first, again = way["sealed"]
        without = [taught - asked[first], taught - asked[again], taught - asked[first] - asked[again]]
        told = [joined(sorted(int(title[slug].split()[0]) for slug in each)) or "–" for each in without]
        row = (f"{first}: {told[0]}", f"{again}: {told[1]}", told[2])
        same.setdefault(row, {}).setdefault(way["title"], []).append(size(way))
    return {"; ".join(", ".join([one, *of]) for one, of in named.items()): row for row, named in same.items()}


def shared(exams, told):
    """Return which exams a plan takes whole, and which without some questions."""
    found = [(exam.key, words.removeprefix("not ")) for exam, words in zip(exams, told, strict=True)]
    whole = [key for key, words in found if words == "all"]
    part = [f"{key}\u00a0{words}" for key, words in found if words not in ("all", "–")]
    return [", ".join(whole) or "–", "; ".join(part) or "–"]


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


def about_exam(exam, title):
    """Return the lessons of an exam, its points on those after the core, and where its questions are from."""
    asked = sorted({int(title[lesson].split()[0]) for lesson, *_ in exam.asks})
    late = sum(points for lesson, _, points in exam.asks if title[lesson].split()[0] > "13")
    others = {name.partition("/") for name in exam.questions}
    taken = sorted({first if number.isdigit() else "the bank" for first, _, number in others})
    return [joined(asked), late or "–", ", ".join(taken) or "–"]


def joined(numbers):
    """Return numbers of lessons in two digits, three or more neighbors joined.

    >>> joined([3, 4, 5, 7, 8])
    '03–05, 07, 08'
    """
    groups = []
    for number in numbers:
        if groups and groups[-1][-1] + 1 == number:
            groups[-1].append(number)
        else:
            groups.append([number])
    many = {first: f"{first:02}–{each[-1]:02}" for first, *each in groups if len(each) > 1}
    told = [many.get(each[0]) or ", ".join(f"{number:02}" for number in each) for each in groups]
    return ", ".join(told)


def tested(folder):
    """Return which questions test each objective: those of the bank, and of mock exams and tests."""
    able = {
        row["slug"]: row.get("able", [])
        for row in yaml.safe_load((folder.parent / "lessons.yml").read_text(encoding="utf-8"))
    }
    taken = {name: exam.key for exam in read_exams(folder) for name in exam.questions}
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
