"""Write a file all at once: who reads it finds the old one or the new one, never half of it."""

import os
from pathlib import Path


def replace_file(path: str | Path, data: bytes) -> None:
    """Write bytes to a file beside the final one, push them to the disk, then give them the name.

    Where that fails (a full disk, a folder that may not be written), the old file stays as it was, and
    nothing is left beside it. A link stays a link: the file that it leads to is replaced. What is no file, as
    ``/dev/stdout``, is written into.

    Args:
        path: Where to; a file that is there is replaced.
        data: The content.

    Raises:
        OSError: What the system says, with the file's name.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as out:
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
