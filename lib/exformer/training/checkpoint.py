"""Checkpoints: weights, optimizers and random number states, so that a run can be resumed exactly."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from safetensors.torch import save
from torch import Tensor, nn

from exformer.check_settings import check_integer
from exformer.storage.check_weights import check_names, check_weights
from exformer.storage.files import replace_file
from exformer.storage.safetensors_file import read_header, read_tensors
from exformer.storage.upgrade import upgrade_weights
from exformer.training.resume_check import check_same_run

_FORMAT = "exformer checkpoint 1"
_OPTIMIZERS = Sequence[torch.optim.Optimizer]


def save_checkpoint(
    folder: str | Path,
    *,
    step: int,
    model: nn.Module,
    optimizers: _OPTIMIZERS,
    notes: Mapping[str, Any] | None = None,
    keep: int = 3,
) -> Path:
    """Write a checkpoint, all that a run needs to be resumed, as one file; then delete the oldest ones.

    Args:
        folder: The folder of the checkpoints; it is created if need be.
        step: Number of steps taken.
        model: Its parameters and buffers are saved.
        optimizers: Their states are saved, in this order.
        notes: Other facts that JSON can hold, such as losses and seconds.
        keep: Number of checkpoints that stay in the folder, at least 1: those with the most steps. The one
            that is written stays in any case.

    Returns:
        The file.

    Raises:
        ValueError: If keep is below 1, step below 0, or one is not an integer; if an optimizer's state has
            other shapes than its parameters, as Adafactor's.
        OSError: If the file can't be written; the earlier checkpoints are still there.
    """
    step, keep = check_integer("step", step, least=0), check_integer("keep", keep, least=1)
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors["random.torch"] = torch.get_rng_state()
    for device, state in enumerate(torch.cuda.get_rng_state_all()):  # none without a GPU
        tensors[f"random.cuda.{device}"] = state
    settings = []
    for number, optimizer in enumerate(optimizers):
        if misfit := _misfit(optimizer, optimizer.state_dict()["state"]):
            raise ValueError(
                f"{type(optimizer).__name__} keeps a {misfit} in another shape than the parameter's, which a "
                "checkpoint can't restore: use an optimizer like AdamW, SGD or Muon"
            )
        found, plain = _flatten_state(optimizer)
        tensors |= {f"optimizer.{number}.{name}": value for name, value in found.items()}
        settings.append(plain)
    name, keys, *rest = np.random.get_state()
    state = {
        "step": step,
        "optimizers": settings,
        "random": {"python": random.getstate(), "numpy": [name, keys.tolist(), *rest]},
        "notes": dict(notes or {}),
    }
    path = checkpoint_path(folder, step)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Copies, because tied parameters share their memory, and safetensors wants each name with its own.
    ready = {name: value.detach().to("cpu", copy=True).contiguous() for name, value in tensors.items()}
    replace_file(path, save(ready, {"format": _FORMAT, "state": json.dumps(state)}))
    for old in find_checkpoints(folder)[:-keep]:
        if old != path:
            old.unlink()
    return path


def checkpoint_path(folder: str | Path, step: int) -> Path:
    """Return the path of the checkpoint of a step."""
    return Path(folder) / f"step_{step:08}.safetensors"


def find_checkpoints(folder: str | Path) -> list[Path]:
    """Return the checkpoints of a folder, oldest first; a missing folder has none."""
    paths = Path(folder).glob("step_????????*.safetensors")
    checkpoints = [path for path in paths if path.stem.removeprefix("step_").isdecimal()]
    return sorted(
        checkpoints, key=lambda path: (len(path.name), path.name)
    )  # step 100,000,000 has a digit more


@dataclass(frozen=True)
class RunState:
    """How far a run has come, as its last checkpoint knows it.

    Args:
        step: Number of steps that were taken.
        notes: What the checkpoint holds beside weights.
        saved: Steps of the checkpoints that the run keeps, oldest first.
    """

    step: int
    notes: dict[str, Any]
    saved: list[int]


def restore_run(
    checkpoints: Path,
    run: Mapping[str, Any],
    *,
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
    resume: bool,
) -> RunState | None:
    """Restore a model and its optimizers from the last checkpoint of a run.

    Args:
        checkpoints: The folder of the checkpoints.
        run: The run that is to go on, from :func:`~exformer.training.resume_check.describe_run`.
        model, optimizers: They are changed in place.
        resume: Whether there may be checkpoints.

    Returns:
        How far the run has come; None if it has no checkpoint yet.

    Raises:
        ValueError: If there is a checkpoint and ``resume`` is false, or it is damaged or of another run, see
            :func:`~exformer.training.resume_check.check_same_run`.
    """
    found = find_checkpoints(checkpoints)
    if not found:
        return None
    if not resume:
        raise ValueError(f"{checkpoints} holds a run: resume it, or choose another folder")
    check_same_run(*read_notes(found[-1]), run)
    step, notes = load_checkpoint(found[-1], model=model, optimizers=optimizers)
    interval = run["config"]["eval_interval"]
    saved = notes.get("checkpoints", [*range(interval, step, interval), step])  # older notes lack them
    return RunState(step, notes, saved)


def load_checkpoint(path: str | Path, *, model: nn.Module, optimizers: _OPTIMIZERS) -> tuple[int, dict]:
    """Restore the state of a run from a checkpoint.

    Args:
        path: The file.
        model: A model of the same shape as the one that was saved.
        optimizers: Optimizers of the same kinds, in the same order.

    Returns:
        The number of steps taken, and the notes.

    Raises:
        ValueError: If the file is not a checkpoint, is damaged, or is of another model or optimizer.
    """
    tensors, state = _read(path)
    weights = upgrade_weights(_with_prefix(tensors, "model."))
    check_weights(weights, model, path=path)
    if len(state["optimizers"]) != len(optimizers):
        raise ValueError(
            f"{path} has {len(state['optimizers'])} optimizers, expected {len(optimizers)}: "
            "give those of the run that wrote it"
        )
    for number, (optimizer, plain) in enumerate(zip(optimizers, state["optimizers"], strict=True)):
        _restore_optimizer(optimizer, _with_prefix(tensors, f"optimizer.{number}."), plain, path=path)
    _restore_random_state(state["random"], tensors, path=path)
    model.load_state_dict(weights)
    return state["step"], state["notes"]


def read_notes(path: str | Path) -> tuple[int, dict[str, Any]]:
    """Return the number of steps that a checkpoint has taken and its notes, without reading the tensors.

    Raises:
        ValueError: As :func:`load_checkpoint`.
    """
    with _remedy():
        header = read_header(path)
    state = _parse_state(header, path)
    return state["step"], state["notes"]


def _flatten_state(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Split an optimizer's state into tensors by names as "0.exp_avg", and the rest, which JSON can hold."""
    whole = optimizer.state_dict()
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Any] = {}
    for index, state in whole["state"].items():
        for name, value in state.items():
            (tensors if isinstance(value, Tensor) else numbers)[f"{index}.{name}"] = value
    return tensors, {"numbers": numbers, "tensors": sorted(tensors), "groups": whole["param_groups"]}


