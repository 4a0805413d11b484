"""Known mistakes, each with its hint: the gradient of a table, the nearest rows of a table."""

from collections.abc import Callable

import torch
from torch import Tensor


def table_gradient(ids: Tensor, ahead: Tensor, vocab_size: int) -> Tensor:
    """Send each vector's gradient to its row; what meets in a row adds up."""
    return torch.zeros(vocab_size, ahead.size(-1), dtype=ahead.dtype).index_add(0, ids, ahead)


def _last(ids: Tensor, ahead: Tensor, vocab_size: int) -> Tensor:
    rows = torch.zeros(vocab_size, ahead.size(-1), dtype=ahead.dtype)
    for i, gradient in zip(ids.tolist(), ahead, strict=True):
        rows[i] = gradient
    return rows


def _mean(ids: Tensor, ahead: Tensor, vocab_size: int) -> Tensor:
    times = torch.bincount(ids, minlength=vocab_size).clamp(min=1)
    return table_gradient(ids, ahead, vocab_size) / times[:, None]


#: Wrong gradients of a table.
TABLE_GRADIENT: dict[str, Callable[..., Tensor]] = {
    "A row that is used again loses its first gradient: add, do not overwrite.": _last,
    "A row that is used again keeps its first gradient alone: all of them add up.": (
        lambda ids, ahead, n: _last(ids.flip(0), ahead.flip(0), n)
    ),
    "You take the mean of the gradients that meet in a row: take their sum.": _mean,
    "You divide by the number of ids: the loss has done that already, if it wants to.": (
        lambda ids, ahead, n: table_gradient(ids, ahead, n) / len(ids)
    ),
    "You count how often each row is used: the gradients themselves must go there.": (
        lambda ids, ahead, n: table_gradient(ids, torch.ones_like(ahead), n)
    ),
    "You subtract: this is the step that an optimizer takes, not the gradient.": (
        lambda ids, ahead, n: -table_gradient(ids, ahead, n)
    ),
}


def neighbors(table: Tensor, i: int, n: int) -> list[int]:
    """Rank the other rows by their cosine with row i."""
    return _ranked(_cosines(table, i), i, n)


def _cosines(table: Tensor, i: int) -> Tensor:
    rows = table / table.norm(dim=1, keepdim=True)
    return rows @ rows[i]


def _ranked(scores: Tensor, i: int, n: int) -> list[int]:
    order = scores.argsort(descending=True).tolist()
    return [j for j in order if j != i][:n]


def _by(score: Callable[[Tensor, int], Tensor]) -> Callable[[Tensor, int, int], list[int]]:
    return lambda table, i, n: _ranked(score(table, i), i, n)


def _first_of(table: Tensor, i: int, n: int) -> list[int]:
    """Leave row i in, which is nearest to itself."""
    return _cosines(table, i).argsort(descending=True).tolist()[:n]


def _first_dropped(table: Tensor, i: int, n: int) -> list[int]:
    """Take n with row i among them, then leave it out."""
    return [j for j in _first_of(table, i, n) if j != i]


def _best_by_dot_dropped(table: Tensor, i: int, n: int) -> list[int]:
    """Rank by dot products and take the first for row i itself."""
    return (table @ table[i]).argsort(descending=True).tolist()[1 : n + 1]


def _without_ones(table: Tensor, i: int, n: int) -> list[int]:
    """Leave out every row whose cosine is 1."""
    cosines = _cosines(table, i)
    return [j for j in cosines.argsort(descending=True).tolist() if cosines[j] < 0.9999][:n]


def _deleted(table: Tensor, i: int, n: int) -> list[int]:
    """Delete row i, and count the ids of what is left from 0."""
    others = torch.cat([table[:i], table[i + 1 :], table[i : i + 1]])
    return _ranked(_cosines(others, len(table) - 1), len(table) - 1, n)


#: Wrong neighbors.
NEIGHBORS: dict[str, Callable[..., object] | tuple[Callable[..., object], ...]] = {
    "You rank by the dot product, which favors long rows: divide each row by its length first.": (
        _by(lambda table, i: table @ table[i]),
        _best_by_dot_dropped,
        lambda table, i, n: (table @ table[i]).argsort(descending=True)[:n],
    ),
    "You rank by the distance between the rows, which depends on their lengths: take the cosine.": _by(
        lambda table, i: -(table - table[i]).norm(dim=1)
    ),
    "You divide by the length of one of the two rows only, the longer rows still win: divide by both.": _by(
        lambda table, i: table @ (table[i] / table[i].norm())
    ),
    "You count row i as its own neighbor: leave it out.": _first_of,
    "You leave out each row whose cosine is 1, and another may have that direction: leave out the id i.": (
        _without_ones
    ),
    "You take the first for row i itself, and another row may have its direction: leave out the id i.": (
        lambda table, i, n: _cosines(table, i).argsort(descending=True)[1 : n + 1],
        lambda table, i, n: _cosines(table, i).topk(n + 1).indices[1:],
        lambda table, i, n: _cosines(table, i).sort(descending=True, stable=True).indices[1 : n + 1],
        lambda table, i, n: _cosines(table, i).sort(stable=True).indices.flip(0)[1 : n + 1],
    ),
    "You delete row i first, and the ids after it move down by one: map them back.": _deleted,
    "You leave out row i only after taking n: one neighbor is missing.": (
        _first_dropped,
        lambda table, i, n: _first_of(table, i, n)[1:],
        lambda table, i, n: _cosines(table, i).topk(n).indices[1:],
    ),
    "You return the farthest rows: the largest cosines belong to the nearest.": _by(
        lambda table, i: -_cosines(table, i)
    ),
    "You return the right rows in reverse: the nearest comes first.": lambda table, i, n: neighbors(
        table, i, n
    )[::-1],
    "You take the size of the cosine: an opposite direction, near -1, is as far as it can be.": _by(
        lambda table, i: _cosines(table, i).abs()
    ),
    "You return cosines: return the ids of their rows.": lambda table, i, n: _cosines(table, i)[
        neighbors(table, i, n)
    ],
    "You normalize the columns of the table: a row is a word, so normalize the rows.": _by(
        lambda table, i: (table / table.norm(dim=0)) @ (table / table.norm(dim=0))[i]
    ),
    "You subtract the mean row first: take the cosine of the rows as they are.": _by(
        lambda table, i: _cosines(table - table.mean(dim=0), i)
    ),
    "You divide by the squared lengths, so short rows win: the length is the root.": _by(
        lambda table, i: table @ table[i] / table.square().sum(dim=1)
    ),
    "You apply a softmax to the rows first: the cosine takes them as they are.": _by(
        lambda table, i: _cosines(torch.softmax(table, dim=1), i)
    ),
    "You compare signs only: the sizes of the entries count, too.": _by(
        lambda table, i: _cosines(table.sign(), i)
    ),
}
