"""Write a file all at once: who reads it finds the old one or the new one, never half of it."""

import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# What stands behind these names may look like a file, but belongs to who started the process.
_STREAMS = (Path("/dev"), Path("/dev/fd"))


def replace_file(path: str | Path, data: bytes) -> None:
    """Write bytes to a file beside the final one, push them to the disk, then give them the name.

    Where that fails (a full disk, a folder that may not be written), the old file stays as it was, and
    nothing is left beside it; a process that is killed may leave a file that ends in ``.part``. A file that
    is replaced keeps its mode. A link stays a link: the file that it leads to is replaced. To what is there
    and is no file, as a pipe, and to ``/dev/stdout`` and its like, whatever stands behind them, the bytes are
    appended.

    Args:
        path: Where to; a file that is there is replaced.
        data: The content.

    Raises:
        OSError: What the system says, with the file's name.
    """
    with staged_file(path, data) as put:
        put()


@contextmanager
def staged_file(path: str | Path, data: bytes) -> Iterator[Callable[[], None]]:
    """Write bytes to a file beside the final one, and let the caller say when it takes that one's place.

    So what needs room on the disk is done before anything that is there is given up.

    Args:
        path: Where to, as for :func:`replace_file`.
        data: The content.

    Yields:
        What puts the file into its place; if it is not called, nothing is left of it.

    Raises:
        OSError: What the system says, with the file's name.
    """
    path = Path(path)
    mode = _mode(path)
    if _is_appended(path, mode):
        yield lambda: _append(path, data)
        return
    final = path.resolve()
    part = final.with_name(f"{secrets.token_hex(8)}.part")

    def put() -> None:
        with _named(path):
            os.replace(part, final)

    try:
        with _named(path), part.open("wb") as out:
            if mode is not None:
                part.chmod(stat.S_IMODE(mode))
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        yield put
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Let what the system says name the final file."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:  # else the system has said nothing that a name could go with
            error.filename = str(path)
        raise


def check_place(path: str | Path, *, what: str) -> None:
    """Refuse a place that :func:`replace_file` can't write to, before hours go into what it is to hold.

    Args:
        path: Where to.
        what: Is to be written there, as "the scores".

    Raises:
        ValueError: If there is a folder, there is none for the file, or it may not be written.
        OSError: What the system says if it can't be looked at.
    """
    place = Path(path)
    mode = _mode(place)
    if mode is not None and stat.S_ISDIR(mode):
        raise ValueError(f"{path or 'the name of the file'} is a folder: expected a file for {what}")
    folder = Path(os.path.realpath(place)).parent
    if not folder.is_dir():
        raise ValueError(f"there is no folder for {path}: make it, or choose another place for {what}")
    if not os.access(place if _is_appended(place, mode) else folder, os.W_OK):
        raise ValueError(f"{path} may not be written: choose another place for {what}")


def _mode(path: Path) -> int | None:
    """Return the mode of what is there, if there is something."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_appended(path: Path, mode: int | None) -> bool:
    """Say whether bytes are to stand behind those that are there."""
    return path.absolute().parent in _STREAMS or not (mode is None or stat.S_ISREG(mode))


def _append(path: Path, data: bytes) -> None:
    """Write behind what is there, and behind what was printed."""
    if sys.stdout is not None:
        sys.stdout.flush()
    with path.open("ab") as out:
        out.write(data)