def _restore_optimizer(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], plain: Any, *, path: str | Path
) -> None:
    """Restore an optimizer from what :func:`_flatten_state` gave, after a check that it fits."""
    try:
        numbers, groups, names = plain["numbers"], plain["groups"], set(plain.get("tensors", tensors))
        counts = [len(group["params"]) for group in groups]
        settings = [group.keys() for group in groups]
        state: dict[int, dict[str, Any]] = {}
        for name, value in {**numbers, **tensors}.items():
            index, _, key = name.partition(".")
            state.setdefault(int(index), {})[key] = value
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: the optimizer's state can't be read ({error})") from error
    if names != tensors.keys():  # checkpoints from before names were noted pass
        other = sorted(names ^ tensors.keys())
        raise ValueError(
            f"{path} is damaged: a part of the optimizer's state is missing or extra ({other[0]})"
        )
    if counts != [len(group["params"]) for group in optimizer.param_groups]:
        raise ValueError(f"{path} holds an optimizer over {counts} parameters, expected the run's own")
    if settings != [group.keys() for group in optimizer.param_groups]:
        raise ValueError(f"{path} holds an optimizer of another kind than {type(optimizer).__name__}")
    if misfit := _misfit(optimizer, state):
        raise ValueError(f"{path} does not fit the optimizer: {misfit}")
    for group in groups:  # JSON made lists of pairs
        group.update({k: tuple(v) for k, v in group.items() if isinstance(v, list) and k != "params"})
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _misfit(optimizer: torch.optim.Optimizer, state: Mapping[int, Mapping[str, Any]]) -> str:
    """Name a tensor of a state that has another shape than its parameter; empty if there is none."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for index, found in state.items():
        for key, value in found.items():
            fits = 0 <= index < len(parameters)
            if fits and isinstance(value, Tensor):  # the count of the steps is one number
                fits = value.shape == (torch.Size() if key == "step" else parameters[index].shape)
            if not fits:
                return f"{key} of parameter {index}"
    return ""


def _restore_random_state(found: Any, tensors: Mapping[str, Tensor], *, path: str | Path) -> None:
    """Restore the states of all random number generators."""
    try:
        version, words, gauss = found["python"]
        random.setstate((version, tuple(words), gauss))
        name, keys, *rest = found["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        torch.set_rng_state(tensors["random.torch"])
        for device in range(torch.cuda.device_count()):
            if f"random.cuda.{device}" in tensors:
                torch.cuda.set_rng_state(tensors[f"random.cuda.{device}"], device)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{path} is damaged: its random number states can't be restored ({error})"
        ) from error


def average_weights(
    paths: Sequence[str | Path], *, dtype: torch.dtype | None = None
) -> dict[str, Float[Tensor, "..."]]:
    """Return the mean of the weights of several checkpoints, for ``model.load_state_dict``.

    Args:
        paths: The checkpoints, of the same model.
        dtype: The type to which the mean is rounded, such as ``torch.float16``; None: that of the
            checkpoints.

    Raises:
        ValueError: If there is none, or their weights have other names or shapes.

    Source:
        Vaswani et al. 2017, section 6.1.
    """
    if not paths:
        raise ValueError("expected at least one checkpoint to take the mean of, got none")
    many = [upgrade_weights(_with_prefix(_read(path)[0], "model.")) for path in paths]
    for path, one in zip(paths, many, strict=True):
        check_names(one, many[0], path=path)
    mean = {}
    for name, first in many[0].items():
        wanted = dtype if dtype and first.is_floating_point() else first.dtype
        mean[name] = torch.stack([one[name].double() for one in many]).mean(dim=0).to(wanted)
    return mean


def _read(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors of a checkpoint and its state."""
    with _remedy():
        tensors, header = read_tensors(path)
    state = _parse_state(header, path)
    if "random.torch" not in tensors:
        raise ValueError(f"{path} is damaged: a part of its state is missing")
    return tensors, state


@contextmanager
def _remedy() -> Iterator[None]:
    """Add the remedy to the message about a damaged checkpoint: a full disk cuts only the newest one."""
    try:
        yield
    except ValueError as error:
        raise ValueError(
            f"{error}; delete this file, and the run goes on from the checkpoint before it"
        ) from error


def _parse_state(header: Mapping[str, str], path: str | Path) -> dict[str, Any]:
    """Return the state that the header of a checkpoint holds as JSON."""
    if header.get("format") != _FORMAT:
        raise ValueError(f"{path} is not a checkpoint: expected the format {_FORMAT!r}")
    try:
        state = json.loads(header["state"])
        complete = {"step", "optimizers", "random", "notes"} <= state.keys()
        complete &= isinstance(state["optimizers"], list) and isinstance(state["notes"], dict)
    except (ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: its state is not a JSON object ({error})") from error
    except KeyError:
        complete = False
    if not complete:
        raise ValueError(f"{path} is damaged: a part of its state is missing")
    return state


def _with_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names have a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
