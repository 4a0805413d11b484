"""The race beside nanoGPT: its model reimplemented right, turns that disturb nobody, and all seeds judged."""

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from bench import nano_gpt, shakespeare
from bench.gpt import gpt2
from bench.shakespeare import PEERS, Run, Training, race, race_all, summarize
from results_data import faults

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


@pytest.fixture
def float32() -> Iterator[None]:
    """Compute as the race does, whatever other tests compute in: autocast leaves float64 alone."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(before)


@pytest.fixture
def short_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train on a short text, in turns of a step."""
    monkeypatch.setitem(CORPORA, "tiny shakespeare", lambda: Text(TEXT[:2500], TEXT[2500:], {}))
    monkeypatch.setattr(shakespeare, "TURN", 1)


@pytest.mark.usefixtures("short_text")
def test_turns_disturb_nobody() -> None:
    contenders = {PEERS[0]: Training(3, threads=1, seeds=2), "ours": Training(2, threads=1, seeds=3)}
    together = race_all(contenders, clock="cpu")
    assert [len(together[name]) for name in contenders] == [2, 3]
    for name, how in contenders.items():
        for seed, run in enumerate(together[name]):
            alone = race({name: how}, seed=seed, clock="cpu")[name]
            assert (run.loss, run.parameters) == (alone.loss, alone.parameters)
            assert run.seconds > 0, "a seed that was not timed"
            assert 0 < run.loss < math.log(30)
        assert len({run.loss for run in together[name]}) == how.seeds
    assert together["ours"][0].parameters <= 810_000


def test_nanogpt_s_bfloat16_is_its_float32_but_for_rounding(float32: None) -> None:
    losses = []
    for precision in ("float32", "bfloat16"):
        torch.manual_seed(0)
        model = nano_gpt.NanoGPT(11, d_model=16, n_heads=2, n_layers=1, context=8)
        batches = iter(torch.randint(11, (3, 4, 9)))
        losses.append(list(nano_gpt.training(model, batches, steps=3, precision=precision)))
    full, half = losses
    assert half != full
    assert half == pytest.approx(full, abs=0.01)


def runs(seconds: list[float], losses: list[float]) -> list[Run]:
    """Return what trainings took and reached."""
    return [Run(s, loss, 7) for s, loss in zip(seconds, losses, strict=True)]


@pytest.mark.parametrize("faster", PEERS)
def test_means_of_all_seeds_are_compared_with_the_faster_nanogpt(faster: str) -> None:
    [slower] = {*PEERS} - {faster}
    found = {
        slower: runs([20.0, 24.0], [1.8, 1.8]),
        faster: runs([30.0, 2.0], [1.9, 1.7]),  # its first seed alone is the slowest of all
        "ours": runs([1.0, 3.0, 5.0], [1.9, 1.8, 1.6]),
    }
    contenders = {name: Training(100, threads=2, seeds=len(own)) for name, own in found.items()}
    contenders["ours"] = Training(50, threads=2, precision="bfloat16", seeds=3)
    result = summarize(contenders, found)
    assert result["reference"] == faster
    assert {name: one["ratio"] for name, one in result["contenders"].items()} == {
        **{slower: 22 / 16, faster: 1.0},
        "ours": 3 / 16,
    }
    ours = result["contenders"]["ours"]
    assert (ours["seconds"], ours["validation_losses"]) == ([1.0, 3.0, 5.0], [1.9, 1.8, 1.6])
    assert ours["ms_per_step"] == 60.0
    assert (ours["seeds"], ours["precision"], ours["parameters"]) == (3, "bfloat16", 7)


def test_the_race_is_between_equals() -> None:
    precisions = {shakespeare.CONTENDERS[peer].precision for peer in PEERS}
    assert precisions == {how.precision for how in shakespeare.CONTENDERS.values()}
    assert all(how.seeds >= 3 for how in shakespeare.CONTENDERS.values())
    assert {shakespeare.CONTENDERS[peer].steps for peer in PEERS} == {nano_gpt.STEPS}


def test_a_quick_run_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CORPORA, "tiny shakespeare", lambda: Text(TEXT[:2500], TEXT[2500:], {}))
    file = tmp_path / "quick.json"
    monkeypatch.setattr(sys, "argv", ["shakespeare.py", "--quick", "--json", str(file)])
    threads = torch.get_num_threads()
    try:
        shakespeare.main()
    finally:
        torch.set_num_threads(threads)
    found = json.loads(file.read_text(encoding="utf-8"))
    assert faults(found, "shakespeare") == []
    assert found["reference"] in PEERS
    assert list(found["contenders"]) == list(shakespeare.CONTENDERS)
    for one in found["contenders"].values():
        assert (one["steps"], len(one["seconds"]), len(one["validation_losses"])) == (4, 2, 2)
        assert all(0 < loss < math.log(30) + 1 for loss in one["validation_losses"])
