"""What goes wrong when heads are silenced: each hint beside a function that makes the mistake."""

from collections.abc import Callable

import torch
from torch import Tensor


def silence(weight: Tensor, silent: list[int], n_heads: int) -> Tensor:
    """Silence rightly: zero the columns of some heads."""
    return weight * _heard(silent, n_heads).repeat_interleave(weight.size(1) // n_heads)


def _heard(silent: list[int], n_heads: int) -> Tensor:
    return torch.tensor([i not in silent for i in range(n_heads)])


def _columns(weight: Tensor, starts: list[int], width: int) -> Tensor:
    quiet = weight.clone()
    for at in starts:
        quiet[:, at : at + width] = 0
    return quiet


#: Wrong ways to silence heads.
SILENCE: dict[str, Callable[[Tensor, list[int], int], Tensor]] = {
    "You silence rows: nn.Linear stores W^O transposed, so a head owns columns.": (
        lambda w, silent, n: silence(w.mT, silent, n).mT
    ),
    "You silence all others, and keep the heads that should be silent.": (
        lambda w, silent, n: silence(w, [i for i in range(n) if i not in silent], n)
    ),
    "You count heads from 1: the first head is 0.": lambda w, silent, n: silence(
        w, [i - 1 for i in silent], n
    ),
    "Your silence comes one head late: heads are counted from 0.": (
        lambda w, silent, n: silence(w, [i + 1 for i in silent], n)
    ),
    "You silence every n_heads-th column: a head owns neighbours, d_head columns in a row.": (
        lambda w, silent, n: w * _heard(silent, n).repeat(w.size(1) // n)
    ),
    "You silence one column a head: each head owns d_head of them.": lambda w, silent, n: _columns(
        w, silent, 1
    ),
    "You take n_heads for the width of a head: it is d_head, the width divided by n_heads.": (
        lambda w, silent, n: _columns(w, [i * n for i in silent], n)
    ),
    "You silence only the first head of the list.": lambda w, silent, n: silence(w, silent[:1], n),
    "You silence only the last head of the list.": lambda w, silent, n: silence(w, silent[-1:], n),
    "You silence everything from the first head of the list to the last.": (
        lambda w, silent, n: silence(w, list(range(min(silent), max(silent) + 1)), n)
    ),
    "Nothing is silent in yours.": lambda w, silent, n: w,
}
