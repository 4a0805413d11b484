"""Kernels for nbval that fork from a process in which torch is imported: 3 s less for each notebook.

Nothing of the book is imported before, so that a cell that forgets one of its imports still fails.
"""

import multiprocessing
import os
import sys
import threading
import time
from multiprocessing import resource_tracker
from pathlib import Path

#: What a kernel and a training import anyway. Not matplotlib, which asks at once where its figures go.
PRELOADED = ["ipykernel.kernelapp", "torch", "torch._dynamo"]


class ForkedKernel:
    """A forked process, with those parts of a ``Popen`` that jupyter_client uses."""

    stdin = stdout = stderr = None

    def __init__(self, process):
        self.process, self.pid = process, process.pid

    def poll(self):
        """Return the exit status, None while it runs."""
        return self.process.exitcode

    def wait(self):
        """Return the exit status when it has ended."""
        self.process.join()
        return self.process.exitcode

    def send_signal(self, number):
        """Send it a signal."""
        os.kill(self.pid, number)


def launch(command, *, env, cwd, **_):
    """Fork a kernel, in place of ``jupyter_client.launcher.launch_kernel``."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    process = context.Process(target=_run, args=(command[command.index("-f") :], dict(env), str(cwd)))
    process.start()
    while process.exitcode is None and os.getpgid(process.pid) != process.pid:
        time.sleep(0.005)  # or a signal to its group would reach the process from which it forks
    return ForkedKernel(process)


def _run(arguments, env, cwd):
    """Become a kernel, as ``python -m ipykernel_launcher`` does, in a group of its own."""
    os.setsid()
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    resource_tracker._resource_tracker.__init__()  # its own: it is killed, and leaves semaphores behind
    threading.Thread(target=_end_with_parent, daemon=True).start()
    tests = Path(__file__).parent
    ours = {tests, tests.with_name("book")}
    sys.path[:] = [each for each in sys.path if not ours & {Path(each), *Path(each).parents}]
    sys.argv = ["ipykernel_launcher", *arguments, f"--IPKernelApp.parent_handle={os.getppid()}"]
    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance()


def _end_with_parent():
    """End when the tests have ended, even if they were killed."""
    multiprocessing.parent_process().join()
    os._exit(1)
