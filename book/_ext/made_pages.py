"""Pages whose words are followed by what files list: questions, exams, public exams, bugs of others."""

from pathlib import Path

from bugs import all_bugs
from mocks import all_mocks, all_tutorials
from questions import all_exams, all_questions

#: A page -> its folder -> what comes after its words, in Markdown.
MADE = {
    "book/teach/questions": all_questions,
    "book/teach/exams": all_exams,
    "book/teach/mock": all_mocks,
    "book/teach/tutorials": all_tutorials,
    "book/bugs": all_bugs,
}


def add(app, docname, source):
    """Add it to the page before it is parsed."""
    if docname in MADE:
        source[0] = f"{source[0]}\n\n{MADE[docname](Path(app.srcdir, docname).parent)}"


def note_files(app, env, docnames):
    """Read the pages again in each build: what they list is in other files."""
    docnames += sorted(MADE.keys() & env.found_docs - {*docnames})


def setup(app):
    """Register the extension."""
    app.connect("source-read", add)
    app.connect("env-before-read-docs", note_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
