"""Lines of the standard input, the numbers of wrong ones, and text that is safe for a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from exformer.storage.text_files import decode_text

_MAX_LINE = 2**26  # bytes; /dev/zero is one line without an end
# Unicode has symbols for control characters, such as "␛" for escape, but not for U+0080 to U+009F.
_SYMBOLS = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"}
_SYMBOLS |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


def show_controls(text: str) -> str:
    r"""Replace control characters by their symbols, so that the text of a model cannot control a terminal.

    >>> show_controls("\x1b[31mred\n")
    '␛[31mred\n'
    """
    return text.translate(_SYMBOLS)


def read_lines() -> Iterator[str]:
    """Yield the lines of the standard input without their line ends; spaces at the end of a line stay.

    Raises:
        ValueError: If the standard input is closed, or a line is not UTF-8 or endless.
    """
    if sys.stdin is None:
        raise ValueError("the standard input is closed")
    for number, line in enumerate(iter(partial(sys.stdin.buffer.readline, _MAX_LINE), b""), start=1):
        if len(line) == _MAX_LINE:
            raise ValueError(f"standard input, line {number}: expected fewer than {_MAX_LINE:,} bytes")
        yield decode_text(line, name="standard input", line=number).removesuffix("\n").removesuffix("\r")


@contextmanager
def naming_line(number: int) -> Iterator[None]:
    """Begin the message of a ValueError with the number of the line."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from error
