"""Atomic writes, so that a reader finds the old file or the new one; untrusted JSON files."""

import json
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from exformer.storage.text_files import read_data

# A stream of the process may look like a file under these names.
_STREAMS = (Path("/dev"), Path("/dev/fd"))
_PART = re.compile(r"exformer-[0-9a-f]{16}\.part")


def replace_file(path: str | Path, data: bytes) -> None:
    """Write a file atomically: the bytes go to a file beside it, to the disk, and then take its name.

    Where this fails (a full disk, a read-only folder), the old file stays as it was and nothing is left
    beside it; a process that is killed may leave a partial file, which :func:`remove_partial_files` deletes.
    A file that is replaced keeps its mode, and a link stays a link. To a pipe, and to ``/dev/stdout`` of any
    kind, the bytes are appended.

    Raises:
        OSError: What the system says, with the file's name.
    """
    with staged_file(path, data) as put:
        put()


@contextmanager
def staged_file(path: str | Path, data: bytes) -> Iterator[Callable[[], None]]:
    """Write bytes to a file beside the final one; the caller says when it replaces that one.

    So everything that needs room on the disk is done before an old file is given up.

    Args:
        path: The final file, as for :func:`replace_file`.
        data: Its whole content.

    Yields:
        A function that replaces the final file; if it is not called, the new file is deleted.

    Raises:
        OSError: What the system says, with the file's name.
    """
    path = Path(path)
    mode = _mode(path)
    if _is_stream(path, mode):
        yield lambda: _append(path, data)
        return
    final = path.resolve()
    part = final.with_name(f"exformer-{secrets.token_hex(8)}.part")

    def put() -> None:
        with _naming_file(path):
            os.replace(part, final)

    try:
        with _naming_file(path), part.open("wb") as out:
            if mode is not None:
                part.chmod(stat.S_IMODE(mode))
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        yield put
    finally:
        with suppress(FileNotFoundError, NotADirectoryError):  # it has its name, or has never been made
            part.unlink()


def remove_partial_files(folder: str | Path) -> None:
    """Delete what killed processes have left in a folder that no other process writes to now."""
    for path in Path(folder).glob("exformer-*.part"):
        if _PART.fullmatch(path.name):
            path.unlink(missing_ok=True)


def check_name(path: str | Path, *, what: str) -> None:
    """Check the name of a file or folder that safetensors is to read: it is not empty, and UTF-8.

    Args:
        what: Words for what it names, as "a folder for the run".

    Raises:
        ValueError: If it is not.
    """
    if str(path) == "":
        raise ValueError(f"expected the name of {what}, got an empty one")
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"expected the name of {what} in UTF-8, got {str(path)!r}: choose another name"
        ) from error


def check_writable(path: str | Path, *, what: str) -> None:
    """Check that :func:`replace_file` can write to a path, before hours of work for its content.

    Args:
        what: Words for the content, such as "the scores".

    Raises:
        ValueError: If it is a folder, its folder is missing, or it may not be written.
        OSError: The error of the system if it can't be examined.
    """
    name, path = path, Path(path)
    mode = _mode(path)
    if mode is not None and stat.S_ISDIR(mode):
        raise ValueError(f"{name or 'the name of the file'} is a folder: expected a file for {what}")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise ValueError(f"there is no folder for {path}: make it, or choose another path for {what}")
    if not os.access(path if _is_stream(path, mode) else folder, os.W_OK):
        raise ValueError(f"{path} may not be written: choose another path for {what}")


def make_folder(path: str | Path, *, what: str) -> Path:
    """Make a folder where there is none yet, with those that it lies in.

    Args:
        what: Words for what is to be written there, as "the model".

    Returns:
        The path.

    Raises:
        ValueError: If the name is empty, or there is something else.
        OSError: What the system says if it can't be made.
    """
    if path == "":
        raise ValueError(f"expected the name of a folder for {what}, got an empty one")
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        here = "is a link that leads nowhere" if path.is_symlink() else "is a file, or lies in one"
        raise ValueError(f"{path} {here}: expected a folder for {what}") from error
    return path


def read_json(path: str | Path, *, what: str, kind: type = dict) -> Any:
    """Read a JSON file that anyone may have written.

    Args:
        what: Words for what it should be, as "a card".
        kind: The type of its outermost value: ``dict`` or ``list``.

    Raises:
        ValueError: If it can't be read, is no JSON or is nested too deeply, or its value is of another kind.
    """
    text = _read_text(path, what=what)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not {what}: expected JSON ({error})") from error
    if not isinstance(found, kind):
        wanted = "object" if kind is dict else kind.__name__
        raise ValueError(f"{path} is not {what}: expected a JSON {wanted}, got {type(found).__name__}")
    return found


def write_json(path: str | Path, found: Any, *, indent: int | None = None, ensure_ascii: bool = True) -> None:
    """Write a JSON file atomically, with a line break at its end; the options are those of ``json.dumps``."""
    text = json.dumps(found, indent=indent, ensure_ascii=ensure_ascii)
    replace_file(path, f"{text}\n".encode())


def read_json_lines(path: str | Path, *, what: str) -> list[dict[str, Any]]:
    """Read a file of JSON objects, one a line; lines that are none, as those cut by a stop, are left out.

    Args:
        what: Words for what it should be, as "the log of a run".

    Raises:
        ValueError: If it can't be read, or is no text.
    """
    found = []
    for line in _read_text(path, what=what).split("\n"):  # a string of JSON may hold other line separators
        with suppress(ValueError, RecursionError):
            found.append(json.loads(line))
    return [each for each in found if isinstance(each, dict)]


def _read_text(path: str | Path, *, what: str) -> str:
    try:
        return read_data(path).decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"{path} can't be read as {what}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not {what}: expected JSON ({error})") from error


@contextmanager
def _naming_file(path: Path) -> Iterator[None]:
    """Let an error of the system name the final file."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:  # else the system has said nothing that a name could go with
            error.filename = str(path)
        raise


def _mode(path: Path) -> int | None:
    """Return the mode of a file or folder; None if there is none."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_stream(path: Path, mode: int | None) -> bool:
    """Return whether bytes are appended: to a pipe, a device or a stream of the process."""
    return path.absolute().parent in _STREAMS or not (mode is None or stat.S_ISREG(mode))


def _append(path: Path, data: bytes) -> None:
    """Append bytes, after everything that was printed."""
    if sys.stdout is not None:
        sys.stdout.flush()
    with path.open("ab") as out:
        out.write(data)
