"""The programs of the lesson on training: what each does wrong, and the file of their runs."""

import json
from dataclasses import replace

import pytest
import torch

from exformer import pad
from exformer.nn.loss import nll
from exformer_lessons.training import measure
from exformer_lessons.training.programs import (
    CAUSES,
    DOZEN,
    Program,
    fresh_rows,
    logits_of,
    loss_of,
    new_model,
    right_loss,
    tokenizer,
    train,
)

LEAKS = {"no causal mask", "targets not shifted", "padding counted", "leaking split"}


@pytest.fixture(scope="module")
def model():
    return new_model(Program(), seed=0).eval()


@pytest.fixture(scope="module")
def ids():
    return pad([fresh_rows()[n] for n in (0, 1, 2)], pad_id=tokenizer().pad_id)


def by_hand(model, row, *, shift=1):
    ids = torch.tensor([row])
    return nll(model(ids[:, : len(row) - shift]), ids[:, shift:])[0]


def test_three_means_of_the_same_numbers(model, ids):
    rows = [fresh_rows()[n] for n in (0, 1, 2)]
    each = [by_hand(model, row) for row in rows]
    right = torch.cat(each).mean().item()
    assert loss_of(model, ids, Program()).item() == pytest.approx(right, abs=1e-5)
    of_means = sum(part.mean() for part in each).item() / 3
    assert loss_of(model, ids, Program(average="sentences")).item() == pytest.approx(of_means, abs=1e-5)
    nats = nll(model(ids[:, :-1]), ids[:, 1:])
    assert loss_of(model, ids, Program(average="positions")).item() == pytest.approx(nats.mean().item())


@pytest.mark.parametrize("shift", [0, 2])
def test_targets_are_shifted_as_a_program_says(model, shift):
    row = fresh_rows()[3]
    found = loss_of(model, torch.tensor([row]), Program(shift=shift)).item()
    assert found == pytest.approx(by_hand(model, row, shift=shift).mean().item(), abs=1e-5)


def test_without_the_mask_the_last_token_moves_the_first(model, ids):
    changed = ids.clone()
    changed[:, -1] = (ids[:, -1] + 1) % tokenizer().vocab_size
    for program, moves in ((Program(), False), (Program(causal=False), True)):
        apart = (logits_of(model, changed, program) - logits_of(model, ids, program))[:, 0].abs().max()
        assert (apart > 1e-4) == moves


def test_copies_and_new_sentences_are_the_same_training():
    short = {"steps": 6, "warmup": 2, "n_texts": 50}
    apart, alike = (train(replace(DOZEN[name], **short), seed=1) for name in ("overfitting", "leaking split"))
    assert apart[1]["right"] == alike[1]["right"]
    assert apart[1]["training"] == alike[1]["training"]
    assert apart[1]["reported"] == apart[1]["right"] != alike[1]["reported"]


def test_dropout_in_evaluation_never_says_the_same_twice():
    short = {"steps": 3, "warmup": 2, "n_texts": 50}
    for name, same in (("healthy", True), ("dropout in evaluation", False)):
        model, run = train(replace(DOZEN[name], **short), seed=1, curves=False)
        assert (run["reported"] == run["again"]) == same
        assert "training" not in run
        assert right_loss(model.train()) == run["right"]
        assert model.training


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_each_optimizer_learns(optimizer):
    short = {"steps": 12, "warmup": 2, "batch": 8, "n_texts": 50}
    program = Program(optimizer=optimizer, **short)
    assert train(program, seed=0, curves=False)[1]["right"] < right_loss(new_model(program, seed=0)) - 0.3


def test_the_file_holds_what_the_page_says():
    dozen, floor = measure.runs("dozen"), measure.runs("floor")["entropy"]
    assert dozen.keys() == DOZEN.keys()
    assert {len(found) for found in dozen.values()} == {len(measure.SEEDS)}
    below = {name for name, found in dozen.items() for run in found if run["reported"] < floor}
    assert below == LEAKS
    for runs in zip(*dozen.values(), strict=True):
        order = sorted(zip([run["reported"] for run in runs], dozen, strict=True))
        assert {name for _, name in order[:4]} == LEAKS
        assert order[4][1] == "mean of means"
        worst = sorted(zip([run["right"] for run in runs], dozen, strict=True))[-2:]
        assert [name for _, name in worst] == ["no causal mask", "targets not shifted"]
    assert measure.runs("patients").keys() == CAUSES.keys()


def test_the_command_writes_the_parts_that_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "FILE", tmp_path / "runs.json")
    monkeypatch.setattr(measure, "PARTS", {"one": lambda: {"a": [1.0]}, "two": lambda: {"b": 2}})
    measure.main(["two"])
    measure.main(["one"])
    found = json.loads((tmp_path / "runs.json").read_text(encoding="utf-8"))
    assert found.keys() == {"floor", "one", "two"}
    assert measure.runs("one") == {"a": [1.0]}
