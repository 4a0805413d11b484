"""Run lessons and evidence in a fresh kernel, store their outputs, fold what plots or assembles."""

import os
import sys
import time

import nbformat
from folding import fold
from nbclient import NotebookClient

from exformer_lessons.notebook import find, key_of

METADATA = {
    "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
    "language_info": {"name": "python"},
}
#: As in the Makefile: the same vector instructions and one thread everywhere, so that digits agree.
PINNED = {"ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "1"}


def run(path):
    """Execute one notebook; raise if a cell fails or writes to stderr."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    options = {"timeout": 300, "kernel_name": "python3", "record_timing": False, "coalesce_streams": True}
    client = NotebookClient(notebook, resources=resources, **options)
    client.execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                raise SystemExit(
                    f"{path.name} writes to stderr:\n{output['text']}\nin the cell\n{cell.source}"
                )
    fold(notebook.cells)
    notebook.metadata = METADATA
    nbformat.write(notebook, path)


def main(names):
    """Run the named lessons with their evidence, or all."""
    os.environ.update(PINNED)
    try:
        paths = find(names)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    for path in paths:
        started = time.perf_counter()
        run(path)
        print(f"{key_of(path)}  {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
