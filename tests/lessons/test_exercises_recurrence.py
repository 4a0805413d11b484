"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import math

import torch
from answer_banks import answer_test
from torch import nn

from exformer.models.rnn_cells import lstm_cell
from exformer_lessons.recurrence.grader import grade_clip, grade_lstm_step


def by_torch(x, h, c, w, u, b):
    cell = nn.LSTMCell(len(x), len(x))
    with torch.no_grad():
        cell.weight_ih.copy_(w.flatten(0, 1))
        cell.weight_hh.copy_(u.flatten(0, 1))
        cell.bias_ih.copy_(b.flatten())
        cell.bias_hh.zero_()
        new_h, new_c = cell(x[None], (h[None], c[None]))
    return new_h[0], new_c[0]


def by_library(x, h, c, w, u, b):
    new_h, new_c = lstm_cell(x[None], (h[None], c[None]), w=w, u=u, b=b)
    return new_h[0], new_c[0]


def by_loops(x, h, c, w, u, b):
    sums = [
        [
            sum(w[k, r, j] * x[j] + u[k, r, j] * h[j] for j in range(len(x))).item() + b[k, r].item()
            for r in range(len(x))
        ]
        for k in range(4)
    ]
    new_h, new_c = [], []
    for i, f, g, o, old in zip(*sums, c.tolist(), strict=True):
        kept = old / (1 + math.exp(-f)) + math.tanh(g) / (1 + math.exp(-i))
        new_c.append(kept)
        new_h.append(math.tanh(kept) / (1 + math.exp(-o)))
    return new_h, new_c


STEPS = {
    "nn.LSTMCell": by_torch,
    "library": by_library,
    "loops, lists": by_loops,
    "float64": lambda *case: by_library(*(t.double() for t in case)),
    "list of two": lambda *case: list(by_library(*case)),
    "numpy": lambda *case: tuple(part.numpy() for part in by_library(*case)),
}


def step(
    *,
    z=lambda x, h, c, w, u, b: torch.einsum("krj,j->kr", w, x) + torch.einsum("krj,j->kr", u, h) + b,
    order="ifgo",
    i=torch.sigmoid,
    f=torch.sigmoid,
    g=torch.tanh,
    o=torch.sigmoid,
    out=torch.tanh,
    old=False,
):
    def answer(x, h, c, w, u, b):
        z_of = dict(zip(order, z(x, h, c, w, u, b), strict=True))
        new = f(z_of["f"]) * c + i(z_of["i"]) * g(z_of["g"])
        return o(z_of["o"]) * out(c if old else new), new

    return answer


def linear(a, x):
    return torch.einsum("krj,j->kr", a, x)


def same(z):
    return z


def one(z):
    return torch.ones_like(z)


WRONG_STEPS = {
    "c first": lambda *case: by_torch(*case)[::-1],
    "gate and forget gate are exchanged": step(order="figo"),
    "order i, f, o, g": step(order="ifog"),
    "between 0 and 1.": step(i=same, f=same, o=same),
    "gates have a tanh": step(i=torch.tanh, f=torch.tanh, o=torch.tanh),
    "new content g has no tanh": step(g=same),
    "new content g has a sigmoid": step(g=torch.sigmoid),
    "tanh of the cell state is missing": step(out=same),
    "cell state has a sigmoid": step(out=torch.sigmoid),
    "show the old cell state": step(old=True),
    "You take 1 - f": step(
        z=lambda x, h, c, w, u, b: (lambda z: torch.stack([-z[1], *z[1:]]))(linear(w, x) + linear(u, h) + b)
    ),
    "forget gate is missing": step(f=one),
    "input gate is missing": step(i=one),
    "output gate is missing": step(o=one),
    "U h is missing": step(z=lambda x, h, c, w, u, b: linear(w, x) + b),
    "W x is missing": step(z=lambda x, h, c, w, u, b: linear(u, h) + b),
    "reads the cell state c": step(z=lambda x, h, c, w, u, b: linear(w, x) + linear(u, c) + b),
    "bias is missing": step(z=lambda x, h, c, w, u, b: linear(w, x) + linear(u, h)),
    "bias is added twice": step(z=lambda x, h, c, w, u, b: linear(w, x) + b + linear(u, h) + b),
    "W and U are exchanged": step(z=lambda x, h, c, w, u, b: linear(u, x) + linear(w, h) + b),
    "W is transposed": step(z=lambda x, h, c, w, u, b: x @ w + linear(u, h) + b),
    "U is transposed": step(z=lambda x, h, c, w, u, b: linear(w, x) + h @ u + b),
    "W and U are transposed": step(z=lambda x, h, c, w, u, b: x @ w + h @ u + b),
    "two vectors": lambda *case: by_torch(*case)[0],
    "both have the shape": lambda *case: (torch.zeros(4), by_torch(*case)[1]),
    "returns nothing": lambda *case: None,
    "raised RuntimeError": lambda x, h, c, w, u, b: (w @ torch.zeros(99), c),
    "largest difference": lambda *case: tuple(part + 1 for part in by_torch(*case)),
}


