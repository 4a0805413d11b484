"""Lines of the standard input, mistakes in them by their number, and what a terminal may show."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from exformer.storage.text_files import decode_text

# The symbols of Unicode for control characters, "␛" for escape; the later ones, up to U+009F, have none.
_SYMBOLS = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"}
_SYMBOLS |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


def show_controls(text: str) -> str:
    r"""Replace control characters by their symbols, so that no text of a model commands a terminal.

    >>> show_controls("\x1b[31mred\n")
    '␛[31mred\n'
    """
    return text.translate(_SYMBOLS)


def read_lines() -> Iterator[str]:
    """Yield the lines that come in, without their ends; spaces at the end of a line belong to it.

    Raises:
        ValueError: If the standard input is closed, or a line is no UTF-8.
    """
    if sys.stdin is None:
        raise ValueError("the standard input is closed")
    for number, line in enumerate(sys.stdin.buffer, start=1):
        yield decode_text(line, name="standard input", line=number).removesuffix("\n").removesuffix("\r")


@contextmanager
def naming_line(number: int) -> Iterator[None]:
    """Let the message of a ValueError begin with the number of the line."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from error
