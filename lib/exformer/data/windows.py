"""A long text -> batches of windows, at random positions or side by side; targets are the tokens one on."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from exformer.check_settings import check_integer


@dataclass(frozen=True, slots=True)
class TextWindows:
    """Windows of a long text at random positions: a :class:`~exformer.data.sampler.BatchSampler`.

    The windows of a step depend on the seed and the step alone. A row of a step is the position in the text
    at which a window begins. A window has one token more than it has targets: the first is only an input.

    Args:
        ids: The whole text, encoded.
        width: Number of targets in a window.
        batch_size: Number of windows in a batch.
        seed: Determines, with the step, where the windows begin.

    Raises:
        ValueError: If the text is not a tensor of ids or not longer than a window, or a number is below 1.

    >>> import torch
    >>> windows = TextWindows(torch.arange(100), width=4, batch_size=2, seed=0)
    >>> rows = next(windows.steps())
    >>> rows
    array([81, 61])
    >>> windows.batch(rows)
    tensor([[81, 82, 83, 84, 85],
            [61, 62, 63, 64, 65]])
    """

    ids: Int64[Tensor, " position"]
    width: int
    batch_size: int
    seed: int

    def __post_init__(self) -> None:
        """Check the text and the sizes."""
        if not isinstance(self.ids, Tensor) or self.ids.dim() != 1 or self.ids.dtype != torch.int64:
            raise ValueError(
                "expected the ids of one text, an int64 tensor (position,), "
                f"got {_described(self.ids)}: torch.tensor(tokenizer.encode(text))"
            )
        check_integer("width", self.width, least=1)
        check_integer("batch_size", self.batch_size, least=1)
        if len(self.ids) <= self.width:
            raise ValueError(
                f"the text ({len(self.ids)} tokens) must be longer than the width ({self.width})"
            )

    def steps(self, *, start_step: int = 0) -> Iterator[np.ndarray]:
        """Yield the positions at which each step's windows begin, endlessly, after ``start_step`` steps."""
        for step in count(start_step):
            rng = np.random.default_rng((self.seed, step))
            yield rng.integers(len(self.ids) - self.width, size=self.batch_size)

    def side_by_side(self, *, tokens: int) -> list[np.ndarray]:
        """Return where windows begin that cover the text once, in batches of about some number of targets.

        >>> TextWindows(torch.arange(100), width=20, batch_size=2, seed=0).side_by_side(tokens=50)
        [array([ 0, 20]), array([40, 60])]
        """
        starts = np.arange(0, len(self.ids) - self.width, self.width)
        return np.array_split(starts, math.ceil(len(starts) * self.width / tokens))

    def batch(self, rows: np.ndarray) -> Int64[Tensor, "batch position"]:
        """Return the windows that begin at some positions."""
        positions = rows[:, None] + np.arange(self.width + 1)  # (batch, position)
        return self.ids[torch.from_numpy(positions)]

    def n_targets(self, rows: np.ndarray) -> int:
        """Return the number of targets in some windows."""
        return len(rows) * self.width


def shift_by_one(
    ids: Int64[Tensor, "batch position"],
) -> tuple[Int64[Tensor, "batch ..."], Int64[Tensor, "batch ..."]]:
    """Split texts into what a language model reads and what it predicts there: the next tokens.

    >>> shift_by_one(torch.tensor([[3, 1, 4, 1]]))
    (tensor([[3, 1, 4]]), tensor([[1, 4, 1]]))
    """
    return ids[:, :-1], ids[:, 1:]


def _described(value: object) -> str:
    """Return the type of a value, and the shape of a tensor."""
    if isinstance(value, Tensor):
        return f"a tensor {tuple(value.shape)} of {value.dtype}"
    return type(value).__name__
