"""Which rows each training step reads: batch samplers, and the micro-batches of a step."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np


class MicroBatch(NamedTuple):
    """A part of a step's batch, which the model reads at once, and its weight in the loss.

    Args:
        batch: What the loss function takes.
        weight: Fraction of the step's loss; the weights of all micro-batches of a step sum to 1.
    """

    batch: Any
    weight: float = 1.0


@runtime_checkable
class BatchSampler(Protocol):
    """The interface of training data: it can begin at any step, and knows which rows a step reads.

    A step is an array of row numbers, so that processes can divide its rows without communication.
    """

    def steps(self, *, start_step: int = 0) -> Iterator[np.ndarray]:
        """Yield the rows of each step's batch, endlessly, after ``start_step`` steps."""
        ...

    def batch(self, rows: np.ndarray) -> Any:
        """Return some rows as a batch."""
        ...

    def n_targets(self, rows: np.ndarray) -> int:
        """Return how many tokens are to be predicted in some rows."""
        ...


def split_across_processes(
    sampler: BatchSampler, *, start_step: int = 0, accumulate: int = 1, process: int = 0, processes: int = 1
) -> Iterator[list[MicroBatch]]:
    """Divide each step's batch into micro-batches, and yield those of one process, endlessly.

    All processes know all rows of a step, and each takes its own, so that none has to ask how many tokens the
    others have.

    Args:
        sampler: Chooses the rows of each step, and makes batches of them.
        start_step: How many steps to leave out at the beginning.
        accumulate: Number of micro-batches per process and step.
        process: Index of this process, from 0.
        processes: Number of processes.

    Yields:
        The micro-batches; their weights count target tokens, and sum to 1 over all processes. Where there are
        fewer rows than micro-batches, one repeats a row with weight 0.

    Raises:
        ValueError: If a number is out of its range.
    """
    if start_step < 0 or accumulate < 1 or not 0 <= process < processes:
        raise ValueError(
            "start_step must be 0 or more, accumulate at least 1 and process below processes, "
            f"got {start_step}, {accumulate}, {process} and {processes}"
        )
    n_parts = accumulate * processes
    for rows in sampler.steps(start_step=start_step):
        n_targets, parts = sampler.n_targets(rows), []
        for first in range(process * accumulate, (process + 1) * accumulate):
            own = rows[first::n_parts]
            weight = sampler.n_targets(own) / n_targets
            parts.append(MicroBatch(sampler.batch(own if len(own) else rows[:1]), weight))
        yield parts
