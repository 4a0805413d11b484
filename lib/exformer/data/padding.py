"""Sequences of unequal length -> one tensor: padding behind the text, or in front of it."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor


def pad(sequences: Sequence[Sequence[int]], *, pad_id: int) -> Int64[Tensor, "batch time"]:
    """Put sequences of ids into one tensor, filling the short ones up at the end.

    Args:
        sequences: Ids; at least one of the sequences must have some.
        pad_id: What stands where a sequence has no more ids.

    Returns:
        The ids, as wide as the longest sequence.

    Raises:
        ValueError: If there is no sequence, or no id in any.

    >>> pad([[5, 6, 7], [8]], pad_id=0)
    tensor([[5, 6, 7],
            [8, 0, 0]])
    """
    width = max(map(len, sequences), default=0)
    if width == 0:
        raise ValueError(f"expected a sequence with at least one id, came {len(sequences)} sequences without")
    rows = np.full((len(sequences), width), pad_id, dtype=np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return torch.from_numpy(rows)


def pad_left(sequences: Sequence[Sequence[int]], *, pad_id: int) -> Int64[Tensor, "batch time"]:
    """Put prompts of unequal lengths into one tensor, so that the newest symbol of each stands last.

    Sentences to learn from are filled up at the end, by :func:`~exformer.data.padding.pad`. Where symbols
    are still to come, the end must be free: the padding stands in front, and what scores the next symbols
    takes it away again, as :class:`~exformer.generation.continuation.Continuation` does.

    Args:
        sequences: Ids; none may be without.
        pad_id: What stands in front of the shorter ones.

    Returns:
        The ids, as wide as the longest sequence.

    Raises:
        ValueError: If there is no sequence, or one has no ids.

    >>> pad_left([[5, 6, 7], [8]], pad_id=0)
    tensor([[5, 6, 7],
            [0, 0, 8]])
    """
    if not all(map(len, sequences)):
        raise ValueError(f"each prompt needs at least one symbol, got the lengths {[*map(len, sequences)]}")
    return pad([row[::-1] for row in sequences], pad_id=pad_id).flip(1)


def count_padding(ids: Int64[Tensor, "batch time"], *, pad_id: int | None) -> Int64[Tensor, " batch"]:
    """Count the padding in front of each sequence; the same symbol further on is no padding.

    Args:
        ids: Sequences, padded in front.
        pad_id: What stands there; None if nothing does.

    Returns:
        How many symbols of each sequence are padding.

    Raises:
        ValueError: If the sequences are not (batch, time), or one is nothing but padding.
    """
    check_batch(ids)
    if pad_id is None:
        return ids.new_zeros(len(ids))
    count = (ids == pad_id).long().cumprod(dim=1).sum(dim=1)
    if (count == ids.size(1)).any():
        raise ValueError(
            f"each prompt needs at least one symbol, got one that is nothing but padding ({pad_id})"
        )
    return count


def check_batch(ids: Tensor) -> None:
    """Refuse one text where a model reads many.

    Args:
        ids: The texts.

    Raises:
        ValueError: If they are not (batch, time).
    """
    if ids.dim() != 2:
        raise ValueError(
            f"ids must be (batch, time), got the shape {tuple(ids.shape)}: one text is ids[None]"
        )
