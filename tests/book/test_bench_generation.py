"""The benchmark of generation: equal models, no race between different texts, a run from end to end."""

import json

import pytest
import torch
from bench import generation
from bench.generation_peers import gpt2_of, greedy_writers, in_layout_of_linear
from torch_twins import close, randomize

from exformer.models.decoder_lm import DecoderLM

pytestmark = pytest.mark.usefixtures("frozen")

NAMES = ["greedy, batch 1", "greedy, the cache", "greedy, batch 16", "beam of 4"]
TIMED = {"warmup": 0, "min_rounds": 2, "budget_s": 0.0}


def test_a_quick_run_from_end_to_end(said_by, tmp_path):
    file = tmp_path / "new" / "quick.json"
    said = said_by("generation", "--quick", "--json", file)
    result = json.loads(file.read_text(encoding="utf-8"))
    assert set(result) == {"machine", "threads", "clock", "gpt", "translator", "races"}
    assert list(result["races"]) == NAMES
    for name, race in result["races"].items():
        assert name in said
        ours, *peers = race["contenders"].values()
        assert ours["ratio"] == 1.0
        for peer in peers:
            assert 0 < peer["ratio_low"] <= peer["ratio"] <= peer["ratio_high"]
            assert len(peer["seconds"]) == len(ours["seconds"]) == race["rounds"] == 2
            assert f"{peer['ratio']:.3f}" in said
    assert str(file) in said


def test_the_model_that_is_timed_has_the_size_of_nanogpts():
    n = sum(p.numel() for p in DecoderLM(generation.GPT).parameters())
    assert 10.6e6 < n < 10.9e6
    assert generation.GPT.max_len >= generation.N_PROMPT + generation.N_NEW


@pytest.mark.usefixtures("float64")
def test_gpt2_with_our_weights_is_our_model():
    model = DecoderLM(generation.SMALL_GPT).eval()
    randomize(model, seed=3)
    ids = torch.randint(65, (3, 17), generator=torch.Generator().manual_seed(0))
    peer = gpt2_of(model)
    close(model(ids).detach(), peer(ids).logits.detach())
    copied = in_layout_of_linear(peer)
    close(copied(ids).logits.detach(), peer(ids).logits.detach())
    weights = [m.weight for m in copied.modules() if type(m).__name__ == "Conv1D"]
    assert all(weight.t().is_contiguous() for weight in weights)
    assert len(weights) == 4 * generation.SMALL_GPT.n_layers


def test_different_texts_do_not_race():
    model = DecoderLM(generation.SMALL_GPT).eval()
    writers = greedy_writers(model, torch.ones(2, 3, dtype=torch.int64), n_new=4)
    right = writers["GPT-2"]
    writers["GPT-2"] = lambda: [[*text[::-1], 1] for text in right()]
    with pytest.raises(ValueError, match="GPT-2 generates 2 of 2 other texts: this is not the same work"):
        generation.race(writers, clock="cpu", timed=TIMED)


def test_what_cannot_be_run_is_refused(refusal):
    assert "must be at least 1, got 0" in refusal("generation", "--threads", "0")
