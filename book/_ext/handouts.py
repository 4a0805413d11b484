"""What is handed out: slides and archives in the book's ``_static``, and how long an installation takes.

The archives hold what ``make student``, ``make slides`` and ``make moodle`` write. Directive
``{rehearsal}`` is a table of what ``make rehearsal`` measured.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "_tools"))

import moodle
import slides
import student
from sphinx.util.docutils import SphinxDirective

WRITERS = {"notebooks": student.main, "slides": slides.main, "moodle": moodle.main}


def write(app, exception):
    """Write slides, notebooks for students and archives beside the pages of a book that was built."""
    if exception is not None or app.builder.format != "html":
        return
    slides.main([], Path(app.outdir, "_static", "slides"), mathjax="../mathjax/tex-svg.js")
    student.main([], Path(app.outdir, "_static", "handouts"))
    for name, writer in WRITERS.items():
        with tempfile.TemporaryDirectory() as folder:
            writer([], Path(folder, name))
            shutil.make_archive(str(Path(app.outdir, "_static", name)), "zip", folder, name)


class Rehearsal(SphinxDirective):
    """The commands of a rehearsal with their seconds, and what has not been run."""

    def run(self):
        """Write the table."""
        found = json.loads(Path(self.env.srcdir, "book", "rehearsal.json").read_text(encoding="utf-8"))
        rows = [
            f"| {found['system']} | `lessons.py {each['words']}` | {each['seconds']} s |"
            for each in found["steps"]
        ]
        rows += [f"| {name} | | *not yet run* |" for name in found["not_yet_run"]]
        head = "| Where | Command | Time, without the download |\n|---|---|---|\n"
        return self.parse_text_to_nodes(head + "\n".join(rows))


def setup(app):
    """Register the writer and the directive."""
    app.add_directive("rehearsal", Rehearsal)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
