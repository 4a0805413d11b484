"""nbval settings that have no switch on the command line (nbval 0.11), and the seconds of each notebook."""

import os
import sys
from collections import defaultdict
from unittest.mock import patch

from exformer_lessons.tolerances import forgive, read_tags

SECONDS = defaultdict(float)
collect_ignore = ["conftest.py"]  # or --doctest-modules imports two modules of one name
# As when the outputs were stored: the same vector instructions and one thread, so that digits agree.
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A backend named for another program would keep every figure out of the cells' outputs.
os.environ.pop("MPLBACKEND", None)

try:
    import nbval.kernel
    from jupyter_client.provisioning import local_provisioner
    from nbval.kernel import RunningKernel
    from nbval.plugin import IPyNbCell
except ImportError:  # the library's tests run without nbval
    RunningKernel = None
try:
    from forked_kernels import launch
except ImportError:  # a copy of this file, by itself
    launch = None


def _execute(self, cell_input, allow_stdin=None):
    # nbval passes store_history=False, so that IPython overlooks a trailing ";" (nbval issue 194).
    return self.kc.execute(cell_input, store_history=True, allow_stdin=allow_stdin, stop_on_error=False)


def _compare(self, test, ref, skip_compare=None):
    # Numbers as numbers, where a tag names a tolerance; all else exactly, as nbval does it.
    tolerances = read_tags(self.cell.metadata.get("tags", []))
    test, unused = forgive(test, ref, tolerances)
    if not _compare_exactly(self, test, ref, skip_compare):
        return False
    if unused:
        self.comparison_traceback = [f"no number asks for the tolerance of {', '.join(sorted(unused))}"]
    return not unused


def _start_forked(**how):
    with patch.object(local_provisioner, "launch_kernel", launch):
        return _start_new_kernel(**how)


if RunningKernel is not None:
    _start_new_kernel = nbval.kernel.start_new_kernel
    if launch is not None and sys.platform == "linux":
        nbval.kernel.start_new_kernel = _start_forked
    RunningKernel.execute_cell_input = _execute
    _compare_exactly, IPyNbCell.compare_outputs = IPyNbCell.compare_outputs, _compare


def pytest_collectstart(collector):
    """Compare everything but pictures and stderr; a test of the stored outputs refuses stderr anyway."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("stderr", "image/svg+xml")


def pytest_collection_modifyitems(items):
    """Wait longer for outputs than nbval's fixed 5 s (nbval issues 151 and 231)."""
    for item in items:
        if hasattr(item, "output_timeout"):
            item.output_timeout = 60


def pytest_runtest_logreport(report):
    """Add up the seconds of each notebook."""
    name = report.nodeid.split("::")[0]
    if name.endswith(".ipynb"):
        SECONDS[name] += report.duration


def pytest_terminal_summary(terminalreporter):
    """Say how long each notebook took."""
    if SECONDS:
        terminalreporter.section("seconds per notebook")
        for name, seconds in sorted(SECONDS.items()):
            terminalreporter.line(f"{seconds:8.1f}  {name}")
