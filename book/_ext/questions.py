"""The page of questions: below its words, what the public exams ask, and the questions of each lesson."""

from exformer_lessons.teacher.exams import read_exams
from exformer_lessons.teacher.questions import lessons_with_questions, read_questions, sheet, titles


def all_questions(folder):
    """Return exams and questions in Markdown.

    Args:
        folder: ``book/teach``.
    """
    title, parts = titles(folder), []
    for exam in read_exams(folder):
        head = f"## Exam {exam.key}: {exam.title}\n\n{exam.minutes} minutes, {exam.points} points."
        head += " Public." if exam.public else " Sealed, with numbers that `--seed` changes."
        if exam.questions and not exam.public:
            head += " `D/3` is question 3 of exam D."
        rows = [
            f"1. {kind}, {points} points: `{name}`"
            for (_, kind, points), name in zip(exam.asks, exam.questions, strict=False)
        ]
        parts.append("\n".join([f"{head}\n", *rows]))
    for lesson in lessons_with_questions(folder):
        parts.append(f"## {title[lesson]}\n\n{sheet(read_questions(folder, lesson))}")
    return "\n\n".join(parts)
