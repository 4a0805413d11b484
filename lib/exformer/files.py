"""Write a file all at once: who reads it finds the old one or the new one, never half of it."""

import os
import secrets
import stat
import sys
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
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = None
    if path.absolute().parent in _STREAMS or not (mode is None or stat.S_ISREG(mode)):
        _append(path, data)
        return
    path = path.resolve()
    part = path.with_name(f"{secrets.token_hex(8)}.part")
    try:
        with part.open("wb") as out:
            if mode is not None:
                part.chmod(stat.S_IMODE(mode))
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(part, path)
    except OSError as error:
        if error.errno is not None:  # else the system has said nothing that a name could go with
            error.filename = str(path)
        raise
    finally:
        part.unlink(missing_ok=True)


def _append(path: Path, data: bytes) -> None:
    """Write behind what is there, and behind what was printed."""
    if sys.stdout is not None:
        sys.stdout.flush()
    with path.open("ab") as out:
        out.write(data)
