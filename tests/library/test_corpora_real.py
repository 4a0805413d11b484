"""Real texts: fetched whole or not at all, from whatever a server does; tests run a server of their own."""

import errno
import gzip
import hashlib
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from exformer.corpora import real
from exformer.corpora.real import download, shakespeare
from exformer.corpora.real.download import cache_folder, fetch
from exformer.corpora.real.manifest import FILES, DataFile

needs_multi30k = pytest.mark.skipif(
    not (Path(os.environ.get("EXFORMER_DATA", "nowhere")) / "multi30k").is_dir(),
    reason="no Multi30k: EXFORMER_DATA names no folder that has it",
)
DATA = bytes(range(251)) * 1_000  # four pieces
PAGE = b"<!DOCTYPE html><html>please log in</html>"
PAGES = {"/page": PAGE, "/missing": PAGE, "/line_and_page": b"\n" + PAGE}


class Server(BaseHTTPRequestHandler):
    """Send `DATA` in the manner that the path names, and note what was asked for."""

    asked: list[str | None]

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.asked.append(wanted)
        body, first = PAGES.get(self.path, DATA), 0
        if self.path == "/whole" and wanted:
            first = int(wanted.removeprefix("bytes=").removesuffix("-"))
        self.send_response(404 if self.path == "/missing" else 206 if first else 200)
        self.send_header("Content-Length", str(len(body) - first))
        self.end_headers()
        if self.path == "/slow":
            self.wfile.write(body[:1_000])
            self.wfile.flush()
            time.sleep(0.3)
            self.wfile.write(body[1_000:])
        elif self.path == "/silent":
            self.wfile.write(body[:1_000])
            self.wfile.flush()
            self.server.held.wait(10)
        else:
            self.wfile.write(body[first : 100_000 if self.path == "/cut" else None])

    def log_message(self, *args: object) -> None:
        """Be quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.delenv("EXFORMER_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    Server.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as running:
        running.held = threading.Event()
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.held.set()
        running.shutdown()


def data_file(url: str) -> DataFile:
    return DataFile("some/data.bin", url, len(DATA), hashlib.sha256(DATA).hexdigest(), "ours")


def left_in(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock")


def test_one_download_of_a_file(server: str, tmp_path: Path) -> None:
    file = data_file(f"{server}/whole")
    assert [fetch(file, cache=tmp_path).read_bytes() for _ in range(2)] == [DATA, DATA]
    assert Server.asked == [None]
    assert left_in(tmp_path) == ["data.bin"]


def test_two_processes_that_fetch_one_file(server: str, tmp_path: Path) -> None:
    file = data_file(f"{server}/slow")
    with ThreadPoolExecutor(3) as together:
        found = list(together.map(lambda _: fetch(file, cache=tmp_path).read_bytes(), range(3)))
    assert found == [DATA] * 3
    assert Server.asked == [None]
    assert left_in(tmp_path) == ["data.bin"]


def test_resumed_download(server: str, tmp_path: Path) -> None:
    file = data_file(f"{server}/cut")
    with pytest.raises(ConnectionError, match=r"ended after 100,000 of 251,000 bytes; set EXFORMER_DATA"):
        fetch(file, cache=tmp_path)
    assert left_in(tmp_path) == ["data.bin.part"]
    assert fetch(replace(file, url=f"{server}/whole"), cache=tmp_path).read_bytes() == DATA
    assert Server.asked == [None, "bytes=100000-"]
    assert left_in(tmp_path) == ["data.bin"]


@pytest.mark.parametrize(
    ("name", "begun", "path", "last_asked"),
    [
        ("data.bin.part", DATA[:777], "always-all", ["bytes=777-"]),  # the server sends all of it
        ("data.bin.part", b"x" * 500, "whole", [None]),  # parts of another file
        ("data.bin.part", b"x" * len(DATA), "whole", [None]),
        ("data.bin.part", b"x" * (len(DATA) + 9), "whole", [None]),
        ("data.bin.part", DATA, "whole", []),
        ("data.bin", PAGE, "whole", [None]),
    ],
)
def test_what_is_there_already(
    server: str, tmp_path: Path, name: str, begun: bytes, path: str, last_asked: list[str | None]
) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / name).write_bytes(begun)
    assert fetch(data_file(f"{server}/{path}"), cache=tmp_path).read_bytes() == DATA
    assert Server.asked[-1:] == last_asked
    assert left_in(tmp_path) == ["data.bin"]


def test_wrong_bytes_from_the_server(server: str, tmp_path: Path) -> None:
    wrong = replace(data_file(f"{server}/whole"), sha256="0" * 64)
    with pytest.raises(ValueError, match=r"sent other bytes, not the file with SHA-256 000000000000…"):
        fetch(wrong, cache=tmp_path)
    assert left_in(tmp_path) == []
    assert Server.asked == [None]  # a server that has sent all of it is not asked again


@pytest.mark.parametrize("path", ["page", "line_and_page"])
def test_web_page_from_the_server(server: str, tmp_path: Path, path: str) -> None:
    file = replace(data_file(f"{server}/{path}"), n_bytes=len(PAGE))
    with pytest.raises(ValueError, match=r"sent a web page, .* log-in page"):
        fetch(file, cache=tmp_path)
    assert left_in(tmp_path) == []


@pytest.mark.parametrize(("path", "why"), [("missing", "404"), ("silent", "timed out")])
def test_server_error(server: str, tmp_path: Path, path: str, why: str) -> None:
    with pytest.raises(ConnectionError, match=f"could not fetch .*{why}.*set EXFORMER_DATA"):
        fetch(data_file(f"{server}/{path}"), cache=tmp_path, timeout=0.3)
    assert "data.bin" not in left_in(tmp_path)


def test_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXFORMER_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(ConnectionError, match=r"set EXFORMER_DATA to a folder that holds some/data\.bin"):
        fetch(data_file("http://127.0.0.1:9/closed"), cache=tmp_path)


def test_full_disk(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def full(path: Path, mode: str) -> Iterator[object]:
        class Full:
            def write(self, piece: bytes) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

        yield Full()

    monkeypatch.setattr(download.Path, "open", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        fetch(data_file(f"{server}/whole"), cache=tmp_path)
    assert not isinstance(caught.value, ConnectionError)


def test_exformer_data_comes_first(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, cache = tmp_path / "own", tmp_path / "cache"
    monkeypatch.setenv("EXFORMER_DATA", str(own))
    file = data_file(f"{server}/whole")
    assert fetch(file, cache=cache).parent.parent == cache  # the folder does not have it
    path = own / "some" / "data.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(DATA)
    assert fetch(file, cache=cache) == path
    path.write_bytes(PAGE)
    with pytest.raises(ValueError, match=r"EXFORMER_DATA has another some/data.bin: expected 251,000 bytes"):
        fetch(file, cache=cache)
    assert path.read_bytes() == PAGE  # what is yours stays


def test_cache_folder_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert cache_folder() == tmp_path / "exformer"


@pytest.mark.parametrize("setting", [None, ""])
def test_a_cache_that_is_not_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str | None
) -> None:
    """Set to nothing is not set, as the XDG specification has it; else it would be the folder we are in."""
    name, below = ("LOCALAPPDATA", "AppData/Local") if os.name == "nt" else ("XDG_CACHE_HOME", ".cache")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv(name, raising=False)
    if setting is not None:
        monkeypatch.setenv(name, setting)
    assert cache_folder() == tmp_path / below / "exformer"


def test_manifest() -> None:
    assert len(FILES) == 13
    for name, file in FILES.items():
        assert name == file.name
        assert file.url.startswith("https://")
        assert file.url.endswith(Path(name).name)
        assert len(file.sha256) == 64
        assert set(file.sha256) <= set("0123456789abcdef")
        assert file.n_bytes > 10_000
        assert file.license


@pytest.fixture
def small_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put short texts in the place of the real ones."""
    texts = {
        "tinyshakespeare/input.txt": "0123456789" * 2,
        "multi30k/val.en.gz": "A dog\u2028 runs.\n Two cats. \n",
        "multi30k/val.de.gz": "Ein Hund rennt.\nZwei Katzen.\n",
        "multi30k/test_2016_flickr.lc.norm.tok.de": "ein hund .\n",
    }
    for name, text in texts.items():
        data = text.encode()
        data = gzip.compress(data) if name.endswith(".gz") else data
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        file = replace(FILES[name], n_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        monkeypatch.setitem(FILES, name, file)
    monkeypatch.setenv("EXFORMER_DATA", str(tmp_path))


@pytest.mark.usefixtures("small_texts")
def test_texts_are_unchanged() -> None:
    assert real.tiny_shakespeare() == ("012345678901234567", "89")
    pairs = real.multi30k("val", src="de", tgt="en")
    assert [(pair.source, pair.target) for pair in pairs] == [
        ("Ein Hund rennt.", "A dog\u2028 runs."),
        ("Zwei Katzen.", "Two cats."),
    ]
    assert real.tokenized_references("de") == ["ein hund ."]


@needs_multi30k
def test_sizes_of_the_real_parts() -> None:
    for tgt in ("de", "fr"):
        sizes = {part: len(real.multi30k(part, src="en", tgt=tgt)) for part in ("train", "val", "test")}
        assert sizes == {"train": 29_000, "val": 1_014, "test": 1_000}  # Elliott et al. 2016, table 1
        assert len(real.tokenized_references(tgt)) == 1_000


def test_unknown_parts_and_languages() -> None:
    with pytest.raises(ValueError, match="part must be train, val or test, got 'dev'"):
        real.multi30k("dev", src="en", tgt="de")
    for src, tgt in (("en", "en"), ("en", "it")):
        with pytest.raises(ValueError, match="src and tgt must be two of en, de and fr"):
            real.multi30k("val", src=src, tgt=tgt)
    with pytest.raises(ValueError, match="language must be en, de or fr"):
        real.tokenized_references("it")


def test_cut_of_a_text_of_odd_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").write_text("abcdefghijklmno")  # nine tenths of them are 13.5
    monkeypatch.setattr(shakespeare, "fetch", lambda file: tmp_path / "text")
    assert real.tiny_shakespeare() == ("abcdefghijklm", "no")
