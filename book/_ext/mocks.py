"""The page of public exams: below its words, each exam with its marking scheme folded under each question."""

from exformer_lessons.teacher.mock import mocks, read_mock
from exformer_lessons.teacher.questions import asked
from exformer_lessons.teacher.sheets import MARKING

#: How names of sheets for tutorials begin.
TUTORIAL = "tutorial_"


def all_mocks(folder):
    """Return how they are marked, and the exams and tests; a number that its code does not give is an error.

    Args:
        folder: ``book/teach``.
    """
    exams = [one_mock(read_mock(folder, key)) for key in mocks(folder) if TUTORIAL not in key]
    return "\n\n".join([MARKING, *exams])


def all_tutorials(folder):
    """Return the sheets for tutorials, in the order of their lessons.

    Args:
        folder: ``book/teach``.
    """
    sheets = [read_mock(folder, key) for key in mocks(folder) if TUTORIAL in key]
    return "\n\n".join(map(one_mock, sorted(sheets, key=lambda sheet: sheet.title)))


def one_mock(exam):
    """Return an exam: on paper a page of its own, whose schemes stay folded."""
    head = f"(mock-{exam.key.replace('_', '-')})=\n## {exam.title}\n\n"
    head += f"`{exam.key}`: {exam.minutes} minutes, {exam.points} points. {exam.rules} {exam.spared}".rstrip()
    if exam.grades:
        head += f" Grades, as a proposal: {exam.said}."
    parts = ['<div class="new-page"></div>', head]
    for number, task in enumerate(exam.tasks, 1):
        parts.append(asked(number, task.question, plain=True))
        parts.append(f"<details>\n<summary>Marking scheme</summary>\n\n{task.scheme}\n\n</details>")
    return "\n\n".join(parts)
