"""An optimizer's state <-> tensors with names, and the rest as JSON can hold it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def flatten_state(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Take an optimizer's state apart.

    Args:
        optimizer: Any whose state is tensors and numbers: AdamW, Muon, SGD.

    Returns:
        The tensors by number of parameter and name, "0.exp_avg"; these names, the numbers and the settings,
        for JSON.
    """
    whole = optimizer.state_dict()
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Any] = {}
    for index, state in whole["state"].items():
        for name, value in state.items():
            (tensors if isinstance(value, Tensor) else numbers)[f"{index}.{name}"] = value
    return tensors, {"numbers": numbers, "tensors": sorted(tensors), "groups": whole["param_groups"]}


def restore_state(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], plain: Any, *, path: str | Path
) -> None:
    """Put what :func:`flatten_state` gave into an optimizer.

    Args:
        optimizer: Of the kind that was taken apart, over parameters of the same shapes.
        tensors: Its tensors.
        plain: Their names, its numbers and settings.
        path: The file from which they come, for messages.

    Raises:
        ValueError: If they are those of another optimizer, or damaged.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
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
        apart = sorted(names ^ tensors.keys())
        raise ValueError(
            f"{path} is damaged: not all of the optimizer's state is there, or too much ({apart[0]})"
        )
    if counts != [len(group["params"]) for group in optimizer.param_groups]:
        raise ValueError(f"{path} holds an optimizer over {counts} parameters, expected the run's own")
    if settings != [group.keys() for group in optimizer.param_groups]:
        raise ValueError(f"{path} holds an optimizer of another kind than {type(optimizer).__name__}")
    for index, found in state.items():
        for key, value in found.items():
            fits = 0 <= index < len(parameters)
            if fits and isinstance(value, Tensor):  # the count of the steps is one number
                fits = value.shape == (torch.Size() if key == "step" else parameters[index].shape)
            if not fits:
                raise ValueError(f"{path} does not fit the optimizer: {key} of parameter {index}")
    for group in groups:  # JSON made lists of pairs
        group.update({k: tuple(v) for k, v in group.items() if isinstance(v, list) and k != "params"})
    optimizer.load_state_dict({"state": state, "param_groups": groups})
