"""A run that goes on is the same run: check that its settings and data are those of the beginning."""

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from exformer.data.sampler import BatchSampler
from exformer.training.config import TrainingConfig
from exformer.training.seed import set_seed

#: Settings that may change when a run is resumed. Of these only ``steps`` changes what a step computes: the
#: learning rates of a schedule that ends with the run.
MAY_CHANGE = ("steps", "patience", "eval_interval", "average_last", "accumulate")


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
    states = random.getstate(), np.random.get_state()
    gpus = range(torch.cuda.device_count()) or None  # PyTorch warns of several that are not named
    try:
        with torch.random.fork_rng(gpus):
            set_seed(0)  # a batch may be masked at random
            first = batches.batch(next(batches.steps())) if isinstance(batches, BatchSampler) else batches[0]
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
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
