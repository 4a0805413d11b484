"""The archives of *Teach with this book*: ``notebooks.zip`` and ``figures.zip`` in the book's ``_static``.

They hold what ``make student`` and ``make figures`` write.
"""

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "_tools"))

import decks
import student

WRITERS = {"notebooks": student.main, "figures": decks.main}


def write(app, exception):
    """Write the archives beside the pages of a book that was built."""
    if exception is not None or app.builder.format != "html":
        return
    for name, writer in WRITERS.items():
        with tempfile.TemporaryDirectory() as folder:
            writer([], Path(folder, name))
            shutil.make_archive(str(Path(app.outdir, "_static", name)), "zip", folder, name)


def setup(app):
    """Register the writer."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
