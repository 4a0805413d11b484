"""Checks of what a model reads: ids, padding, caches, batches."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from exformer.data.padding import check_batch
from exformer.nn.cache import Cache

#: Where checks on a GPU go, see :func:`defer_checks`; None: nowhere, each is read at once.
_DEFERRED: ContextVar[list[tuple[Tensor, str]] | None] = ContextVar("deferred_checks", default=None)


@contextmanager
def defer_checks(checks: list[tuple[Tensor, str]]) -> Iterator[None]:
    """Collect the checks of batches on a GPU while the block runs, instead of waiting for the device.

    The training loop reads them together with the losses, see :func:`raise_failed`. On a CPU nothing is
    deferred.

    Args:
        checks: Gets whether a check failed, a boolean on the device, and its message.
    """
    token = _DEFERRED.set(checks)
    try:
        yield
    finally:
        _DEFERRED.reset(token)


def raise_failed(checks: list[tuple[Tensor, str]]) -> None:
    """Read deferred checks, all at once, and empty the list.

    Raises:
        ValueError: If one has failed.
    """
    flags, messages = [flag for flag, _ in checks], [message for _, message in checks]
    checks.clear()
    failed = torch.stack(flags).tolist() if flags else []
    if any(failed):
        raise ValueError(messages[failed.index(True)])


def check_ids(ids: Tensor, *, max_len: int | None, start: int = 0, padding: Tensor | None = None) -> None:
    """Check that a model can read a batch of ids.

    Args:
        ids: The texts.
        max_len: Longest text of the model, in tokens; None: it has no limit.
        start: How many positions came before, as in a cache.
        padding: How many ids at the front of each row are padding (batch,).

    Raises:
        ValueError: If they are not (batch, position), too long, or nothing but padding.
    """
    check_batch(ids)
    n = start + ids.size(1)
    if padding is not None:
        if len(padding) != len(ids) or not ((padding >= 0) & (padding < n)).all():
            raise ValueError(
                f"padding must hold one left-padding length for each of the {len(ids)} rows, below {n}, "
                f"got {padding.tolist()}"
            )
        n -= int(padding.min())
    if max_len is not None and n > max_len:
        raise ValueError(
            f"the text has {n} tokens and max_len is {max_len}: "
            "cut it, or build the model with a larger max_len"
        )


def check_step(model: nn.Module, ids: Tensor, cache: Cache | None, *, padding: Tensor | None = None) -> int:
    """Check that a cache fits the next step, and return how many positions the model has read.

    Args:
        model: The model.
        ids: The new tokens of each row.
        cache: The model's; None: there is none, and all positions are new.
        padding: How many ids at the front of each row are padding; given with the first call only.

    Raises:
        ValueError: If the model is in training mode, the cache holds another number of rows, or padding is
            given with a later call.
    """
    if cache is None:
        return 0
    if model.training:
        raise ValueError("a cache is for generation, without dropout: call model.eval() first")
    if cache.batch_size not in (None, len(ids)):
        raise ValueError(
            f"the cache holds {cache.batch_size} texts, got {len(ids)}: make a new cache for another batch"
        )
    if cache.length > 0 and padding is not None:
        raise ValueError("padding is in front of the text: give it at the first call with a cache")
    return cache.length


def check_batch_type(batch: Any, expected: type, *, model: nn.Module, made_by: str) -> None:
    """Check that a batch is of the type that a model learns from.

    Args:
        batch: The batch.
        expected: The type.
        model: The model, for the message.
        made_by: What makes such batches, for the message.

    Raises:
        ValueError: If it is of another type.
    """
    if not isinstance(batch, expected):
        raise ValueError(
            f"{type(model).__name__} learns from batches of type {expected.__name__}, got "
            f"{type(batch).__name__}: {made_by}; for other batches, write a loss_fn(model, batch)"
        )


def check_padding_at_end(ids: Tensor, *, pad_id: int | None) -> None:
    """Check that padding comes only after the text of each row, so that it can be left out of the loss.

    To look at ids on a GPU is to wait for it, so in the training loop the check is deferred there.

    Args:
        ids: Texts (batch, position).
        pad_id: The padding token; None if there is none.

    Raises:
        ValueError: If a row has the padding token before another token.
    """
    if pad_id is None:
        return
    padding = ids == pad_id
    wrong = (padding[:, :-1] & ~padding[:, 1:]).any(dim=1)
    message = (
        f"{{}} has the padding token ({pad_id}) before other tokens{{}}: pad the rows at their end, or, "
        "if it is a token like others, build the model with pad_id=None"
    )
    deferred = _DEFERRED.get()
    if deferred is not None and _is_slow_to_read(ids):
        deferred.append((wrong.any(), message.format("one of the last batches", "")))
    elif wrong.any():
        raise ValueError(message.format("the batch", f" in row {int(wrong.nonzero()[0])}"))


def _is_slow_to_read(x: Tensor) -> bool:
    """Return whether Python has to wait for a device to read the numbers."""
    return x.device.type != "cpu"
