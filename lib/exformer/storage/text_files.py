"""Bytes of a text file -> the text, or the cause why they are none."""

import stat
from os import fstat
from pathlib import Path

_FEWEST_ZEROS = 4  # a text may hold a few; of UTF-16 every second byte is zero


def read_data(path: str | Path) -> bytes:
    """Read all bytes of a file or a pipe, once.

    Raises:
        ValueError: If it is a device such as ``/dev/zero``, which may never end.
        OSError: What the system says if it can't be read.
    """
    with Path(path).open("rb") as opened:
        if stat.S_ISCHR(fstat(opened.fileno()).st_mode) and not opened.isatty():
            raise ValueError(f"{path} is a device: expected a file")
        return opened.read()


def decode_text(data: bytes, *, name: str | Path, line: int | None = None) -> str:
    r"""Decode a text in UTF-8, without the byte order mark that it may begin with.

    Args:
        data: The bytes, all of them or those of a line.
        name: Of the file, for the message.
        line: Number of the line that the bytes are; None for all lines.

    Raises:
        ValueError: If the bytes are no UTF-8, or look like UTF-16.

    >>> decode_text(b"\xef\xbb\xbfil cane", name="a.txt")
    'il cane'
    >>> decode_text(b"il\nca\xffne", name="a.txt")
    Traceback (most recent call last):
        ...
    ValueError: a.txt, line 2: expected text in UTF-8, got the byte 0xff: save the text as UTF-8
    """
    zeros = data.count(0)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or (zeros >= _FEWEST_ZEROS and 3 * zeros > len(data)):
        where = name if line is None else f"{name}, line {line}"
        raise ValueError(f"{where}: expected text in UTF-8, got UTF-16: save the text as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = error.start + len(data) - len(error.object)  # a mark at the beginning is not in the object
        line = data[:place].count(b"\n") + 1 if line is None else line
        raise ValueError(
            f"{name}, line {line}: expected text in UTF-8, got the byte 0x{data[place]:02x}: "
            "save the text as UTF-8"
        ) from error
