"""Ids -> batches of about equally many tokens, from any step on: what a long training run reads."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int64

from exformer.data.translation import Seq2SeqBatch, shuffled_batches, take_rows

_SORTED_TOGETHER = 20  # batches; fewer than translation_batches sorts, because these are larger


class MicroBatch(NamedTuple):
    """Hold a part of a step's batch: what the model is shown at once, and how much of the loss it is.

    Args:
        batch: What the loss function understands.
        share: Its share of the step's loss; those of all micro-batches of a step sum to 1.
    """

    batch: Any
    share: float = 1.0


@runtime_checkable
class BatchSampler(Protocol):
    """Say what everything that a training run reads can do: begin at any step, and say what a step reads.

    A step is an array of row numbers, so that processes can share its rows without asking each other.
    """

    def steps(self, *, done: int = 0) -> Iterator[np.ndarray]:
        """Give the rows of each step's batch, without end, from the step after ``done`` on."""
        ...

    def batch(self, rows: np.ndarray) -> Any:
        """Return some rows as a batch."""
        ...

    def n_targets(self, rows: np.ndarray) -> int:
        """Return how many tokens are to be predicted in some rows."""
        ...


@dataclass(frozen=True, slots=True)
class TokenBatches:
    """Cut sentences with their translations into batches of about equally many tokens: a `BatchSampler`.

    What a step reads depends on the seed and the step alone. Sentences of similar length share a batch. Each
    epoch has every sentence once, in other batches and in another order than the one before.

    Args:
        sentences: All sentences as one batch, see :func:`~exformer.data.translation.encode_pairs`.
        lengths: Tokens in each row of ``sentences.src`` and of ``sentences.tgt_in``.
        tokens: Most target tokens in a batch, padding among them; a longer sentence is a batch of its own.
        seed: Determines, with the step, the order.

    Raises:
        ValueError: If there may be no token in a batch, or there is no sentence.
    """

    sentences: Seq2SeqBatch
    lengths: Int64[np.ndarray, "batch 2"]
    tokens: int
    seed: int

    def __post_init__(self) -> None:
        """Refuse what gives no batches."""
        if self.tokens < 1 or len(self.lengths) == 0:
            raise ValueError(
                f"expected at least one token per batch and one sentence, got {self.tokens} tokens "
                f"and {len(self.lengths)} sentences"
            )

    def epoch(self, number: int) -> list[np.ndarray]:
        """Return the rows of each batch of an epoch; the first one is number 0."""
        rng = np.random.default_rng((self.seed, number))
        piece = max(1, round(_SORTED_TOGETHER * self.tokens / self.lengths[:, 1].mean()))
        return shuffled_batches(self.lengths, self._cut, piece=piece, rng=rng)

    def _cut(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Cut rows, sorted by the lengths of their targets, where the next one would be too much."""
        first = 0
        for end, width in enumerate(self.lengths[rows, 1].tolist()):
            if first < end and (end + 1 - first) * width > self.tokens:
                yield rows[first:end]
                first = end
        yield rows[first:]

    def steps(self, *, done: int = 0) -> Iterator[np.ndarray]:
        """Give the rows of each step's batch, epoch after epoch, without end, after ``done`` steps."""
        number = 0
        while True:
            batches = self.epoch(number)
            yield from batches[done:]
            done, number = max(0, done - len(batches)), number + 1

    def batch(self, rows: np.ndarray) -> Seq2SeqBatch:
        """Return some sentences, no wider than the longest of them."""
        return take_rows(self.sentences, rows, lengths=self.lengths)

    def n_targets(self, rows: np.ndarray) -> int:
        """Return how many target tokens some sentences have, without padding."""
        return int(self.lengths[rows, 1].sum())


def split_steps(
    sampler: BatchSampler, *, done: int = 0, accumulate: int = 1, process: int = 0, processes: int = 1
) -> Iterator[list[MicroBatch]]:
    """Give the micro-batches of each step that one process is to work on, without end.

    All processes see the same batches, and each takes its own rows of them, so that nobody has to be asked
    how many tokens the others have.

    Args:
        sampler: What gives the rows of each step, and makes batches of them.
        done: How many steps are left out at the beginning.
        accumulate: How many micro-batches each process gets per step.
        process: Number of this process, from 0.
        processes: How many there are.

    Yields:
        The micro-batches; their shares count target tokens, and sum to 1 over all processes. Where there are
        fewer rows than micro-batches, one has a row of another and share 0.

    Raises:
        ValueError: If there is no micro-batch, no such process, or fewer than no steps are left out.
    """
    if done < 0 or accumulate < 1 or not 0 <= process < processes:
        raise ValueError(
            "done must be 0 or more, accumulate at least 1 and process below processes, "
            f"got {done}, {accumulate}, {process} and {processes}"
        )
    n_parts = accumulate * processes
    for rows in sampler.steps(done=done):
        whole, parts = sampler.n_targets(rows), []
        for first in range(process * accumulate, (process + 1) * accumulate):
            own = rows[first::n_parts]
            share = sampler.n_targets(own) / whole
            parts.append(MicroBatch(sampler.batch(own if len(own) else rows[:1]), share))
        yield parts
