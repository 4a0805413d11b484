"""Known mistakes, each with its hint: an LSTM's step, clipping."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from exformer.models.rnn_cells import lstm_cell

#: Takes x, h, c, w, u and b; returns the new h and c, one row each.
Step = Callable[..., Tensor]

#: Takes a list of tensors and the largest length; returns the list.
Clip = Callable[[Sequence[Tensor], float], list[Tensor]]


def lstm_step(x: Tensor, h: Tensor, c: Tensor, w: Tensor, u: Tensor, b: Tensor) -> Tensor:
    """Take the step: a row of h and a row of c."""
    return torch.cat(lstm_cell(x[None], (h[None], c[None]), w=w, u=u, b=b))


def _sums(x: Tensor, h: Tensor, c: Tensor, w: Tensor, u: Tensor, b: Tensor) -> Tensor:
    return w @ x + u @ h + b  # (4, d_model)


def _write(
    sums: Tensor,
    c: Tensor,
    *,
    gate: Callable[[Tensor], Tensor] = torch.sigmoid,
    news: Callable[[Tensor], Tensor] = torch.tanh,
    shown: Callable[[Tensor], Tensor] = torch.tanh,
    parts: str = "ifo",
) -> Tensor:
    """Make the new state; a gate that is not among the parts stays wide open."""
    i, f, g, o = sums
    i, f, o = (
        gate(z) if name in parts else torch.ones_like(z) for name, z in zip("ifo", (i, f, o), strict=True)
    )
    store = f * c + i * news(g)
    return torch.stack([o * shown(store), store])


def _wrong(sums: Callable[..., Tensor] = _sums, write: Callable[..., Tensor] = _write, **how: object) -> Step:
    return lambda x, h, c, w, u, b: write(sums(x, h, c, w, u, b), c, **how)


def _tied(sums: Tensor, c: Tensor) -> Tensor:
    """Let in as much as is forgotten."""
    f, g, o = sums[1].sigmoid(), sums[2].tanh(), sums[3].sigmoid()
    store = f * c + (1 - f) * g
    return torch.stack([o * store.tanh(), store])


def _shows_old(sums: Tensor, c: Tensor) -> Tensor:
    return torch.stack([sums[3].sigmoid() * c.tanh(), _write(sums, c)[1]])


#: Wrong steps of an LSTM.
LSTM: dict[str, Step] = {
    "You return c first: return h, then c.": lambda *case: lstm_step(*case).flip(0),
    "Input gate and forget gate are exchanged: f keeps the old cell state, i lets in the new content.": (
        lambda *case: _write(_sums(*case)[[1, 0, 2, 3]], case[2])
    ),
    "You take the parts in the order i, f, o, g: the third is the new content, the fourth the output gate.": (
        lambda *case: _write(_sums(*case)[[0, 1, 3, 2]], case[2])
    ),
    "A sigmoid is missing: i, f and o must lie between 0 and 1.": _wrong(gate=lambda z: z),
    "Your gates have a tanh: a gate lies between 0 and 1, use a sigmoid.": _wrong(gate=torch.tanh),
    "The new content g has no tanh.": _wrong(news=lambda z: z),
    "The new content g has a sigmoid: a cell state that is only added to cannot take back; use tanh.": (
        _wrong(news=torch.sigmoid)
    ),
    "The tanh of the cell state is missing where it is shown: h = o ⊙ tanh(c).": _wrong(shown=lambda z: z),
    "The cell state has a sigmoid where it is shown: h = o ⊙ tanh(c).": _wrong(shown=torch.sigmoid),
    "You show the old cell state: h is made from the new c.": _wrong(write=_shows_old),
    "You take 1 - f for the input gate: an LSTM has an input gate of its own.": _wrong(write=_tied),
    "The forget gate is missing: the old cell state is multiplied by f.": _wrong(parts="io"),
    "The input gate is missing: the new content is multiplied by i.": _wrong(parts="of"),
    "The output gate is missing: tanh(c) is multiplied by o.": _wrong(parts="if"),
    "You do not read the state: U h is missing.": _wrong(lambda x, h, c, w, u, b: w @ x + b),
    "You do not read the input: W x is missing.": _wrong(lambda x, h, c, w, u, b: u @ h + b),
    "U reads the cell state c: the gates see h.": _wrong(lambda x, h, c, w, u, b: w @ x + u @ c + b),
    "The bias is missing.": _wrong(lambda x, h, c, w, u, b: w @ x + u @ h),
    "The bias is added twice: there is one here, not two as in nn.LSTM.": (
        _wrong(lambda x, h, c, w, u, b: w @ x + u @ h + 2 * b)
    ),
    "W and U are exchanged: W reads x, U reads h.": _wrong(lambda x, h, c, w, u, b: u @ x + w @ h + b),
    "W is transposed: each row of W makes one number of the result.": (
        _wrong(lambda x, h, c, w, u, b: w.mT @ x + u @ h + b)
    ),
    "U is transposed: each row of U makes one number of the result.": (
        _wrong(lambda x, h, c, w, u, b: w @ x + u.mT @ h + b)
    ),
    "W and U are transposed: with a vector on the left write x @ w.mT.": (
        _wrong(lambda x, h, c, w, u, b: w.mT @ x + u.mT @ h + b)
    ),
}


def clip(gradients: Sequence[Tensor], limit: float) -> list[Tensor]:
    """Shorten: all tensors as one vector, by one factor, only if it is too long."""
    norm = _joint(gradients)
    return [g * min(1.0, limit / norm) for g in gradients]


def _joint(gradients: Sequence[Tensor], p: float = 2.0) -> float:
    return torch.cat([g.flatten() for g in gradients]).norm(p).item()


def _scaled(size: Callable[[Sequence[Tensor]], float]) -> Clip:
    """Make the mistake to measure the length by something else."""
    return lambda gs, limit: [g * min(1.0, limit / size(gs)) for g in gs]


#: Wrong ways to clip.
CLIP: dict[str, Clip] = {
    "You shorten each tensor by itself: that turns the gradient. Take all as one vector.": (
        lambda gs, limit: [clip([g], limit)[0] for g in gs]
    ),
    "You cut each number by itself: that turns the gradient. Multiply all by one factor.": (
        lambda gs, limit: [g.clamp(-limit, limit) for g in gs]
    ),
    "A short gradient must stay as it is: you lengthen it to the limit.": (
        lambda gs, limit: [g * limit / _joint(gs) for g in gs]
    ),
    "You change nothing: a gradient longer than the limit must be shortened.": lambda gs, limit: list(gs),
    "A long gradient gets the length 1: its length must be the limit.": (
        lambda gs, limit: [g / _joint(gs) if _joint(gs) > limit else g for g in gs]
    ),
    "You set a long gradient to zero: keep its direction.": (
        lambda gs, limit: [g * (_joint(gs) <= limit) for g in gs]
    ),
    "You lengthen: the factor is limit / length, not length / limit.": (
        lambda gs, limit: [g * max(1.0, _joint(gs) / limit) for g in gs]
    ),
    "The root is missing: the length is the root of the sum of squares.": _scaled(lambda gs: _joint(gs) ** 2),
    "You compare the square of the length with the limit: take its root first.": (
        lambda gs, limit: [g * (limit / _joint(gs) if _joint(gs) ** 2 > limit else 1.0) for g in gs]
    ),
    "You add up the lengths of the tensors: squares add up, lengths do not.": (
        _scaled(lambda gs: sum(_joint([g]) for g in gs))
    ),
    "You take the longest tensor's length: the length is that of all tensors as one vector.": (
        _scaled(lambda gs: max(_joint([g]) for g in gs))
    ),
    "You take the largest number: the length is the root of the sum of squares.": (
        _scaled(lambda gs: _joint(gs, math.inf))
    ),
    "You add up absolute values: the length is the root of the sum of squares.": (
        _scaled(lambda gs: _joint(gs, 1.0))
    ),
    "You take the mean of the squares: the length is the root of their sum.": (
        _scaled(lambda gs: _joint(gs) / math.sqrt(sum(g.numel() for g in gs)))
    ),
}
