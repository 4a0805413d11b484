"""The device on which a command computes."""

import torch


def choose_device(name: str | None) -> str:
    """Return the device that was asked for, or else a GPU where there is one."""
    has_gpu = torch.cuda.is_available()
    if name == "cuda" and not has_gpu:
        raise ValueError("PyTorch finds no CUDA device here: leave --device out, or give --device cpu")
    return name or ("cuda" if has_gpu else "cpu")
