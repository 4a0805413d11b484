"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from answer_banks import answer_test

from exformer_lessons.multi_head_attention.grader import grade_multi_head, grade_split


def cut(x, n_heads):
    return x.view(*x.shape[:2], n_heads, -1).permute(0, 2, 1, 3)


def join(heads):
    return torch.cat(heads.unbind(1), dim=-1)


SPLITS = {
    "permute, cat": (cut, join),
    "slices, reshape": (
        lambda x, n: torch.stack([x[..., i * (w := x.size(-1) // n) : (i + 1) * w] for i in range(n)], 1),
        lambda heads: heads.transpose(2, 1).reshape(len(heads), heads.size(2), -1),
    ),
    "chunk, flatten": (
        lambda x, n: torch.stack(x.chunk(n, dim=2), dim=1),
        lambda heads: heads.movedim(1, 2).flatten(-2),
    ),
    "numpy": (
        lambda x, n: np.stack(np.split(x.numpy(), n, axis=2), axis=1),
        lambda heads: np.concatenate(list(heads.numpy().swapaxes(0, 1)), axis=-1),
    ),
    "einops by hand": (
        lambda x, n: x.unflatten(2, (n, x.size(2) // n)).swapaxes(1, 2),
        lambda heads: torch.einsum("bhtd->bthd", heads).flatten(2),
    ),
}


WRONG_SPLITS = {
    "order of memory": lambda x, n: x.view(len(x), n, x.size(1), -1),
    "come after the positions": lambda x, n: x.view(*x.shape[:2], n, -1),
    "heads are the last axis": lambda x, n: x.view(*x.shape[:2], n, -1).transpose(2, 3),
    "as cards": lambda x, n: torch.stack([x[..., i::n] for i in range(n)], dim=1),
    "come before the positions": lambda x, n: x.view(*x.shape[:2], n, -1).permute(0, 2, 3, 1),
    "come before the batch": lambda x, n: torch.stack(x.chunk(n, dim=-1)),
    "returns nothing": lambda x, n: None,
    "should have the shape": lambda x, n: x,
    "raised IndexError": lambda x, n: x[:, :, 99],
    "the numbers are not": lambda x, n: cut(x, n) + 1,
    "should have the shape (2, 4, 3, 5)": lambda x, n: cut(x, x.size(-1) // n),
}


test_right_splits = answer_test(lambda pair: grade_split(*pair), right=SPLITS)
test_wrong_splits = answer_test(lambda answer: grade_split(answer, join), wrong=WRONG_SPLITS)


WRONG_MERGES = {
    "without the transpose": lambda heads: heads.reshape(len(heads), heads.size(2), -1),
    "join the columns in turn": lambda heads: heads.permute(0, 2, 3, 1).flatten(2),
    "in reverse": lambda heads: torch.cat(heads.unbind(1)[::-1], dim=-1),
    "returns nothing": lambda heads: ...,
    "should have the shape": lambda heads: heads.mean(1),
    "the numbers are not": lambda heads: 2 * join(heads),
}


@pytest.mark.parametrize("hint", WRONG_MERGES)
def test_wrong_merges_are_named(hint):
    verdict = grade_split(cut, WRONG_MERGES[hint])
    assert not verdict
    assert hint in verdict.says
    assert "my_merge" in verdict.says


def test_a_view_cannot_join_heads():
    says = grade_split(cut, lambda heads: heads.transpose(1, 2).view(len(heads), heads.size(2), -1)).says
    assert "my_merge: Your function raised RuntimeError" in says


def by_kernel(x, w_q, w_k, w_v, w_o, n):
    q, k, v = (cut((x @ w)[None], n) for w in (w_q, w_k, w_v))
    return join(F.scaled_dot_product_attention(q, k, v))[0] @ w_o


def by_torch(x, w_q, w_k, w_v, w_o, n):
    layer = torch.nn.MultiheadAttention(x.size(1), n, bias=False, batch_first=True)
    layer.in_proj_weight.data = torch.cat((w_q.T, w_k.T, w_v.T))
    layer.out_proj.weight.data = w_o.T
    return layer(x[None], x[None], x[None], need_weights=False)[0]


def looped(
    x, w_q, w_k, w_v, w_o, n, *, root=math.sqrt, width=None, soft=lambda s: s.softmax(-1), own=None, share=1.0
):
    """A loop that adds the heads' shares; its parts can be spoiled one by one."""
    d = x.size(1) // n
    total = 0
    for i in range(n):
        mine = own(i, d, n) if own else torch.arange(i * d, (i + 1) * d)
        scores = (x @ w_q)[:, mine] @ (x @ w_k)[:, mine].T / root(width(x.size(1), d) if width else d)
        total = total + soft(scores) @ (x @ w_v)[:, mine] @ w_o[i * d : (i + 1) * d] * share
    return total


MULTI_HEADS = {
    "torch's kernel": by_kernel,
    "torch's layer, a batch of one": by_torch,
    "loop": looped,
    "with weights": lambda *case: (looped(*case), None),
    "numpy": lambda *case: looped(*case).numpy(),
    "float64": lambda *case: looped(*[c.double() if torch.is_tensor(c) else c for c in case]),
}


def heads_of(x, w_q, w_k, w_v, n):
    return by_kernel(x, w_q, w_k, w_v, torch.eye(x.size(1)), n)


def viewed(x, w_q, w_k, w_v, n):
    q, k, v = ((x @ w).reshape(n, len(x), -1) for w in (w_q, w_k, w_v))
    return F.scaled_dot_product_attention(q[None], k[None], v[None])[0]


def over_heads(x, w_q, w_k, w_v, w_o, n):
    q, k, v = (torch.stack((x @ w).chunk(n, dim=1)) for w in (w_q, w_k, w_v))
    weights = F.softmax(q @ k.mT / q.size(-1) ** 0.5, dim=0)
    return torch.cat(list(weights @ v), dim=1) @ w_o


WRONG_MULTI_HEADS = {
    "W^O is missing": lambda x, q, k, v, o, n: heads_of(x, q, k, v, n),
    "divide by √d_model": lambda *case: looped(*case, width=lambda d_model, d: d_model),
    "divide by d_head: divide": lambda *case: looped(*case, root=float),
    "divide by d_model: divide": lambda *case: looped(*case, root=float, width=lambda d_model, d: d_model),
    "not scaled": lambda *case: looped(*case, root=lambda d: 1.0),
    "keep one head alone": lambda x, q, k, v, o, n: looped(
        x, q, k, v, torch.cat([torch.zeros_like(o[: -len(o) // n]), o[-len(o) // n :]]), n
    ),
    "mean of the heads' shares": lambda *case: looped(*case, share=1 / case[-1]),
    "first slice of w_o alone": lambda x, q, k, v, o, n: (
        heads_of(x, q, k, v, n).unflatten(1, (n, -1)).mean(1) @ o[: x.size(1) // n]
    ),
    "average the heads before w_o": lambda x, q, k, v, o, n: (
        torch.cat([heads_of(x, q, k, v, n).unflatten(1, (n, -1)).mean(1)] * n, dim=1) @ o
    ),
    "over the heads": over_heads,
    "over the queries": lambda *case: looped(*case, soft=lambda s: s.softmax(0)),
    "softmax is missing": lambda *case: looped(*case, soft=lambda s: s),
    "one wide head": lambda x, q, k, v, o, n: by_kernel(x, q, k, v, o, 1),
    "You cut by view": lambda x, q, k, v, o, n: viewed(x, q, k, v, n).reshape(x.shape) @ o,
    "Your cut mixes words": lambda x, q, k, v, o, n: torch.cat(list(viewed(x, q, k, v, n)), dim=1) @ o,
    "merge the heads without a transpose": lambda x, q, k, v, o, n: (
        torch.stack(heads_of(x, q, k, v, n).chunk(n, dim=1)).reshape(x.shape) @ o
    ),
    "as cards": lambda *case: looped(*case, own=lambda i, d, n: torch.arange(i, d * n, n)),
    "as nn.Linear does": lambda x, q, k, v, o, n: by_kernel(x, q.T, k.T, v.T, o.T, n),
    "You transpose w_o": lambda x, q, k, v, o, n: by_kernel(x, q, k, v, o.T, n),
    "Queries and keys are exchanged": lambda x, q, k, v, o, n: by_kernel(x, k, q, v, o, n),
    "returns nothing": lambda *case: None,
    "should have the shape": lambda *case: looped(*case)[None, None],
    "raised RuntimeError": lambda x, q, k, v, o, n: x @ x,
    "the numbers are not": lambda *case: looped(*case) + 1,
}


#: Right for some widths or numbers of heads.
IN_SOME_CASES = {
    "a scale of 2": lambda *case: looped(*case, root=lambda d: 2.0),
    "a scale of half of d_head": lambda *case: looped(*case, root=lambda d: d / 2),
    "a scale by a logarithm": lambda *case: looped(*case, root=math.log2),
    "heads of width 4": lambda x, *maps: looped(x, *maps[:-1], x.size(1) // 4),
    "two heads": lambda *case: by_kernel(*case[:-1], 2),
}

test_multi_heads = answer_test(
    grade_multi_head, right=MULTI_HEADS, wrong=WRONG_MULTI_HEADS, refused=IN_SOME_CASES
)
