"""nbval settings that have no switch on the command line (nbval 0.11)."""

import os

collect_ignore = ["conftest.py"]  # or --doctest-modules imports two modules of one name
# As when the outputs were stored: the same vector instructions and one thread, so that digits agree.
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A backend named for another program would keep every figure out of the cells' outputs.
os.environ.pop("MPLBACKEND", None)

try:
    from nbval.kernel import RunningKernel
except ImportError:  # the library's tests run without nbval
    RunningKernel = None


def _execute(self, cell_input, allow_stdin=None):
    # nbval passes store_history=False, so that IPython overlooks a trailing ";" (nbval issue 194).
    return self.kc.execute(cell_input, store_history=True, allow_stdin=allow_stdin, stop_on_error=False)


if RunningKernel is not None:
    RunningKernel.execute_cell_input = _execute


def pytest_collectstart(collector):
    """Compare everything but pictures and stderr; a test of the stored outputs refuses stderr anyway."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("stderr", "image/svg+xml")


def pytest_collection_modifyitems(items):
    """Wait longer for outputs than nbval's fixed 5 s (nbval issues 151 and 231)."""
    for item in items:
        if hasattr(item, "output_timeout"):
            item.output_timeout = 60
