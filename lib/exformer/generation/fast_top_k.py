"""The largest scores of each row in less time than ``topk`` takes, for a beam over a large vocabulary."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

_BLOCK = 64  # columns


def largest(
    scores: Float[Tensor, "batch vocab_size"], n: int
) -> tuple[Float[Tensor, "batch beam"], Int64[Tensor, "batch beam"]]:
    """Find the n largest scores of each row and their columns, as ``scores.topk(n)`` does.

    None of them can lie outside the n blocks of columns with the largest maxima, so that only these are
    sorted. With a vocabulary of 5,259 and a beam of 5 that takes, on one core, 0.60 ms for 32 sentences where
    ``topk`` takes 1.31 (a step of the search 2.2 ms, not 3.1), 0.25 against 0.35 for 8 sentences, and 0.06
    against 0.04 for one. Where there are at most 2n blocks, ``topk`` itself is called.

    >>> largest(torch.tensor([[0.1, 0.7, 0.2]]), 2)
    (tensor([[0.7000, 0.2000]]), tensor([[1, 2]]))
    """
    blocks = scores.size(-1) // _BLOCK
    if blocks <= 2 * n:
        return tuple(scores.topk(n))
    cut = scores[:, : blocks * _BLOCK].unflatten(1, (blocks, _BLOCK))  # (row, block, column)
    chosen = cut.amax(dim=-1).topk(n).indices  # (row, n)
    columns = (chosen[..., None] * _BLOCK + torch.arange(_BLOCK, device=scores.device)).flatten(start_dim=1)
    # The columns behind the last whole block are sorted, too.
    behind = torch.arange(blocks * _BLOCK, scores.size(-1), device=scores.device).expand(len(scores), -1)
    columns = torch.cat((columns, behind), dim=1)
    found, index = scores.gather(1, columns).topk(n)
    return found, columns.gather(1, index)
