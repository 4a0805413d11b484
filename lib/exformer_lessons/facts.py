"""A directory of facts, a few of them frequent and most of them rare, of which the lowest loss is known."""

from collections.abc import Iterator

import torch
from torch import Tensor

N_SYMBOLS = 32
N_FACTS = N_SYMBOLS**3


class Facts:
    r"""Keys of three symbols, each with a value; the probability of fact k falls as a power of k.

    .. math:: p_k \propto k^{-(1 + \alpha)}

    Nothing follows from anything else: a value must be learned by heart, and the lowest loss is 0.

    Args:
        seed: Seed of the order of the keys, and of the values.
        tail: :math:`\alpha`; the smaller it is, the more of the probability belongs to rare facts.
    """

    def __init__(self, *, seed: int = 0, tail: float = 0.5) -> None:
        rng = torch.Generator().manual_seed(seed)
        keys = torch.randperm(N_FACTS, generator=rng)  # the most frequent first
        self.keys = torch.stack(
            [keys // N_SYMBOLS**2, keys // N_SYMBOLS % N_SYMBOLS, keys % N_SYMBOLS], dim=1
        )
        self.values = torch.randint(N_SYMBOLS, (N_FACTS,), generator=rng)
        p = torch.arange(1, N_FACTS + 1).double() ** -(1 + tail)
        self.p = p / p.sum()

    def ranks(self, n: int, *, size: int, seed: int) -> Iterator[Tensor]:
        """Yield n batches of sampled facts, each by its rank; 0 is the most frequent fact."""
        rng = torch.Generator().manual_seed(seed)
        for _ in range(n):
            u = torch.rand(size, generator=rng, dtype=torch.float64)
            yield torch.searchsorted(self.p.cumsum(0), u).clamp(max=N_FACTS - 1)

    def batches(self, n: int, *, size: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield n batches of keys and values."""
        for drawn in self.ranks(n, size=size, seed=seed):
            yield self.keys[drawn], self.values[drawn]
