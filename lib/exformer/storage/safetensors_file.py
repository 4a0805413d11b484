"""A model's weights <-> a safetensors file, and the card that says where they come from."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from exformer.storage.check_weights import NUMBERS
from exformer.storage.files import read_json, staged_file


def pack_weights(
    model: nn.Module | Mapping[str, Tensor], *, card: Mapping[str, Any], dtype: torch.dtype | None = None
) -> tuple[bytes, bytes]:
    """Make the content of two files: a model's parameters and buffers as safetensors, and its card as JSON.

    Args:
        model: The model, or tensors by name.
        card: Facts about them that JSON can hold: recipe, seed, data, time, scores.
        dtype: The type of the numbers in the file, such as ``torch.float16`` for half the bytes; None: their
            own.

    Returns:
        The weights, and the card.

    Raises:
        ValueError: If a number is not finite or too large for the type, the type is not one of floating
            point, or JSON can't hold the card.
    """
    if dtype not in (None, *NUMBERS):
        raise ValueError(f"expected a dtype of {NUMBERS}, or None for the weights' own, got {dtype}")
    found = model.state_dict() if isinstance(model, nn.Module) else model
    tensors = {name: _to_cpu_tensor(name, value, dtype) for name, value in found.items()}
    try:
        text = json.dumps(dict(card), indent=2, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"expected a card of what JSON can hold: {error}") from error
    return save(tensors), f"{text}\n".encode()


@contextmanager
def replaced_weights(path: str | Path, weights: bytes, card: bytes) -> Iterator[None]:
    """Replace weights and their card; the body writes the files that belong to them.

    Both are on the disk before the old card is deleted: a full disk leaves everything as it was. The new card
    is written last: if this is interrupted, there is none.

    Args:
        path: The file of the weights, ending in .safetensors; the card's has the same name with .json.
        weights, card: As :func:`pack_weights` gives them.

    Raises:
        OSError: If a file can't be written.
    """
    card_path = Path(path).with_suffix(".json")
    with staged_file(path, weights) as put_weights, staged_file(card_path, card) as put_card:
        card_path.resolve().unlink(missing_ok=True)  # a link stays a link
        yield
        put_weights()
        put_card()


def read_card(path: str | Path) -> dict[str, Any]:
    """Return the card of the weights in a file.

    Raises:
        ValueError: If the card is missing or not a JSON object.
    """
    path = Path(path).with_suffix(".json")
    if not path.exists():
        raise ValueError(
            f"there is no card {path}: it is written last, so saving may have been cut; save the model again"
        )
    return read_json(path, what="a card")


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors of a safetensors file, and the notes in its header; nothing in it is run.

    Raises:
        ValueError: If the file can't be read, is truncated, corrupt or of another kind.
    """
    with _open_tensors(path) as opened:
        names = opened.keys()
        return {name: opened.get_tensor(name) for name in names}, opened.metadata() or {}


def read_header(path: str | Path) -> dict[str, str]:
    """Return the notes in the header of a safetensors file, without reading its tensors.

    Raises:
        ValueError: As :func:`read_tensors`.
    """
    with _open_tensors(path) as opened:
        return opened.metadata() or {}


@contextmanager
def _open_tensors(path: str | Path) -> Iterator[Any]:
    """Open a safetensors file."""
    try:
        Path(path).open("rb").close()  # safetensors says "no such file" of one that may not be read
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}") from error
    try:
        with safe_open(path, framework="pt") as opened:
            yield opened
    except (SafetensorError, OSError, OverflowError) as error:
        raise ValueError(f"{path} is truncated or corrupt: expected a safetensors file ({error})") from error


def _to_cpu_tensor(name: str, tensor: Tensor, dtype: torch.dtype | None) -> Tensor:
    """Return a tensor on the CPU, contiguous and of the type that the file has."""
    own = tensor.detach().cpu().contiguous()
    if not own.is_floating_point():
        return own
    if not own.isfinite().all():
        raise ValueError(f"{name} has numbers that are not finite: a model with them can't be loaded again")
    if dtype is None:
        return own
    if not own.to(dtype).isfinite().all():
        raise ValueError(f"{name} has numbers that {dtype} can't hold: save it with another dtype")
    return own.to(dtype)
