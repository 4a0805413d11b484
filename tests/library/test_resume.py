"""Resumed runs: what may change, what is refused, and where the final weights come from."""

import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from exformer.data.translation import Seq2SeqBatch
from exformer.data.windows import TextWindows
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.training.checkpoint import find_checkpoints, load_checkpoint, read_notes, save_checkpoint
from exformer.training.clock import Clock
from exformer.training.config import TrainingConfig
from exformer.training.loop import DivergenceError, set_seed
from exformer.training.resume_check import hash_first_batch
from exformer.training.trainer import Trainer

SIZES = {"d_model": 8, "n_heads": 2, "d_ff": 12, "n_layers": 1, "max_len": 7, "pad_id": None}
IDS = torch.arange(210) * torch.arange(210) % 11
WINDOWS = TextWindows(IDS, width=7, batch_size=5, seed=3)
CONFIG = TrainingConfig(steps=10, lr=0.02, warmup=2, eval_interval=3, average_last=3)


def trainer_of(folder: Path | None, config: TrainingConfig = CONFIG, **options: object) -> Trainer:
    set_seed(1)
    model = DecoderLM(DecoderLMConfig(11, **SIZES))
    return Trainer(model, options.pop("batches", WINDOWS), config=config, folder=folder, **options)


def test_a_finished_run_goes_on_with_more_steps(tmp_path: Path) -> None:
    """An inverse square root schedule does not depend on the steps, so the longer run is the same run."""
    longer = replace(CONFIG, steps=14)
    whole = trainer_of(None, longer)
    losses = whole.fit()
    assert trainer_of(tmp_path).fit() == losses[:10]
    resumed = trainer_of(tmp_path, longer)
    assert resumed.fit(resume=True) == losses[10:]
    assert (resumed.step, resumed.ended) == (14, True)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], value)
    assert trainer_of(tmp_path, longer).fit(resume=True) == []


def test_more_steps_have_the_learning_rates_of_the_longer_run(tmp_path: Path) -> None:
    linear = replace(CONFIG, schedule="linear")
    trainer_of(tmp_path, linear).fit()
    longer = replace(linear, steps=20)
    resumed = trainer_of(tmp_path, longer)
    resumed.fit(resume=True)
    assert resumed.optimizers[0][0].param_groups[0]["lr"] == longer.make_schedule(longer.lr)(20)


def test_divergence_of_a_resumed_run_names_its_step(tmp_path: Path) -> None:
    trainer_of(tmp_path).fit()
    options = {"loss_fn": lambda model, ids: model.loss(ids) * math.nan}
    with pytest.raises(DivergenceError, match="the loss is nan at step 11: lower the learning rate"):
        trainer_of(tmp_path, replace(CONFIG, steps=14), **options).fit(resume=True)


def test_both_clocks_of_a_resumed_run_go_on() -> None:
    found = Clock({"processor_seconds": 500.0, "wall_seconds": 9000.0}).read()
    assert 500 <= found["processor_seconds"] < 600
    assert 9000 <= found["wall_seconds"] < 9100


@pytest.mark.parametrize("steps", [11, 12, 14, 25])
def test_checkpoints_of_a_longer_run(tmp_path: Path, steps: int) -> None:
    """The checkpoint of the old last step, between two intervals, is one of those that are kept."""
    trainer_of(tmp_path).fit()
    trainer = trainer_of(tmp_path, replace(CONFIG, steps=steps))
    trainer.fit(resume=True)
    wanted = sorted({3, 6, 9, 10, *range(12, steps, 3), steps})[-3:]
    assert [int(path.stem[-2:]) for path in trainer.last_checkpoints()] == wanted
    assert find_checkpoints(tmp_path / "checkpoints") == trainer.last_checkpoints()


