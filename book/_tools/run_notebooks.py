"""Run lessons and evidence in a fresh kernel, store outputs and cost, fold what plots or assembles."""

import math
import os
import re
import sys
import time
from pathlib import Path

import nbformat
import psutil
from folding import fold
from nbclient import NotebookClient

from exformer_lessons.notebook import find, key_of

METADATA = {
    "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
    "language_info": {"name": "python"},
}
#: As in the Makefile: the same vector instructions and one thread everywhere, so that digits agree.
PINNED = {"ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "1"}


def cost(pid):
    """Return what a process has needed so far, or nothing where the system does not tell it (not Linux).

    Returns:
        Seconds of a processor, to five, and the peak of memory in gigabytes, to a tenth; both rounded up, so
        that another run seldom changes them.
    """
    status = Path("/proc", str(pid), "status")
    if not status.is_file():
        return {}
    kilobytes = int(re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), flags=re.M)[1])
    seconds = sum(psutil.Process(pid).cpu_times()[:4])  # with its children
    return {"seconds": 5 * math.ceil(seconds / 5), "gigabytes": math.ceil(kilobytes * 1024 / 1e8) / 10}


def run(path):
    """Execute one notebook; raise if a cell fails or writes to stderr."""
    notebook = nbformat.read(path, as_version=4)
    needed = notebook.metadata.get("cost", {})
    resources = {"metadata": {"path": str(path.parent)}}
    options = {"timeout": 300, "kernel_name": "python3", "record_timing": False, "coalesce_streams": True}
    options["on_cell_executed"] = lambda **_: needed.update(cost(client.km.provisioner.pid))
    client = NotebookClient(notebook, resources=resources, **options)
    client.execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                raise SystemExit(
                    f"{path.name} writes to stderr:\n{output['text']}\nin the cell\n{cell.source}"
                )
    fold(notebook.cells)
    notebook.metadata = METADATA | ({"cost": needed} if needed else {})
    nbformat.write(notebook, path)


def main(names):
    """Run the named lessons with their evidence, or all; a lab only by its name, such as labs/island."""
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
