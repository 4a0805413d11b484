"""Resuming a run: check that its settings and data are those of the beginning, and restore its state."""

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exformer.data.sampler import BatchSampler
from exformer.training.checkpoint import find_checkpoints, load_checkpoint, read_notes
from exformer.training.config import TrainingConfig
from exformer.training.loop import set_seed

#: Settings that may change when a run is resumed. Of these only ``steps`` changes what a step computes: the
#: learning rates of a schedule that ends with the run.
MAY_CHANGE = ("steps", "patience", "eval_interval", "average_last", "accumulate")


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
        run: The run that is to go on, from :func:`describe_run`.
        model, optimizers: They are changed in place.
        resume: Whether there may be checkpoints.

    Returns:
        How far the run has come; None if it has no checkpoint yet.

    Raises:
        ValueError: If there is a checkpoint and ``resume`` is false, or it is damaged or of another run, see
            :func:`check_same_run`.
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


def describe_run(config: TrainingConfig, batches: Any) -> dict[str, Any]:
    """Return the notes by which :func:`check_same_run` recognizes a run, as JSON can hold them."""
    return {"config": json.loads(json.dumps(asdict(config))), "first_batch": hash_first_batch(batches)}


def check_same_run(step: int, notes: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    """Check that a checkpoint is one of this run.

    Args:
        step: How many steps the checkpoint has taken.
        notes: Of the checkpoint; what they lack, as those of earlier versions do, is not compared.
        run: The run that is to go on, from :func:`describe_run`.

    Raises:
        ValueError: If the run began with other settings or another first batch, or has taken too many steps.
    """
    began, now = notes.get("config", {}), run["config"]
    if other := differences(began, {name: value for name, value in now.items() if name in began}):
        raise ValueError(
            f"the run began with another {other}: give the settings of the beginning, or begin a run in "
            f"another folder ({', '.join(MAY_CHANGE)} may change)"
        )
    if (
        None not in (notes.get("first_batch"), run["first_batch"])
        and notes["first_batch"] != run["first_batch"]
    ):
        raise ValueError(
            "the run began with other data: its first batch was another one; give the data of the beginning, "
            "in its order, or begin a run in another folder"
        )
    if step > now["steps"]:
        raise ValueError(
            f"the run has taken {step} steps already, got steps={now['steps']}: expected as many, or more"
        )


def differences(began: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Name the settings that differ and must not, with both values; empty if there are none.

    >>> differences({"lr": 0.1, "seed": 0, "steps": 10}, {"lr": 0.2, "seed": 0, "steps": 20})
    'lr (0.1, now 0.2)'
    """
    names = [name for name in {**began, **now} if name not in MAY_CHANGE and began.get(name) != now.get(name)]
    return ", ".join(f"{name} ({began.get(name)}, now {now.get(name)})" for name in names)


def hash_first_batch(batches: Any) -> str | None:
    """Return the SHA-256 of the first batch; None of batches that would be used up by looking at them.

    Random numbers go on afterwards as if nothing had happened.

    Args:
        batches: A :class:`~exformer.data.sampler.BatchSampler` or a sequence; others give None.
    """
    if not isinstance(batches, BatchSampler) and not (isinstance(batches, Sequence) and len(batches)):
        return None
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        set_seed(0)  # a batch may be masked at random
        first = batches.batch(next(batches.steps())) if isinstance(batches, BatchSampler) else batches[0]
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])
    digest = hashlib.sha256()
    _add(digest, first)
    return digest.hexdigest()


def _add(digest: Any, batch: Any) -> None:
    """Add what a batch holds to a hash: tensors, arrays, numbers and texts, in whatever holds them."""
    if isinstance(batch, Tensor | np.ndarray):
        array = np.ascontiguousarray(batch.detach().cpu() if isinstance(batch, Tensor) else batch)
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    elif is_dataclass(batch):
        _add(digest, [getattr(batch, each.name) for each in fields(batch)])
    elif isinstance(batch, Mapping):
        _add(digest, list(batch.items()))
    elif isinstance(batch, list | tuple):
        for part in batch:
            _add(digest, part)
    elif isinstance(batch, str | int | float):
        digest.update(repr(batch).encode())
