"""A standard error that survives a broken pipe, so that a long run does."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO


class LastingStream:
    """A stream of text that drops what can't be written.

    A training of hours does not end because a pager was closed, a log collector died or a disk is full.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        try:
            return self._stream.write(text)
        except (OSError, ValueError):  # ValueError: it is closed
            return len(text)

    def flush(self) -> None:
        """Write what is in the buffer, or drop it."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def lasting_stderr() -> Iterator[None]:
    """Let nothing that is written to the standard error end the run."""
    before = sys.stderr
    sys.stderr = LastingStream(before)  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.stderr = before