def test_a_run_that_lost_patience_goes_on_with_more(tmp_path: Path) -> None:
    validation = [WINDOWS.batch(np.arange(3))]
    impatient = replace(CONFIG, lr=0.0, steps=30, patience=2)
    assert len(trainer_of(tmp_path, impatient, validation=validation).fit()) == 9
    assert trainer_of(tmp_path, impatient, validation=validation).fit(resume=True) == []
    patient = replace(impatient, patience=4)
    assert len(trainer_of(tmp_path, patient, validation=validation).fit(resume=True)) == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lr": 0.5}, r"another lr \(0\.02, now 0\.5\): give the settings of the beginning"),
        ({"seed": 7, "betas": (0.8, 0.9)}, r"another betas \(.*, now \[0\.8, 0\.9\]\), seed \(0, now 7\): "),
        ({"optimizer": "muon"}, r"another optimizer \(adamw, now muon\)"),
        ({"steps": 9}, "the run has taken 10 steps already, got steps=9: expected as many, or more"),
    ],
)
def test_other_settings_are_refused(tmp_path: Path, changes: dict, message: str) -> None:
    trainer_of(tmp_path).fit()
    other = trainer_of(tmp_path, replace(CONFIG, **changes))
    before = {name: value.clone() for name, value in other.model.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        other.fit(resume=True)
    assert all(torch.equal(other.model.state_dict()[name], value) for name, value in before.items())


def test_settings_that_may_change(tmp_path: Path) -> None:
    trainer_of(tmp_path).fit()
    free = {"steps": 12, "patience": 3, "eval_interval": 4, "average_last": 1, "accumulate": 2}
    validation = [WINDOWS.batch(np.arange(3))]
    assert len(trainer_of(tmp_path, replace(CONFIG, **free), validation=validation).fit(resume=True)) == 2


@pytest.mark.parametrize("kind", ["sampler", "list"])
def test_other_data_are_refused(tmp_path: Path, kind: str) -> None:
    def batches(ids: torch.Tensor) -> object:
        windows = replace(WINDOWS, ids=ids)
        return windows if kind == "sampler" else [windows.batch(np.arange(5))] * 10

    trainer_of(tmp_path, batches=batches(IDS)).fit()
    with pytest.raises(ValueError, match="the run began with other data: its first batch was another one"):
        trainer_of(tmp_path, batches=batches(10 - IDS)).fit(resume=True)
    assert trainer_of(tmp_path, batches=batches(IDS)).fit(resume=True) == []


@pytest.mark.parametrize("other", [IDS[:12].view(4, 3), IDS[:12].float(), IDS[1:13]])
def test_same_numbers_in_another_form_are_other_data(other: torch.Tensor) -> None:
    batch = IDS[:12].view(3, 4)
    assert hash_first_batch([batch]) == hash_first_batch([batch.clone()]) != hash_first_batch([other])


def test_a_run_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """Its checkpoints know neither settings nor data, and say that it has ended."""
    first = trainer_of(None)
    first.fit()
    plain = [optimizer for optimizer, _ in first.optimizers]
    for step in (6, 9, 10):
        notes = {"ended": step == 10}
        save_checkpoint(tmp_path / "checkpoints", step=step, model=first.model, optimizers=plain, notes=notes)
    assert trainer_of(tmp_path).fit(resume=True) == []
    trainer = trainer_of(tmp_path, replace(CONFIG, steps=12))
    assert len(trainer.fit(resume=True)) == 2
    assert [int(path.stem[-2:]) for path in trainer.last_checkpoints()] == [9, 10, 12]


class Masked:
    """A sampler whose batches depend on chance."""

    def steps(self, *, start_step: int = 0) -> object:
        while True:
            yield np.arange(2)

    def batch(self, rows: np.ndarray) -> torch.Tensor:
        return torch.rand(2)

    def n_targets(self, rows: np.ndarray) -> int:
        return 2


def test_the_first_batch_is_looked_at_without_a_trace() -> None:
    once = iter([torch.ones(2)])
    assert hash_first_batch(once) is None
    assert len(list(once)) == 1
    assert hash_first_batch([]) is None
    set_seed(5)
    wanted = random.random(), np.random.random(), torch.rand(()).item()
    set_seed(5)
    masked = hash_first_batch(Masked())
    assert (random.random(), np.random.random(), torch.rand(()).item()) == wanted
    assert hash_first_batch(Masked()) == masked


def test_a_look_at_the_first_batch_seeds_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two GPUs are simulated by the numbers that their generators were seeded with."""
    seeds = [5, 7]
    if hasattr(torch, "accelerator"):  # a Mac's is another
        monkeypatch.setattr("torch.accelerator.current_accelerator", lambda *_: None)
    monkeypatch.setattr("torch.cuda.device_count", lambda: len(seeds))
    monkeypatch.setattr("torch.cuda.manual_seed_all", lambda seed: seeds.__setitem__(slice(None), [seed] * 2))
    monkeypatch.setattr("torch.cuda.get_rng_state", lambda device: seeds[device])
    monkeypatch.setattr("torch.cuda.set_rng_state", lambda seed, device: seeds.__setitem__(device, seed))
    hash_first_batch(Masked())
    assert seeds == [5, 7]


def test_the_hash_of_a_batch_counts_every_number() -> None:
    ids = torch.tensor([[1, 2], [3, 4]])
    batch = Seq2SeqBatch(ids, ids, ids)
    others = [Seq2SeqBatch(ids, ids, ids + 1), (ids, ids, ids, ids), ids.numpy() + 1, {"x": ids}, {"y": ids}]
    others += ["text", 3, ids, ids.int(), ids.reshape(1, 4), ids.view(torch.float64)]
    hashes = [hash_first_batch([each]) for each in (batch, *others)]
    assert len(set(hashes)) == len(hashes)
    assert hash_first_batch([ids]) == hash_first_batch([ids.numpy()])
    assert hash_first_batch([ids.T]) != hash_first_batch([ids])
    assert hash_first_batch([{"src": ids}]) != hash_first_batch([{"src": ids.flip(0)}])


def test_notes_without_the_tensors(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    path = save_checkpoint(tmp_path, step=3, model=model, optimizers=[], notes={"a": 1})
    assert read_notes(path) == load_checkpoint(path, model=model, optimizers=[]) == (3, {"a": 1})
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        ValueError, match=r"is truncated or corrupt: .*; delete this file, and the run goes on"
    ):
        read_notes(path)
