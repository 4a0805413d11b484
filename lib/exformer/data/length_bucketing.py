"""Length bucketing: the batches of an epoch, each of rows of similar length."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from jaxtyping import Int64

# Batches in a bucket, within which sentences are sorted by length: with more there is less padding, with
# fewer the batches are more random. Batches by tokens are larger.
BUCKET_BATCHES = 50
TOKEN_BUCKET_BATCHES = 20


def shuffled_batches(
    lengths: Int64[np.ndarray, "batch 2"],
    cut: Callable[[np.ndarray], Iterable[np.ndarray]],
    *,
    bucket_size: int,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Make the batches of an epoch by length bucketing: sentences of similar length share a batch.

    The rows are shuffled and divided into large buckets; each bucket is sorted by length and cut into
    batches, and these are shuffled. So there is little padding, but each epoch has other batches.

    Args:
        lengths: Tokens of each row's source and target.
        cut: Cuts sorted rows into batches.
        bucket_size: Rows that are sorted together.
        rng: The random number generator.
    """
    order, batches = rng.permutation(len(lengths)), []
    for start in range(0, len(order), bucket_size):
        rows = order[start : start + bucket_size]
        batches += cut(rows[np.lexsort(lengths[rows].T)])
    return [batches[index] for index in rng.permutation(len(batches))]


def cut_by_sentences(rows: Int64[np.ndarray, " batch"], *, batch_size: int) -> list[np.ndarray]:
    """Cut rows into batches of so many sentences; the last may have fewer."""
    return [rows[first : first + batch_size] for first in range(0, len(rows), batch_size)]


def cut_by_tokens(
    rows: Int64[np.ndarray, " batch"], *, lengths: Int64[np.ndarray, "..."], tokens: int
) -> Iterator[np.ndarray]:
    """Cut rows, sorted by the lengths of their targets, before a batch would have too many tokens."""
    first = 0
    for end, width in enumerate(lengths[rows].tolist()):
        if first < end and (end + 1 - first) * width > tokens:
            yield rows[first:end]
            first = end
    yield rows[first:]
