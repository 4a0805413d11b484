"""The race beside nanoGPT: its model told right, and turns that disturb nobody."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import nano_gpt, shakespeare
from bench.gpt import gpt2
from bench.shakespeare import PEER, Training, race

from exformer.models.decoder_lm import DecoderLMConfig
from exformer.recipes.datasets import CORPORA, Text

TEXT = "the keys to the cabinet are on the table, and the cabinet is by the door.\n" * 40


@pytest.mark.usefixtures("float64")
def test_nanogpt_is_gpt2_without_biases() -> None:
    torch.manual_seed(0)
    ours = nano_gpt.NanoGPT(11, d_model=12, n_heads=3, n_layers=2, context=7)
    sizes = {"d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 48, "max_len": 7, "dropout": 0.0}
    theirs = gpt2(DecoderLMConfig(11, **sizes)).eval()
    for name, parameter in theirs.named_parameters():
        torch.nn.init.constant_(parameter, 1.0 if ".ln_" in name else 0.0)
        if name.endswith("bias"):
            torch.nn.init.zeros_(parameter)
    body = theirs.transformer
    copies = [(body.wte.weight, ours.embedding.weight), (body.wpe.weight, ours.positions.weight)]
    for theirs_block, block in zip(body.h, ours.blocks, strict=True):
        copies += [
            (theirs_block.attn.c_attn.weight, block.qkv.weight.T),
            (theirs_block.attn.c_proj.weight, block.attention_out.weight.T),
            (theirs_block.mlp.c_fc.weight, block.up.weight.T),
            (theirs_block.mlp.c_proj.weight, block.out.weight.T),
        ]
    with torch.no_grad():
        for to, what in copies:
            to.copy_(50 * what)  # far from zero, so that every part matters
            what.copy_(to)
        ids = torch.randint(11, (2, 7))
        torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=1e-10, atol=1e-10)


def test_nanogpt_has_its_size_and_first_loss() -> None:
    torch.manual_seed(0)
    model = nano_gpt.NanoGPT(65, d_model=128, n_heads=4, n_layers=4, context=64)
    assert sum(p.numel() for p in model.parameters()) == 804_096
    batches = iter(torch.randint(65, (2, 4, 65)))
    first, _ = nano_gpt.training(model, batches, steps=2)
    assert first == pytest.approx(math.log(65), abs=0.1)


def test_matrices_decay_and_gains_do_not() -> None:
    torch.manual_seed(0)
    model = nano_gpt.NanoGPT(11, d_model=12, n_heads=3, n_layers=1, context=7)
    with torch.no_grad():
        model.norm.weight.fill_(3.0)
        model.positions.weight.fill_(3.0)
    batch = torch.zeros(2, 4, dtype=torch.int64)  # positions 3 to 6 get no gradient
    before = model.positions.weight[3:].clone()
    list(nano_gpt.training(model, iter([batch, batch]), steps=2))
    shrunk = model.positions.weight[3:] / before
    rates = (nano_gpt.LR, nano_gpt.LR / 10)  # the peak, then a tenth of it
    wanted = math.prod(1 - 0.1 * rate for rate in rates)
    torch.testing.assert_close(shrunk, torch.full_like(shrunk, wanted))
    assert (model.norm.weight - 3).abs().max() <= sum(rates) * 1.01


def test_turns_disturb_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CORPORA, "tiny shakespeare", lambda: Text(TEXT[:2500], TEXT[2500:], {}))
    monkeypatch.setattr(shakespeare, "TURN", 1)
    ours = Training(2, threads=1)
    again = replace(ours, seeds=2)
    together = race({PEER: Training(3, threads=1), "ours": ours, "again": again}, clock="cpu")
    alone = race({PEER: Training(3, threads=1)}, clock="cpu")
    assert together[PEER]["validation_loss"] == alone[PEER]["validation_loss"]
    losses = together["again"]["validation_losses"]
    assert together["ours"]["validation_loss"] == losses[0]
    assert len(set(losses)) == 2
    assert together["again"]["validation_loss"] == pytest.approx(sum(losses) / 2)
    for name, steps in ((PEER, 3), ("ours", 2)):
        assert together[name]["steps"] == steps
        assert 0 < together[name]["validation_loss"] < math.log(30)
        assert together[name]["ratio"] == together[name]["seconds"] / together[PEER]["seconds"]
    assert together["ours"]["parameters"] <= 810_000


def test_a_quick_run_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CORPORA, "tiny shakespeare", lambda: Text(TEXT[:2500], TEXT[2500:], {}))
    file = tmp_path / "quick.json"
    monkeypatch.setattr(sys, "argv", ["shakespeare.py", "--quick", "--json", str(file)])
    threads = torch.get_num_threads()
    try:
        shakespeare.main()
    finally:
        torch.set_num_threads(threads)
    found = json.loads(file.read_text(encoding="utf-8"))["contenders"]
    assert list(found) == list(shakespeare.CONTENDERS)
    assert {one["steps"] for one in found.values()} == {4}
    assert all(0 < one["validation_loss"] < math.log(30) + 1 for one in found.values())
