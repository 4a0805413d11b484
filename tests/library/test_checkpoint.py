"""Weights and checkpoints: a run that is cut goes on to the same bits; what strangers send can do no harm."""

import json
import multiprocessing
import os
import pickle
import random
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoint_run import STEPS, Run, train_with_checkpoints
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from exformer.storage.files import replace_file
from exformer.training.checkpoint import average_weights, find_checkpoints, load_checkpoint, save_checkpoint
from exformer.training.loop import set_seed
from exformer.training.muon import Muon


def undisturbed(steps: int = STEPS, chance: Callable[[], float] = float) -> dict[str, Tensor]:
    run = Run(chance)
    for _ in range(steps):
        run.step()
    return run.model.state_dict()


def assert_same_bits(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    for name, value in wanted.items():
        assert torch.equal(found[name], value), name


@pytest.mark.parametrize("cut", [1, 5])
def test_a_run_goes_on_as_if_never_cut(tmp_path: Path, cut: int) -> None:
    first = Run()
    for _ in range(cut):
        first.step()
    path = first.save(tmp_path, cut, notes={"batch": 17, "losses": [0.5, 0.25]})
    set_seed(99)  # another process has other random numbers
    second = Run()
    step, notes = second.load(path)
    assert (step, notes) == (cut, {"batch": 17, "losses": [0.5, 0.25]})
    for _ in range(STEPS - cut):
        second.step()
    assert_same_bits(second.model.state_dict(), undisturbed())


def test_muon_goes_on_too(tmp_path: Path) -> None:
    def weights(cut: bool) -> Tensor:
        set_seed(1)
        model = nn.Linear(5, 3, bias=False)
        muon = Muon(model.parameters(), lr=0.02)
        for step in range(4):
            model.zero_grad()
            model(torch.randn(2, 5)).square().sum().backward()
            muon.step()
            if cut and step == 1:
                path = save_checkpoint(tmp_path, step=2, model=model, optimizers=[muon])
                model = nn.Linear(5, 3, bias=False)
                muon = Muon(model.parameters(), lr=0.5)
                load_checkpoint(path, model=model, optimizers=[muon])
        return model.weight.detach()

    assert torch.equal(weights(cut=True), weights(cut=False))


def test_half_of_a_pair_of_normal_numbers_is_kept(tmp_path: Path) -> None:
    """Python and NumPy sample two normal numbers at once, and keep one for the next call."""
    set_seed(3)
    random.gauss(), np.random.standard_normal()
    path = save_checkpoint(tmp_path, step=0, model=nn.Linear(1, 1), optimizers=[])
    wanted = random.gauss(), np.random.standard_normal()
    set_seed(4)
    load_checkpoint(path, model=nn.Linear(1, 1), optimizers=[])
    assert (random.gauss(), np.random.standard_normal()) == wanted


def test_a_part_may_have_the_name_of_a_prefix(tmp_path: Path) -> None:
    model, other = (nn.ModuleDict({"model": nn.ModuleDict({"model": nn.Linear(1, 1)})}) for _ in range(2))
    path = save_checkpoint(tmp_path, step=0, model=model, optimizers=[])
    load_checkpoint(path, model=other, optimizers=[])
    assert_same_bits(other.state_dict(), model.state_dict())


def test_the_mean_is_computed_in_double_precision(tmp_path: Path) -> None:
    model = nn.Linear(1, 1)
    for step, value in enumerate((1e8, 1.0, -1e8)):  # in float32 the 1 is lost beside 10⁸
        nn.init.constant_(model.weight, value)
        save_checkpoint(tmp_path, step=step, model=model, optimizers=[])
    mean = average_weights(find_checkpoints(tmp_path))["weight"]
    assert mean.dtype == torch.float32
    assert mean.item() == pytest.approx(1 / 3)


def test_killed_at_any_moment(tmp_path: Path) -> None:
    """Kill a run twenty times; what is left is always whole, and the end is the same."""
    fork = "forkserver" in multiprocessing.get_all_start_methods()
    processes = multiprocessing.get_context("forkserver" if fork else "spawn")
    if fork:
        processes.set_forkserver_preload(["torch", "exformer.training.checkpoint", "exformer.training.loop"])
    moments = random.Random(0)
    for _ in range(20):
        before = len(find_checkpoints(tmp_path))
        process = processes.Process(target=train_with_checkpoints, args=(tmp_path,))
        process.start()
        while len(find_checkpoints(tmp_path)) == before == 0 and process.is_alive():
            time.sleep(0.005)
        time.sleep(moments.uniform(0.0, 0.1))
        process.kill()
        process.join()
        for path in find_checkpoints(tmp_path):
            Run().load(path)
        assert find_checkpoints(tmp_path)
    process = processes.Process(target=train_with_checkpoints, args=(tmp_path,))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    run = Run()
    assert run.load(find_checkpoints(tmp_path)[-1])[0] == STEPS
    assert_same_bits(run.model.state_dict(), undisturbed(chance=random.random))


def test_the_oldest_go(tmp_path: Path) -> None:
    run = Run()
    for step in (8, 9, 10, 100):
        run.save(tmp_path, step, keep=2)
    names = [path.name for path in find_checkpoints(tmp_path)]
    assert names == ["step_00000010.safetensors", "step_00000100.safetensors"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_what_was_just_written_stays(tmp_path: Path) -> None:
    run = Run()
    run.save(tmp_path, 100, keep=1)
    assert run.save(tmp_path, 5, keep=1).exists()
    run.save(tmp_path, 101, keep=1)
    assert [path.stem for path in find_checkpoints(tmp_path)] == ["step_00000101"]


def test_steps_of_nine_digits_come_last(tmp_path: Path) -> None:
    paths = [Run().save(tmp_path, step) for step in (10**8, 10**8 - 1, 10**8 + 1)]
    (tmp_path / "step_00000001 (copy).safetensors").touch()
    assert find_checkpoints(tmp_path) == [paths[1], paths[0], paths[2]]


def test_the_mean_of_checkpoints(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    for step, value in enumerate((1.0, 2.0, 6.0)):
        nn.init.constant_(model.weight, value)
        save_checkpoint(tmp_path, step=step, model=model, optimizers=[])
    mean = average_weights(find_checkpoints(tmp_path))
    assert mean["weight"].tolist() == [[3.0, 3.0]]
    assert torch.equal(mean["bias"], model.bias)
    with pytest.raises(ValueError, match="at least one checkpoint"):
        average_weights([])
    other = save_checkpoint(tmp_path / "other", step=1, model=nn.Linear(3, 1), optimizers=[])
    with pytest.raises(ValueError, match="does not fit the model: weight is float32"):
        average_weights([*find_checkpoints(tmp_path), other])


def test_a_mean_in_half_precision(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    model.register_buffer("count", torch.tensor([70_001, 5]))
    for step, value in ((1, 1.0), (2, 1.0 + 2**-12)):  # float16 has the first, not the mean
        nn.init.constant_(model.weight, value)
        save_checkpoint(tmp_path, step=step, model=model, optimizers=[])
    mean = average_weights(find_checkpoints(tmp_path), dtype=torch.float16)
    assert mean["weight"].dtype == torch.float16
    assert torch.equal(mean["weight"], torch.ones(1, 2, dtype=torch.float16))
    assert mean["count"].dtype == torch.int64
    assert mean["count"].tolist() == [70_001, 5]


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(
    ("step", "keep", "message"),
    [
        (1, 0, "keep must be at least 1, got 0"),
        (-1, 1, "step must be at least 0, got -1"),
        (3.0, 1, r"step must be an integer, got 3\.0"),  # its file would never be found
    ],
)
def test_numbers_that_make_no_sense(tmp_path: Path, step: float, keep: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Run().save(tmp_path, step, keep=keep)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    kept = run.save(tmp_path, 1)
    bytes_before = kept.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*step_00000002\.safetensors"):
        run.save(tmp_path, 2)
    assert [path.name for path in tmp_path.iterdir()] == [kept.name]
    assert kept.read_bytes() == bytes_before


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    with pytest.raises(OSError, match="file"):
        Run().save(tmp_path / "file" / "run", 1)
    with pytest.raises(OSError, match="weights"):
        replace_file(tmp_path / "nowhere" / "weights.safetensors", b"")


class Trap:
    """A pickle of it would make a file where it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return Path.touch, (self.path,)


def strange_files(folder: Path) -> list[Path]:
    """Write files that are no whole safetensors file."""
    good = Run().save(folder / "good", 1).read_bytes()
    contents = {
        "empty": b"",
        "text": b"<html>not found</html>",
        "cut": good[: len(good) // 2],
        "header_only": good[: 8 + struct.unpack("<Q", good[:8])[0]],
        "huge_header": struct.pack("<Q", 2**62) + good[8:],
        "long_header": struct.pack("<Q", 2**27) + good[8:],
        "pickle": pickle.dumps(Trap(folder / "sprung")),
    }
    paths = []
    for name, content in contents.items():
        paths.append(folder / f"{name}.safetensors")
        paths[-1].write_bytes(content)
    torch.save({"trap": Trap(folder / "sprung")}, folder / "torch.safetensors")
    return [*paths, folder / "torch.safetensors", folder / "nothing.safetensors"]


def test_strange_files_are_refused(tmp_path: Path) -> None:
    run = Run()
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    for path in strange_files(tmp_path):
        with pytest.raises(ValueError, match=r"is truncated or corrupt|nothing.* can't be read: No such"):
            run.load(path)
    assert_same_bits(run.model.state_dict(), before)
    assert not (tmp_path / "sprung").exists()


def changed(path: Path, name: str, value: Tensor | None, **notes: str) -> Path:
    """Write a checkpoint with another tensor, or without it, or with other notes."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as opened:
        kept = opened.metadata() | notes
    tensors = load_file(path) | ({} if value is None else {name: value})
    if value is None:
        tensors.pop(name, None)
    new = path.with_name("changed.safetensors")
    save_file(tensors, new, metadata=kept)
    return new


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("model.0.weight", None, r"1 weights missing \(0\.weight\), 0 unknown \(none\)"),
        ("model.9.weight", torch.ones(1), r"0 weights missing \(none\), 1 unknown \(9\.weight\)"),
        ("model.0.weight", torch.ones(3, 5), r"0\.weight is float32 \(3, 5\), expected float32 \(5, 3\)"),
        ("model.0.weight", torch.ones(5, 3).int(), r"0\.weight is int32 \(5, 3\), expected float32 \(5, 3\)"),
        ("model.0.bias", torch.full((5,), torch.nan), r"weights that are NaN or infinite: 0\.bias"),
        ("model.0.bias", torch.tensor([0, 0, torch.inf, 0, 0]), r"weights that are NaN or infinite: 0\.bias"),
        ("optimizer.0.0.momentum_buffer", torch.ones(2, 2), "momentum_buffer of parameter 0"),
        ("optimizer.0.0.momentum_buffer", torch.ones(()), "momentum_buffer of parameter 0"),
        ("optimizer.0.0.momentum_buffer", None, r"a part of the optimizer's state is .*0\.momentum_buffer"),
        ("optimizer.0.7.momentum_buffer", torch.ones(5), r"missing or extra \(7\.momentum_buffer\)"),
        ("optimizer.0.x.momentum_buffer", torch.ones(5), "the optimizer's state can't be read"),
        ("random.torch", None, "a part of its state is missing"),
    ],
)
def test_a_checkpoint_of_something_else(
    tmp_path: Path, name: str, value: Tensor | None, message: str
) -> None:
    run = Run()
    run.step()
    path = changed(run.save(tmp_path, 1), name, value)
    torch.rand(1)
    chance = torch.get_rng_state()
    with pytest.raises(ValueError, match=message):
        run.load(path)
    assert torch.equal(torch.get_rng_state(), chance)


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        ({"format": "another"}, "is not a checkpoint: expected the format"),
        ({"state": "{"}, "its state is not a JSON object"),
        ({"state": "[]"}, "its state is not a JSON object"),
        ({"state": "{}"}, "a part of its state is missing"),
    ],
)
def test_damaged_notes(tmp_path: Path, notes: dict[str, str], message: str) -> None:
    path = changed(Run().save(tmp_path, 1), "", None, **notes)
    with pytest.raises(ValueError, match=message):
        Run().load(path)


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("random", {}, "random number states can't be restored"),
        (
            "random",
            {"python": [3, [1], None], "numpy": ["MT19937", [1], 0, 0, 0.0]},
            "states can't be restored",
        ),
        ("optimizers", None, "a part of its state is missing"),
    ],
)
def test_damaged_state_changes_nothing(tmp_path: Path, part: str, value: object, message: str) -> None:
    from safetensors import safe_open

    run = Run()
    path = run.save(tmp_path, 1)
    with safe_open(path, framework="pt") as opened:
        state = json.loads(opened.metadata()["state"])
    path = changed(path, "", None, state=json.dumps(state | {part: value}))
    run.step()
    before = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        run.load(path)
    assert_same_bits(run.model.state_dict(), before)


