"""The page of questions for teachers: below its words, what exams ask and the questions of each lesson."""

from pathlib import Path

from exformer_lessons.teacher.exams import read_exams
from exformer_lessons.teacher.questions import lessons_with_questions, read_questions, sheet, titles

PAGE = "book/teach/questions"


def all_questions(folder):
    """Return exams and questions in Markdown.

    Args:
        folder: ``book/teach``.
    """
    title, parts = titles(folder), []
    for exam in read_exams(folder):
        names = [f": `{name}`" for name in exam.questions] or [f", {title[of]}" for of, _, _ in exam.asks]
        head = f"## Exam {exam.key}: {exam.title}\n\n{exam.minutes} minutes, {exam.points} points."
        head += " Public." if exam.questions else " Sealed, with numbers that `--seed` changes."
        rows = [
            f"1. {kind}, {points} points{name}"
            for (_, kind, points), name in zip(exam.asks, names, strict=True)
        ]
        parts.append("\n".join([f"{head}\n", *rows]))
    for lesson in lessons_with_questions(folder):
        parts.append(f"## {title[lesson]}\n\n{sheet(read_questions(folder, lesson))}")
    return "\n\n".join(parts)


def add_questions(app, docname, source):
    """Add them to the page before it is parsed."""
    if docname == PAGE:
        source[0] = f"{source[0]}\n\n{all_questions(Path(app.srcdir, PAGE).parent)}"


def note_files(app, env, docnames):
    """Read the page again in each build: its questions are in other files."""
    docnames += [PAGE] * (PAGE in env.found_docs and PAGE not in docnames)


def setup(app):
    """Register the extension."""
    app.connect("source-read", add_questions)
    app.connect("env-before-read-docs", note_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
