"""The page of public exams: below its words, each exam with its marking scheme folded under each question."""

from exformer_lessons.teacher.mock import mocks, read_mock
from exformer_lessons.teacher.questions import asked


def all_mocks(folder):
    """Return the exams in Markdown; a number that its code does not give is an error.

    Args:
        folder: ``book/teach``.
    """
    return "\n\n".join(one_mock(read_mock(folder, key)) for key in mocks(folder))


def one_mock(exam):
    """Return an exam: on paper a page of its own, whose schemes stay folded."""
    head = f"(mock-{exam.key.replace('_', '-')})=\n## {exam.title}\n\n"
    head += f"`{exam.key}`: {exam.minutes} minutes, {exam.points} points. {exam.rules}"
    if exam.grades:
        head += f" Grades, as a proposal: {exam.said}."
    parts = ['<div class="new-page"></div>', head]
    for number, task in enumerate(exam.tasks, 1):
        parts.append(asked(number, task.question, plain=True))
        parts.append(f"<details>\n<summary>Marking scheme</summary>\n\n{task.scheme}\n\n</details>")
    return "\n\n".join(parts)
