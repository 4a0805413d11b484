"""What LoRA has learned <-> a folder: its matrices alone, and a card that says to which model they belong."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from exformer.models.unwrap import unwrap
from exformer.nn.lora import add_lora, lora_layers
from exformer.storage.check_weights import check_weights
from exformer.storage.files import make_folder
from exformer.storage.safetensors_file import (
    pack_weights,
    read_card,
    read_tensors,
    replaced_weights,
)

ADAPTER = "adapter.safetensors"


def save_adapter(folder: str | Path, model: nn.Module, *, card: Mapping[str, Any]) -> None:
    """Write what LoRA has learned into a folder, without the model, which stays as it was.

    Args:
        folder: The folder to write to; it is created if need be.
        model: With LoRA, see :func:`~exformer.nn.lora.add_lora`.
        card: Facts about the training that JSON can hold; rank, alpha, targets and the hash of the model's
            frozen weights are added.

    Raises:
        ValueError: If the model has no LoRA, or as :func:`~exformer.storage.safetensors_file.pack_weights`.

    >>> import tempfile
    >>> from exformer import add_lora, load_adapter, load_model
    >>> model, tokenizer, _ = load_model("shakespeare-char")
    >>> model = add_lora(model, rank=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_adapter(folder, model, card={"seed": 0})
    ...     again = load_model("shakespeare-char").model
    ...     load_adapter(folder, again)["rank"]
    2
    """
    model = unwrap(model)
    layers = dict(lora_layers(model))
    if not layers:
        raise ValueError("the model has no LoRA to save: add_lora adds it; save_model saves a whole model")
    first = next(iter(layers.values()))
    own = {
        "kind": "LoRA",
        "rank": first.rank,
        "alpha": first.alpha,
        "targets": list(layers),
        "base": type(model).__name__,
        "base_sha256": _hash(model),
    }
    learned = {
        name: tensor for name, tensor in model.state_dict().items() if name.endswith((".lora_a", ".lora_b"))
    }
    weights, text = pack_weights(learned, card={**own, **card, **own})
    with replaced_weights(make_folder(folder, what="the adapter") / ADAPTER, weights, text):
        pass


def load_adapter(folder: str | Path, model: nn.Module) -> dict[str, Any]:
    """Add LoRA to a model as it was saved; the model must be the one that it was trained for.

    Args:
        folder: That :func:`save_adapter` wrote.
        model: Without LoRA; it is changed.

    Returns:
        The card.

    Raises:
        ValueError: If a file is missing or damaged, or the model is another one or has other weights; then
            the model stays as it was.

    >>> import tempfile
    >>> from exformer import add_lora, load_model, save_adapter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_adapter(folder, add_lora(load_model("shakespeare-char").model, targets=["w_1"]), card={})
    ...     load_adapter(folder, load_model("shakespeare-char").model)["targets"][:1]
    ['layers.0.feed_forward.w_1']
    """
    path, model = Path(folder, ADAPTER), unwrap(model)
    card, found = read_card(path), read_tensors(path)[0]
    if card.get("kind") != "LoRA":
        raise ValueError(f"{folder}: the card must be of kind 'LoRA', got {card.get('kind')!r}")
    if card.get("base_sha256") != _hash(model):
        raise ValueError(
            f"{folder} belongs to a {card.get('base')} with other weights than this {type(model).__name__} "
            "has: load the model for which it was trained"
        )
    rank, alpha, targets = _settings(card, folder=folder)
    modules, wanted = dict(model.named_modules()), {}
    for name in targets:
        linear = modules.get(name)
        if not isinstance(linear, nn.Linear):
            raise ValueError(f"{folder}: the card's target {name} is no linear layer of the model")
        wanted[f"{name}.lora_a"] = torch.empty(rank, linear.in_features, device="meta")
        wanted[f"{name}.lora_b"] = torch.empty(linear.out_features, rank, device="meta")
    check_weights(found, wanted, path=path)
    add_lora(model, rank=rank, alpha=alpha, targets=targets)
    model.load_state_dict(found, strict=False)
    return card


def _settings(card: Mapping[str, Any], *, folder: str | Path) -> tuple[int, float, list[str]]:
    """Return rank, alpha and targets of a card."""
    settings: list[Any] = [card.get(name) for name in ("rank", "alpha", "targets")]
    rank, alpha, targets = settings
    right = type(rank) is int and type(alpha) in (int, float) and isinstance(targets, list)
    if not right or not all(isinstance(name, str) for name in targets):
        raise ValueError(f"{folder}: the card must hold rank, alpha and targets of LoRA, got {settings}")
    return rank, alpha, targets


def _hash(model: nn.Module) -> str:
    """Return the SHA-256 of all weights but those of LoRA, in float32."""
    digest = hashlib.sha256()
    for name, parameter in sorted(model.named_parameters()):
        if not name.endswith((".lora_a", ".lora_b")):
            digest.update(f"{name} {tuple(parameter.shape)}".encode())
            digest.update(parameter.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
