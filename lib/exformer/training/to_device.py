"""The way of a batch to the device on which the model is."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn


def device_of(model: nn.Module) -> torch.device:
    """Return the device on which a model is: that of its first parameter."""
    return next(model.parameters()).device


def to_device(batch: Any, device: torch.device) -> Any:
    """Move a tensor, or the tensors of a dataclass, dict, list or tuple; to a GPU without waiting for it."""
    if isinstance(batch, Tensor):
        if device.type == "cuda" and batch.device.type == "cpu":
            return batch.pin_memory().to(device, non_blocking=True)
        return batch.to(device)
    if is_dataclass(batch):
        return replace(
            batch, **{each.name: to_device(getattr(batch, each.name), device) for each in fields(batch)}
        )
    if isinstance(batch, dict):
        return {name: to_device(each, device) for name, each in batch.items()}
    if isinstance(batch, list | tuple):
        parts = [to_device(each, device) for each in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch
