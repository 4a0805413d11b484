"""The CPU-minute board: its score, its records, its entry nanoGPT, and a quick run."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from bench import board, nano_gpt
from results_data import faults

from exformer import CharTokenizer, DecoderLM, DecoderLMConfig, load_model, save_model
from exformer.recipes.datasets import CORPORA, Text
from exformer.training.loop import Losses, training_steps

VAL = "a cat is there. a hat is on its ear or its leash.\n" * 6
DATA = Text("the keys to the cabinet are on the table.\r\n" * 30, VAL, {})


def test_score_by_hand(tmp_path: Path) -> None:
    tokenizer = CharTokenizer.from_texts([VAL])
    torch.manual_seed(0)
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 8, "max_len": 100}
    model = DecoderLM(DecoderLMConfig(tokenizer.vocab_size, dropout=0.0, **sizes)).eval()
    save_model(tmp_path, model, tokenizer, card={})
    text = VAL[: 3 * 64 + 20]
    ids, nll = torch.tensor(tokenizer.encode(text)), []
    for begin in (0, 64, 128):
        for position in range(begin + 1, begin + 65):
            with torch.no_grad():
                logits = model(ids[None, begin:position])[0, -1]
            nll.append(-logits.log_softmax(-1)[ids[position]].item())
    assert board.validation_loss(tmp_path, text) == pytest.approx(sum(nll) / 192, rel=1e-5)


def test_welch_by_hand() -> None:
    # means 2 and 6, variances 2 and 2, two of each: t = 4 / √2, 2 degrees of freedom: 1/2 - t / (2 √(2 + t²))
    assert board.welch([1.0, 3.0], [5.0, 7.0]) == pytest.approx(0.5 - math.sqrt(8) / (2 * math.sqrt(10)))
    # variances 1 and 0, three of each: t = 5 / √(1/3), and (1/3)² / ((1/3)² / 2) = 2 degrees of freedom
    assert board.welch([1.0, 2.0, 3.0], [7.0] * 3) == pytest.approx(0.5 - math.sqrt(75) / (2 * math.sqrt(77)))
    # variances of 0.625, five of each: t = 0.92975 / √(2 × 0.625 / 5) = 1.8595; tables for 8 degrees: 0.05
    new = [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert board.welch(new, [x + 0.92975 for x in new]) == pytest.approx(0.05, rel=1e-3)
    assert board.welch([5.0, 7.0], [1.0, 3.0]) == pytest.approx(1 - board.welch([1.0, 3.0], [5.0, 7.0]))


def test_records(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = {
        "first": (1.90, 1.91, 1.92),
        "better": (1.60, 1.61, 1.62),
        "worse": (1.70, 1.71, 1.72),
        "lower by chance": (1.50, 1.60, 1.70),
    }
    monkeypatch.setattr(board, "ENTRIES", dict.fromkeys(losses, board.muon))
    trials = {entry: [(loss, 59.0, 100.0) for loss in own] for entry, own in losses.items()}
    rows = board.make_rows(trials, budget=60)
    assert [row["against"] for row in rows] == [None, "first", "better", "better"]
    assert [row["entry"] for row in rows if row["record"]] == ["better"]
    assert rows[1]["p"] == pytest.approx(board.welch(losses["better"], losses["first"]))
    assert (rows[1]["seconds"], rows[1]["processor_seconds"]) == ([59.0] * 3, [100.0] * 3)
    assert 0.01 < rows[3]["p"] < 0.5


def copy_weights(theirs: nano_gpt.NanoGPT, ours: DecoderLM) -> None:
    """Give the entry's model the weights of nanoGPT's."""
    pairs = [(ours.embedding.weight, theirs.embedding.weight), (ours.norm.weight, theirs.norm.weight)]
    pairs.append((ours.positions.weight, theirs.positions.weight))
    for layer, block in zip(ours.layers, theirs.blocks, strict=True):
        attention, network = layer.self_attention, layer.feed_forward
        q, k, v = block.qkv.weight.chunk(3)
        pairs += [(attention.w_q.weight, q), (attention.w_k.weight, k), (attention.w_v.weight, v)]
        pairs += [(attention.w_o.weight, block.attention_out.weight)]
        pairs += [(network.w_1.weight, block.up.weight), (network.w_2.weight, block.out.weight)]
        pairs += [(layer.norm_attention.weight, block.norm_1.weight)]
        pairs += [(layer.norm_feed_forward.weight, block.norm_2.weight)]
    assert len(pairs) == len([*ours.parameters()])
    with torch.no_grad():
        for to, what in pairs:
            to.copy_(what)


def test_nanogpt_trains_as_nanogpt(tmp_path: Path) -> None:
    tokenizer = CharTokenizer.from_texts(["abcdefgh"])
    torch.manual_seed(0)
    sizes = {"d_model": 12, "n_heads": 3, "n_layers": 2, "context": 7}
    theirs, ours = nano_gpt.NanoGPT(11, **sizes).double(), board.new_nanogpt(11, **sizes).double()
    copy_weights(theirs, ours)
    batches = torch.randint(1, 11, (5, 4, 8))

    def same(model: DecoderLM, tolerance: float = 1e-9) -> None:
        ids = batches[0, :, :7]
        torch.testing.assert_close(model(ids), theirs(ids).to(model(ids)), rtol=tolerance, atol=tolerance)

    same(ours)
    rates = [nano_gpt.LR * 100 * share for share in (0.25, 0.5, 0.75, 1.0, 0.1)]  # large: all parts move
    optimizers = [(board.nanogpt_adamw(ours), lambda step: rates[step - 1])]
    losses = Losses()
    steps = training_steps(
        ours, iter(batches), loss_fn=DecoderLM.loss, optimizers=optimizers, losses=losses, clip_norm=1.0
    )
    assert [*steps] == [1, 2, 3, 4, 5]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nano_gpt, "cosine_schedule", lambda step, **more: rates[step - 1])
        found = [*nano_gpt.training(theirs, iter(batches), steps=5)]
    assert losses.values == pytest.approx(found, rel=1e-9)
    same(ours)
    save_model(tmp_path, ours, tokenizer, card={})
    same(load_model(tmp_path).model, tolerance=1e-4)


def test_nanogpt_begins_as_nanogpt() -> None:
    torch.manual_seed(0)
    sizes = {"d_model": 64, "n_heads": 4, "n_layers": 3, "context": 64}
    ours, wanted = board.new_nanogpt(65, **sizes), board.new_nanogpt(65, **sizes)
    copy_weights(nano_gpt.NanoGPT(65, **sizes), wanted)
    for (name, own), other in zip(ours.named_parameters(), wanted.parameters(), strict=True):
        assert own.std().item() == pytest.approx(other.std().item(), rel=0.1, abs=1e-9), name


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let entries train in this process, and put its cores back, which an entry chooses."""
    monkeypatch.setattr(board, "disable_malloc_trim", lambda: None)
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    yield
    if cores:
        os.sched_setaffinity(0, cores)


