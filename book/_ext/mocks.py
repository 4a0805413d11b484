"""Public exams on pages: each folded, its marking scheme folded under each question."""

from questions import folded

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
    exams = [on_page(read_mock(folder, key), fold=True) for key in mocks(folder) if TUTORIAL not in key]
    return "\n\n".join([MARKING, *exams])


def on_page(exam, *, fold=False):
    """Return an exam; one that is folded and has been opened begins a page of its own on paper."""
    told = f"{exam.minutes} minutes, {exam.points} points"
    words = f"`{exam.key}`: {told}. {exam.rules} {exam.spared}".rstrip()
    if exam.grades:
        words += f" Grades, as a proposal: {exam.said}."
    parts = [words]
    for number, task in enumerate(exam.tasks, 1):
        parts.append(asked(number, task.question, plain=True))
        parts.append(folded("Marking scheme", task.scheme))
    text = "\n\n".join(parts)
    if fold:
        text = folded(told, f'<div class="new-page"></div>\n\n{text}')
    return f"(mock-{exam.key.replace('_', '-')})=\n## {exam.title}\n\n{text}"
