"""Length bucketing: the batches of an epoch, each of rows of similar length."""

from collections.abc import Callable, Iterable

import numpy as np
from jaxtyping import Int64


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
