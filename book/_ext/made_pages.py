"""Pages that depend on other files: words that exams or bugs follow, and pages for teachers of lessons."""

from pathlib import Path

from bugs import all_bugs
from mocks import all_mocks
from notes import FOLDER, lesson_page

#: A page -> its folder -> what comes after its words, in Markdown.
MADE = {"book/teach/mock": all_mocks, "book/bugs": all_bugs}


def add(app, docname, source):
    """Add it to the page before it is parsed."""
    folder, _, name = docname.rpartition("/")
    if folder == FOLDER:
        source[0] = lesson_page(app.srcdir, name, source[0])
    if docname in MADE:
        source[0] = f"{source[0]}\n\n{MADE[docname](Path(app.srcdir, docname).parent)}"


def note_files(app, env, docnames):
    """Read the pages again in each build: what they list is in other files."""
    made = {name for name in env.found_docs if name in MADE or name.startswith(FOLDER)}
    docnames += sorted(made - {*docnames})


def setup(app):
    """Register the extension."""
    app.connect("source-read", add)
    app.connect("env-before-read-docs", note_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
