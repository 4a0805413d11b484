"""Pages that depend on other files: words that a list of questions or bugs follows, and the notes."""

from pathlib import Path

from bugs import all_bugs
from mocks import all_mocks, all_tutorials
from notes import with_questions
from questions import all_questions

#: A page -> its folder -> what comes after its words, in Markdown.
MADE = {
    "book/teach/questions": all_questions,
    "book/teach/mock": all_mocks,
    "book/teach/tutorials": all_tutorials,
    "book/bugs": all_bugs,
}
#: The lecturer's notes, into which the lessons' questions are put.
NOTES = "book/teach/notes"


def add(app, docname, source):
    """Add it to the page before it is parsed."""
    if docname == NOTES:
        source[0] = with_questions(app.srcdir, source[0])
    if docname in MADE:
        source[0] = f"{source[0]}\n\n{MADE[docname](Path(app.srcdir, docname).parent)}"


def note_files(app, env, docnames):
    """Read the pages again in each build: what they list is in other files."""
    docnames += sorted({*MADE, NOTES} & env.found_docs - {*docnames})


def setup(app):
    """Register the extension."""
    app.connect("source-read", add)
    app.connect("env-before-read-docs", note_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
