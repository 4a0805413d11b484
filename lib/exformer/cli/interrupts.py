"""Ctrl-C while modules are loaded."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_end_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process without a word, for as long as nothing can be lost.

    An exception in the midst of an import comes out as pages of traceback, or not at all.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
