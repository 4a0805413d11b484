"""Lines of the standard input, and mistakes in them by their number."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


def read_lines() -> Iterator[str]:
    """Yield the lines that come in, without their ends; spaces at the end of a line belong to it.

    Raises:
        ValueError: If the standard input is closed, or a line is no UTF-8.
    """
    if sys.stdin is None:
        raise ValueError("the standard input is closed")
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"line {number} of the standard input is not text in UTF-8: {error}") from error
        yield text.removesuffix("\n").removesuffix("\r")


@contextmanager
def naming_line(number: int) -> Iterator[None]:
    """Let the message of a ValueError begin with the number of the line."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from error
