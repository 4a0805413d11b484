"""The benchmark of byte-pair encoding: a run from end to end, no race between different results, refusals."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench import byte_pairs
from bench.byte_pair_peers import learn_by_recounting, merges_of, tiktoken_of, train_hugging_face

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("frozen")

LINE = "Peter Piper picked a peck of pickled peppers. " * 3


def run(*arguments):
    """Run the command."""
    return subprocess.run(
        [sys.executable, str(ROOT / "bench" / "byte_pairs.py"), *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "lib"), "PYTHONIOENCODING": "utf-8"},
    )


def test_a_quick_run_from_end_to_end(tmp_path):
    text, file = tmp_path / "text.txt", tmp_path / "new" / "quick.json"
    text.write_text(LINE * 9, encoding="utf-8")
    done = run(str(text), "--quick", "--json", str(file))
    assert done.returncode == 0, done.stderr
    result = json.loads(file.read_text(encoding="utf-8"))
    assert set(result) == {"machine", "threads", "clock", "races", "recounting"}
    [race] = result["races"]
    assert (race["name"], race["characters"]) == ("text.txt", len(LINE * 9))
    for work, peers in (
        ("training", {"tokenizers"}),
        ("encoding", {"tokenizers", "tiktoken"}),
        ("encoding_new", {"tokenizers", "tiktoken"}),
    ):
        assert set(race[work]["peers"]) == peers
        assert set(race[work]["seconds"]) == {"exformer", *peers}
        for timing in race[work]["peers"].values():
            assert 0 < timing["ratio_low"] <= timing["ratio"] <= timing["ratio_high"]
            assert f"{timing['ratio']:.3f}" in done.stdout
    assert set(race["peak_bytes"]) == {"exformer", "tokenizers"}
    assert "training adds to a process: exformer" in done.stdout or sys.platform == "win32"
    assert result["recounting"]["ratio"] > 0
    assert str(file) in done.stdout


def test_all_contenders_find_the_same_merges():
    merges = byte_pairs.BPETokenizer.from_texts([LINE], n_merges=99).merges
    assert 9 < len(merges) < 99
    assert learn_by_recounting(LINE, 99) == merges
    assert merges_of(train_hugging_face(LINE, 99)) == merges


def test_a_special_symbol_in_the_text_hinders_no_race():
    timed = {"warmup": 0, "min_rounds": 2, "budget_s": 0.0}
    assert byte_pairs.race(f"{LINE} <s> {LINE}", n_merges=9, clock="wall", timed=timed)["merges"] == 9


def test_different_results_do_not_race(monkeypatch):
    timed = {"warmup": 0, "min_rounds": 2, "budget_s": 0.0}
    with monkeypatch.context() as patch:
        patch.setattr(byte_pairs, "tiktoken_of", lambda ours: tiktoken_of(byte_pairs.BPETokenizer([])))
        with pytest.raises(ValueError, match="these tokenizers do not do the same work"):
            byte_pairs.race(LINE, n_merges=9, clock="cpu", timed=timed)
    monkeypatch.setattr(byte_pairs, "merges_of", lambda tokenizer: ())
    with pytest.raises(ValueError, match="these tokenizers do not do the same work"):
        byte_pairs.race(LINE, n_merges=9, clock="cpu", timed=timed)
    monkeypatch.setattr(byte_pairs, "learn_by_recounting", lambda text, n_merges: ())
    with pytest.raises(ValueError, match="differ from those of counting all pairs anew"):
        byte_pairs.race_with_recounting(LINE, n_merges=9, clock="cpu")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(("nowhere.txt",), "there is no file nowhere.txt"), (("--threads", "0"), "must be at least 1, got 0")],
)
def test_what_cannot_be_run_is_refused(refusal, arguments, says):
    assert says in refusal("byte_pairs", *arguments)