def test_other_optimizers(tmp_path: Path) -> None:
    run = Run()
    path = run.save(tmp_path, 1)
    first, second = run.optimizers
    with pytest.raises(ValueError, match="has 2 optimizers, expected 1"):
        load_checkpoint(path, model=run.model, optimizers=[first])
    with pytest.raises(ValueError, match=r"over .* parameters, expected the run's own"):
        load_checkpoint(path, model=run.model, optimizers=[second, first])
    adam = torch.optim.AdamW(first.param_groups[0]["params"])
    with pytest.raises(ValueError, match="of another kind than AdamW"):
        load_checkpoint(path, model=run.model, optimizers=[adam, second])


def test_a_state_of_other_shapes_is_refused_at_the_save(tmp_path: Path) -> None:
    layer = nn.Linear(4, 3)
    optimizers = [torch.optim.Adafactor(layer.parameters())]
    save_checkpoint(tmp_path, step=0, model=layer, optimizers=optimizers)  # it has no state yet
    layer(torch.ones(4)).sum().backward()
    optimizers[0].step()
    with pytest.raises(ValueError, match=r"Adafactor keeps a \w+ of parameter 0 in another shape .* AdamW"):
        save_checkpoint(tmp_path, step=1, model=layer, optimizers=optimizers)
    assert len(find_checkpoints(tmp_path)) == 1


def test_the_state_is_readable_by_others(tmp_path: Path) -> None:
    """The file is plain safetensors: names, and JSON in its header."""
    path = Run().save(tmp_path, 3)
    size = struct.unpack("<Q", path.read_bytes()[:8])[0]
    header = json.loads(path.read_bytes()[8 : 8 + size])
    assert json.loads(header["__metadata__"]["state"])["step"] == 3
    assert header["model.0.weight"]["shape"] == [5, 3]
    assert sys.byteorder == "little" or header
