"""A file of the manifest -> its path: in your own folder, in the cache, or after a download."""

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
    """Return the path of a file, and download it if it is neither in your folder nor in the cache.

    Your folder is the one that ``EXFORMER_DATA`` names; it comes first. A download is kept under another name
    until its SHA-256 is verified, so the cache never holds half a file or a wrong one. A cut download
    resumes where it stopped. If several processes need a file, one downloads it and the others wait.

    Args:
        file: An entry of the manifest.
        cache: The folder of downloads; None for ``cache_folder()``.
        timeout: Seconds to wait for the server.

    Raises:
        ValueError: If the SHA-256 of the file in ``EXFORMER_DATA`` or of the download is wrong.
        ConnectionError: If the download fails; the bytes received so far are kept for the next try.
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
    """Download a file, verify its SHA-256, and move it to its final name."""
    part = path.with_name(f"{path.name}.part")
    resumed = part.is_file() and part.stat().st_size > 0
    _download(file, part, timeout=timeout)
    if _hash(part) != file.sha256 and resumed:  # the earlier part was of another file: download all of it
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
        ValueError: If the user has no home folder.
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
    """Return the message about a download that is not the file."""
    page = begin.lstrip().lower().startswith((b"<!doctype", b"<html"))
    what = "a web page" if page else "other bytes"
    return (
        f"{file.url} sent {what}, not the file with SHA-256 {file.sha256[:12]}…; nothing was kept. "
        f"A network's log-in page does so; {_HELP.format(name=file.name)}"
    )


def _download(file: DataFile, part: Path, *, timeout: float) -> None:
    """Download the missing bytes of a file, and append them to the part that is there."""
    have = part.stat().st_size if part.is_file() else 0
    if have >= file.n_bytes:  # complete or too long: the SHA-256 decides
        return
    request = urllib.request.Request(file.url, headers={"Range": f"bytes={have}-"} if have else {})
    with _network(file):
        answer = urllib.request.urlopen(request, timeout=timeout)
    with answer:
        have = have if answer.status == 206 else 0  # a server that does not resume sends all bytes
        with part.open("ab" if have else "wb") as out:
            for piece in _pieces(answer, file, have):
                out.write(piece)


def _pieces(answer: Any, file: DataFile, have: int) -> Iterator[bytes]:
    """Yield the bytes as they arrive, at most as many as the file has."""
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
    """Name the remedy if the network fails; errors of the disk pass through."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(
            f"could not fetch {file.url}: {error}; {_HELP.format(name=file.name)}"
        ) from error
