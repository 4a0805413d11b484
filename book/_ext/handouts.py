"""What is handed out: slides and archives in the book's ``_static``.

The archives hold what ``make student``, ``make slides``, ``make moodle`` and ``make canvas`` write.
"""

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "_tools"))

import canvas
import moodle
import slides
import student

WRITERS = {
    "notebooks": student.main,
    "slides": slides.main,
    "moodle": moodle.main,
    "canvas": canvas.main,
}


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


def setup(app):
    """Register the writer."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
