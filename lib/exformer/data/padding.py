"""Sequences of unequal length -> one tensor: padding after the text, or before it.

========================  ==========================  ==========================
sequences                 ``pad``: for training       ``pad_left``: for generation
========================  ==========================  ==========================
``5 6 7``                 ``5 6 7``                   ``5 6 7``
``8``                     ``8 0 0``                   ``0 0 8``
``9 4``                   ``9 4 0``                   ``0 9 4``
========================  ==========================  ==========================
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor


def pad(sequences: Sequence[Sequence[int]], *, pad_id: int) -> Int64[Tensor, "batch position"]:
    """Put sequences of ids into one tensor, as wide as the longest, with padding after the shorter ones.

    A model that learns from them must have the same ``pad_id`` in its config, so that padding has no loss.

    Raises:
        ValueError: If no sequence has an id, or something is not an integer.

    >>> pad([[5, 6, 7], [8], [9, 4]], pad_id=0)
    tensor([[5, 6, 7],
            [8, 0, 0],
            [9, 4, 0]])
    """
    _check(sequences)
    width = max(map(len, sequences), default=0)
    if width == 0:
        raise ValueError(f"expected at least one id, got {len(sequences)} empty sequences")
    rows = np.full((len(sequences), width), pad_id, dtype=np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return torch.from_numpy(rows)


def pad_left(sequences: Sequence[Sequence[int]], *, pad_id: int) -> Int64[Tensor, "batch position"]:
    """Put prompts of unequal lengths into one tensor, with padding before the shorter ones.

    So the last token of each is in the last column, and the next token of every row is one more column. A
    model must neither attend to the padding nor count it as positions.

    Raises:
        ValueError: If there is no sequence, one has no id, or something is not an integer.

    >>> pad_left([[5, 6, 7], [8], [9, 4]], pad_id=0)
    tensor([[5, 6, 7],
            [0, 0, 8],
            [0, 9, 4]])
    """
    _check(sequences)
    lengths = [*map(len, sequences)]
    if min(lengths, default=0) == 0:
        raise ValueError(f"each prompt needs at least one token, got the lengths {lengths}")
    width = max(lengths)
    rows = np.full((len(sequences), width), pad_id, dtype=np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[width - len(sequence) :] = sequence
    return torch.from_numpy(rows)


def _check(sequences: Sequence[Sequence[int]]) -> None:
    """Check that all are sequences of integers: an array of integers would truncate 1.7 to 1."""
    for sequence in sequences:
        found = np.asarray(sequence)
        if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
            raise ValueError(f"expected sequences of integers, the ids, got {sequence!r}")


def count_padding(ids: Int64[Tensor, "batch position"], *, pad_id: int | None) -> Int64[Tensor, " batch"]:
    """Count the padding before each sequence; the same token later in the text is not padding.

    Args:
        ids: Sequences of :func:`pad_left`.
        pad_id: The id of the padding; None if there is none.

    Raises:
        ValueError: If the sequences are not (batch, position), or one is padding only.

    >>> count_padding(torch.tensor([[5, 6, 7], [0, 0, 8], [0, 9, 0]]), pad_id=0)
    tensor([0, 2, 1])
    """
    check_batch(ids)
    if pad_id is None:
        return ids.new_zeros(len(ids))
    count = (ids == pad_id).long().cumprod(dim=1).sum(dim=1)
    if (count == ids.size(1)).any():
        raise ValueError(f"each prompt needs at least one token, got one that is padding only ({pad_id})")
    return count


def check_integer_ids(ids: Tensor) -> None:
    """Check that ids are a tensor of integers.

    Raises:
        ValueError: If they are not.
    """
    if not isinstance(ids, Tensor):
        raise ValueError(
            f"ids must be a tensor of integers, got {type(ids).__name__}: torch.tensor(ids) makes one of "
            "lists of equal length, pad(ids, pad_id=...) of any, torch.from_numpy(ids) of an array"
        )
    if ids.dtype == torch.bool or ids.is_floating_point() or ids.is_complex():
        raise ValueError(f"ids must be a tensor of integers, got {ids.dtype}: ids.long() turns 3.0 into 3")


def check_batch(ids: Tensor) -> None:
    """Check that ids are a batch.

    Raises:
        ValueError: If the ids are not a tensor of integers (batch, position).
    """
    check_integer_ids(ids)
    if ids.dim() != 2:
        raise ValueError(
            f"ids must be (batch, position), got the shape {tuple(ids.shape)}: one text is ids[None]"
        )