@pytest.mark.usefixtures("here")
def test_quick_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One training has a process of its own, as all have; another one would show no more."""
    run, commands = subprocess.run, []

    def run_once(command: list[str], **more: Any) -> None:
        commands.append(command)
        if len(commands) == 1:
            run(command, **more)
        else:
            board.run_entry(*command[3:])

    monkeypatch.setattr(board.subprocess, "run", run_once)
    monkeypatch.setattr(board, "QUICK", 2)
    monkeypatch.setitem(CORPORA, "tiny shakespeare", lambda: DATA)
    file = tmp_path / "quick.json"
    kept = [{"entry": "gone", "budget": board.QUICK}, {"entry": "muon", "budget": 60}]
    file.write_text(json.dumps({"rows": [*kept, {"entry": "muon", "budget": board.QUICK}]}), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["board.py", "--quick", "--json", str(file)])
    board.main()
    found = json.loads(file.read_text(encoding="utf-8"))
    assert [found["rows"].pop(n) for n in (2, 2)] == kept
    assert faults(found, "board") == []
    assert [row["entry"] for row in found["rows"]] == [*board.ENTRIES]
    for row in found["rows"]:
        assert (row["budget"], row["threads"], len(row["losses"])) == (board.QUICK, 1, 2)
        assert all(0 < loss < 5 for loss in row["losses"])
        assert all(0 < seconds < board.PATIENCE for seconds in row["seconds"])
    assert sum(row["record"] for row in found["rows"]) == 1


def test_entry_sees_the_training_text_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    run = subprocess.run
    monkeypatch.setattr(board.subprocess, "run", lambda command, **more: seen.append((command, more)))
    with pytest.raises(ValueError, match="there is no model"):
        board.judge("muon", DATA, seed=3, seconds=17, limit=20.0, cores=1)
    [(command, more)] = seen
    assert (command[2:5], command[6]) == (["--train", "muon", "3"], "17")
    assert (more["timeout"], more["env"]["OMP_NUM_THREADS"]) == (20.0, "1")
    assert "ATEN_CPU_CAPABILITY" not in more["env"]
    late = pytest.raises(subprocess.TimeoutExpired)
    monkeypatch.setattr(board.subprocess, "run", lambda command, **more: run(["sleep", "9"], timeout=0.1))
    with late:
        board.judge("muon", DATA, seed=3, seconds=17, limit=20.0, cores=1)


@pytest.mark.usefixtures("here")
def test_time_that_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").write_bytes(DATA.train.encode())
    given = []
    monkeypatch.setattr(board, "ENTRIES", {"mine": lambda *args: given.append(args) or (None, None)})
    monkeypatch.setattr(board, "save_model", lambda *args, **more: None)
    board.run_entry("mine", "3", str(board.time.time() - 10), "21", str(tmp_path / "text"), "out")
    [(text, seed, left)] = given
    assert (text, seed) == (DATA.train, 3)
    assert left() == pytest.approx(1 - 10 / 19.5, abs=0.02)


def test_what_cannot_run_is_refused(refusal) -> None:
    assert "--seconds must be at least 1, got 0" in refusal("board", "--seconds", "60", "0")
    assert "nobody" in refusal("board", "--entries", "nobody")