test_steps = answer_test(grade_lstm_step, right=STEPS, wrong=WRONG_STEPS)


def by_optimizer(gradients, limit):
    parameters = [nn.Parameter(torch.zeros_like(g)) for g in gradients]
    for parameter, g in zip(parameters, gradients, strict=True):
        parameter.grad = g.clone()
    nn.utils.clip_grad_norm_(parameters, limit)
    return [parameter.grad for parameter in parameters]


def length(gradients):
    return math.sqrt(sum(float(x) ** 2 for g in gradients for x in g.flatten()))


def plain(gradients, limit):
    size = length(gradients)
    return [limit / size * g for g in gradients] if size > limit else gradients


def in_place(gradients, limit):
    size = length(gradients)
    for g in gradients:
        if size > limit:
            g.mul_(limit / size)
    return gradients


CLIPS = {
    "torch": by_optimizer,
    "plain": plain,
    "in place": in_place,
    "tuple": lambda gs, limit: tuple(plain(gs, limit)),
    "lists": lambda gs, limit: [g.tolist() for g in plain(gs, limit)],
    "numpy": lambda gs, limit: [g.numpy() for g in plain(gs, limit)],
    "divided by the larger": lambda gs, limit: [g / max(1, length(gs) / limit) for g in gs],
}


def shortened(size):
    def answer(gradients, limit):
        found = size(gradients)
        return [g * (limit / found) for g in gradients] if found > limit else gradients

    return answer


WRONG_CLIPS = {
    "each tensor by itself": lambda gs, limit: [g * min(1, limit / length([g])) for g in gs],
    "each number by itself": lambda gs, limit: [torch.clip(g, -limit, limit) for g in gs],
    "lengthen it to the limit": lambda gs, limit: [limit * g / length(gs) for g in gs],
    "change nothing": lambda gs, limit: gs,
    "gets the length 1": lambda gs, limit: gs if length(gs) <= limit else [g / length(gs) for g in gs],
    "to zero": lambda gs, limit: gs if length(gs) <= limit else [torch.zeros_like(g) for g in gs],
    "not length / limit": lambda gs, limit: (
        gs if length(gs) <= limit else [g * length(gs) / limit for g in gs]
    ),
    "root is missing": shortened(lambda gs: sum((g**2).sum() for g in gs)),
    "square of the length with the limit": lambda gs, limit: (
        gs if length(gs) ** 2 <= limit else [g * limit / length(gs) for g in gs]
    ),
    "add up the lengths": shortened(lambda gs: sum(length([g]) for g in gs)),
    "longest tensor": shortened(lambda gs: max(length([g]) for g in gs)),
    "largest number": shortened(lambda gs: max(g.abs().max() for g in gs)),
    "absolute values": shortened(lambda gs: sum(g.abs().sum() for g in gs)),
    "mean of the squares": shortened(lambda gs: torch.cat([g.flatten() for g in gs]).square().mean() ** 0.5),
    "list of tensors": lambda gs, limit: torch.cat([g.flatten() for g in gs]),
    "returns nothing": lambda gs, limit: None,
    "raised AttributeError": lambda gs, limit: gs.norm(),
    "largest difference": lambda gs, limit: [g + 1 for g in plain(gs, limit)],
}


test_clips = answer_test(grade_clip, right=CLIPS, wrong=WRONG_CLIPS)
