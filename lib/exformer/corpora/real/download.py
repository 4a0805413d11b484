"""A file of the manifest -> a path: from your folder, from the cache, or from its public home."""

import hashlib
import http.client
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock
from tqdm import tqdm

from exformer.corpora.real.manifest import DataFile

_PIECE = 2**16  # bytes read at once
_HELP = "set EXFORMER_DATA to a folder that holds {name}, or try again with a network"


def fetch(file: DataFile, *, cache: str | Path | None = None, timeout: float = 30.0) -> Path:
    """Return where a file lies, fetching it where it is not there yet.

    The folder that ``EXFORMER_DATA`` names comes first, then the cache, then the file's public home. What is
    fetched grows under another name and gets its own only when length and hash are right, so the cache never
    holds half a file or a wrong one. A download that was cut goes on where it stopped. Of several processes
    that want the same file one fetches it, and the others wait.

    Args:
        file: An entry of the manifest, with the file's name, home, length and hash.
        cache: Where downloads are kept; None for ``cache_folder()``.
        timeout: Seconds that the server may be silent.

    Raises:
        ValueError: If the file in ``EXFORMER_DATA``, or what the server sends, is not the manifest's.
        ConnectionError: If it can't be fetched; what has come is kept for the next try.
    """
    own = os.environ.get("EXFORMER_DATA")
    if own and (path := Path(own, file.name)).is_file():
        return _checked(path, file)
    path = Path(cache or cache_folder(), file.name)
    if path.is_file() and _hash(path) == file.sha256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f"{path.name}.lock")):
        if not path.is_file() or _hash(path) != file.sha256:  # else another process has fetched it meanwhile
            _fetch_whole(file, path, timeout=timeout)
    return path


def _fetch_whole(file: DataFile, path: Path, *, timeout: float) -> None:
    """Download a file, look whether it is the right one, and give it its name."""
    part = path.with_name(f"{path.name}.part")
    resumed = part.is_file() and part.stat().st_size > 0
    _download(file, part, timeout=timeout)
    if _hash(part) != file.sha256 and resumed:  # the earlier part was of something else: once more, all of it
        part.unlink()
        _download(file, part, timeout=timeout)
    if _hash(part) != file.sha256:
        begin = part.read_bytes()[:200]
        part.unlink()
        raise ValueError(_refusal(file, begin))
    os.replace(part, path)


def cache_folder() -> Path:
    """Return the folder for downloads: ``exformer`` in the user's cache.

    Raises:
        ValueError: If the system knows no home of this user.
    """
    name, below = ("LOCALAPPDATA", "AppData/Local") if os.name == "nt" else ("XDG_CACHE_HOME", ".cache")
    try:
        return Path(os.environ.get(name) or Path.home() / below, "exformer")
    except RuntimeError as error:
        raise ValueError(f"there is no folder to keep downloads in: set {name} ({error})") from error


def _checked(path: Path, file: DataFile) -> Path:
    if _hash(path) != file.sha256:
        raise ValueError(
            f"EXFORMER_DATA has another {file.name}: expected {file.n_bytes:,} bytes with SHA-256 "
            f"{file.sha256[:12]}…, got {path.stat().st_size:,} bytes; replace it or unset EXFORMER_DATA"
        )
    return path


def _hash(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _refusal(file: DataFile, begin: bytes) -> str:
    """Say what was sent in the place of a file."""
    page = begin.lstrip().lower().startswith((b"<!doctype", b"<html"))
    what = "a web page" if page else "other bytes"
    return (
        f"{file.url} sent {what}, not the file with SHA-256 {file.sha256[:12]}…; nothing was kept. "
        f"A network's log-in page does so; {_HELP.format(name=file.name)}"
    )


def _download(file: DataFile, part: Path, *, timeout: float) -> None:
    """Fetch what is missing of a file, and put it behind what is there."""
    have = part.stat().st_size if part.is_file() else 0
    if have >= file.n_bytes:  # whole, or too long to be right: the hash decides, then a new start
        return
    request = urllib.request.Request(file.url, headers={"Range": f"bytes={have}-"} if have else {})
    with _network(file):
        answer = urllib.request.urlopen(request, timeout=timeout)
    with answer:
        have = have if answer.status == 206 else 0  # other servers do not resume: they send all
        with part.open("ab" if have else "wb") as out:
            for piece in _pieces(answer, file, have):
                out.write(piece)


def _pieces(answer: Any, file: DataFile, have: int) -> Iterator[bytes]:
    """Give the bytes as they come, never more than the file has."""
    title = Path(file.name).name
    with tqdm(desc=title, total=file.n_bytes, initial=have, unit="B", unit_scale=True, disable=None) as bar:
        while have < file.n_bytes:
            with _network(file):
                piece = answer.read(min(_PIECE, file.n_bytes - have))
                if not piece:
                    raise ConnectionError(f"the connection ended after {have:,} of {file.n_bytes:,} bytes")
            yield piece
            have += len(piece)
            bar.update(len(piece))


@contextmanager
def _network(file: DataFile) -> Iterator[None]:
    """Say what to do where the network fails; what a disk says passes by."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(
            f"could not fetch {file.url}: {error}; {_HELP.format(name=file.name)}"
        ) from error
