"""A long text -> windows, each anywhere in it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor


@dataclass(frozen=True, slots=True)
class TextWindows:
    """Cut windows out of a long text, each anywhere.

    A sampler for :func:`~exformer.data.sampler.split_steps`: what a step reads depends on the seed and the
    step alone. A row is the position where a window begins; its batch has a token more than are predicted,
    since the first is only read.

    Args:
        ids: The text.
        width: How many symbols of a window are to be predicted.
        batch_size: Windows in a batch.
        seed: Of the places.

    Raises:
        ValueError: If a number is below 1, or the text is not longer than a window.

    >>> import torch
    >>> windows = TextWindows(torch.arange(100), width=3, batch_size=2, seed=0)
    >>> rows = next(windows.steps())
    >>> windows.batch(rows)
    tensor([[82, 83, 84, 85],
            [61, 62, 63, 64]])
    """

    ids: Int64[Tensor, " time"]
    width: int
    batch_size: int
    seed: int

    def __post_init__(self) -> None:
        """Refuse what gives no windows."""
        if self.width < 1 or self.batch_size < 1 or len(self.ids) <= self.width:
            raise ValueError(
                f"width ({self.width}) and batch_size ({self.batch_size}) must be at least 1, and the text "
                f"({len(self.ids)} symbols) longer than the width"
            )

    def steps(self, *, done: int = 0) -> Iterator[np.ndarray]:
        """Name the places of each step's windows, without end.

        Args:
            done: How many steps are left out at the beginning.
        """
        while True:
            rng = np.random.default_rng((self.seed, done))
            yield rng.integers(len(self.ids) - self.width, size=self.batch_size)
            done += 1

    def batch(self, rows: np.ndarray) -> Int64[Tensor, "batch time"]:
        """Return the windows that begin at some places."""
        places = rows[:, None] + np.arange(self.width + 1)  # (batch, time)
        return self.ids[torch.from_numpy(places)]

    def n_targets(self, rows: np.ndarray) -> int:
        """Return how many symbols are to be predicted in some windows."""
        return len(rows) * self.width
