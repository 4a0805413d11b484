"""What the configurations of all models have in common: what they refuse, and switches of the layers."""

from dataclasses import fields
from typing import Any

from torch import Tensor, nn

from exformer.data.padding import check_batch
from exformer.nn.feedforward import ACTIVATIONS
from exformer.nn.initialization import zero_outputs
from exformer.nn.positions.absolute import POSITIONS, NoPositions
from exformer.nn.positions.alibi import ALiBi
from exformer.nn.positions.rotary import RotaryPositions
from exformer.nn.qk_norm import normalize_heads

_COUNTS = ("d_model", "n_heads", "d_ff", "n_layers", "max_len")

#: Positions that act on queries and keys, by name; those of ``positional`` are added to the vectors.
RELATIVE_POSITIONS: dict[str, type[nn.Module]] = {"rotary": RotaryPositions, "alibi": ALiBi}


def check_config(config: Any) -> None:
    """Refuse a configuration from which no model can be built.

    Args:
        config: A model's dataclass.

    Raises:
        ValueError: If a size is below 1, the heads don't divide the width, dropout is outside [0, 1), padding
            is no symbol of a vocabulary, positions or activation are unknown, rotary positions would have to
            turn an odd number of columns, or two vocabularies are to share a table but differ.
    """
    for field in fields(config):
        value = getattr(config, field.name)
        if (field.name in _COUNTS or field.name.endswith("vocab_size")) and value < 1:
            raise ValueError(f"{field.name} must be at least 1, got {value}")
    smallest = min(getattr(config, f.name) for f in fields(config) if f.name.endswith("vocab_size"))
    if not 0 <= getattr(config, "pad_id", 0) < smallest:
        raise ValueError(f"pad_id must lie from 0 to {smallest - 1}, got {config.pad_id}")
    if not 0.0 <= config.dropout < 1.0:
        raise ValueError(f"dropout must lie in [0, 1), got {config.dropout}")
    if getattr(config, "share_embeddings", False) and config.src_vocab_size != config.tgt_vocab_size:
        raise ValueError(
            f"to share embeddings, source and target must have one vocabulary, got {config.src_vocab_size} "
            f"and {config.tgt_vocab_size} symbols"
        )
    _check_names(config)
    n_heads = getattr(config, "n_heads", 1)
    if config.d_model % n_heads:
        raise ValueError(f"d_model ({config.d_model}) must be divisible by n_heads ({n_heads})")
    if getattr(config, "positions", "none") == "rotary" and config.d_model // n_heads % 2:
        raise ValueError(
            "rotary positions turn columns in pairs: "
            f"d_model / n_heads ({config.d_model // n_heads}) must be even"
        )


def _check_names(config: Any) -> None:
    choices = {"positions": (*POSITIONS, *RELATIVE_POSITIONS, "none"), "activation": (*ACTIVATIONS,)}
    for setting, names in choices.items():
        if hasattr(config, setting) and getattr(config, setting) not in names:
            raise ValueError(f"{setting} must be one of {', '.join(names)}, got {getattr(config, setting)!r}")


def check_ids(ids: Tensor, *, max_len: int) -> None:
    """Refuse texts that a model can't read.

    Args:
        ids: The texts.
        max_len: Longest text of the model, in symbols.

    Raises:
        ValueError: If they are not (batch, time), or too long.
    """
    check_batch(ids)
    check_length(ids.size(1), max_len=max_len)


def check_length(n: int, *, max_len: int) -> None:
    """Refuse a text that is longer than a model can read.

    Args:
        n: How many symbols it has.
        max_len: Longest text of the model, in symbols.

    Raises:
        ValueError: If it is too long.
    """
    if n > max_len:
        raise ValueError(
            f"the text has {n} symbols and max_len is {max_len}: "
            "cut it, or build the model with a larger max_len"
        )


def added_positions(config: Any) -> nn.Module:
    """Make what is added to the vectors of a sequence: the code of each position, or nothing.

    Args:
        config: A model's dataclass.
    """
    added = POSITIONS.get(config.positions)
    return added(config.d_model, max_len=config.max_len) if added else NoPositions(max_len=config.max_len)


def relative_positions(config: Any) -> nn.Module | None:
    """Make what tells the self-attention of a layer the distances; None if nothing does.

    Args:
        config: A model's dataclass.
    """
    relative = RELATIVE_POSITIONS.get(config.positions)
    return relative() if relative else None


def apply_switches(config: Any, *stacks: nn.Module) -> None:
    """Do to new layers what a configuration switches on.

    ``qk_norm`` normalizes the queries and keys of every head (:func:`~exformer.nn.qk_norm.normalize_heads`);
    with ``zero_init`` the layers add nothing yet (:func:`~exformer.nn.initialization.zero_outputs`).

    Args:
        config: A model's dataclass.
        stacks: The layers.
    """
    for stack in stacks:
        if config.qk_norm:
            normalize_heads(stack)
        if config.zero_init:
            zero_outputs(stack)
