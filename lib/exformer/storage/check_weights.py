"""Whether weights from a file are those of a model: names, shapes, types of numbers, finite numbers."""

from collections.abc import Collection, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

#: The types of numbers with which models compute.
NUMBERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_SHOWN = 3  # names in a message


def check_weights(
    found: Mapping[str, Tensor], model: nn.Module | Mapping[str, Tensor], *, path: str | Path
) -> None:
    """Check that weights are those of a model of this shape.

    Raises:
        ValueError: If a name is missing or too many, a shape or type of number differs, or a number is not
            finite.
    """
    check_names(found, model.state_dict() if isinstance(model, nn.Module) else model, path=path)
    floating = {name: value for name, value in found.items() if value.is_floating_point()}
    if strange := [name for name, value in floating.items() if value.dtype not in NUMBERS]:
        raise ValueError(
            f"{path} holds weights of a type that models can't compute with: {first_names(strange)}"
        )
    broken = [name for name, value in floating.items() if not value.isfinite().all()]
    if broken:
        raise ValueError(f"{path} holds weights that are NaN or infinite: {first_names(broken)}")


def check_names(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], *, path: str | Path) -> None:
    """Check the names and shapes of tensors.

    Raises:
        ValueError: If they are not the wanted ones.
    """
    missing, unknown = wanted.keys() - found.keys(), found.keys() - wanted.keys()
    if missing or unknown:
        raise ValueError(
            f"{path} does not fit the model: {len(missing)} weights missing ({first_names(missing)}), "
            f"{len(unknown)} unknown ({first_names(unknown)}); was it built with other settings?"
        )
    for name, value in wanted.items():
        if found[name].shape != value.shape or found[name].is_floating_point() != value.is_floating_point():
            raise ValueError(
                f"{path} does not fit the model: {name} is {_kind(found[name])}, expected {_kind(value)}"
            )


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def first_names(names: Collection[str]) -> str:
    """List the first names for a message, and show that there are more."""
    first = sorted(names)[:_SHOWN]
    return ", ".join(first) + (", …" if len(names) > _SHOWN else "") if first else "none"
