"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import math

import torch
import torch.nn.functional as F
from answer_banks import answer_test

from exformer_lessons.todays_block.grader import grade_grouped, grade_mixture


def repeated(q, k, v):
    n = q.size(0) // k.size(0)
    k, v = k.repeat_interleave(n, 0), v.repeat_interleave(n, 0)
    return F.softmax(q @ k.transpose(1, 2) / math.sqrt(q.size(2)), -1) @ v


def by_groups(q, k, v):
    groups = q.unflatten(0, (len(k), -1))  # (kv_heads, group, query, d_head)
    scores = torch.einsum("ghqd,gkd->ghqk", groups, k) * q.shape[-1] ** -0.5
    return torch.einsum("ghqk,gkd->ghqd", scores.softmax(-1), v).flatten(0, 1)


def head_by_head(q, k, v):
    outputs = []
    for h in range(len(q)):
        g = h * len(k) // len(q)
        outputs.append((q[h] @ k[g].T / q.size(-1) ** 0.5).softmax(-1) @ v[g])
    return torch.stack(outputs)


def by_index(q, k, v):
    group = torch.arange(len(q)) // (len(q) // len(k))
    return repeated(q, k[group], v[group])


def rows_of_one_product(q, k, v):
    folded = q.reshape(len(k), -1, q.size(-1))
    return repeated(folded, k, v).reshape(q.shape)


def as_numpy(q, k, v):
    return repeated(q, k, v).numpy()


def as_lists(q, k, v):
    return by_groups(q, k, v).tolist()


def by_the_kernel_of_torch(q, k, v):
    return F.scaled_dot_product_attention(q[None], k[None], v[None], enable_gqa=True)[0]


def tiled(x, n):
    return torch.cat([x] * n)


def attention(q, k, v, scale=None, dim=-1):
    return (q @ k.mT * (q.size(-1) ** -0.5 if scale is None else scale)).softmax(dim) @ v


WRONG_GROUPS = {
    "You deal the heads out in turn": lambda q, k, v: attention(
        q, tiled(k, len(q) // len(k)), tiled(v, len(q) // len(k))
    ),
    "your values are dealt out in turn": lambda q, k, v: attention(
        q, k.repeat_interleave(len(q) // len(k), 0), tiled(v, len(q) // len(k))
    ),
    "your keys are dealt out in turn": lambda q, k, v: attention(
        q, tiled(k, len(q) // len(k)), v.repeat_interleave(len(q) // len(k), 0)
    ),
    "All your heads read the first head": lambda q, k, v: attention(q, k[:1], v[:1]),
    "You average the heads": lambda q, k, v: attention(q, k.mean(0), v.mean(0)),
    "Your groups are in reverse": lambda q, k, v: by_index(q, k.flip(0), v.flip(0)),
    "not divided by the root": lambda q, k, v: repeated(q * q.size(-1) ** 0.5, k, v),
    "You divide by d_head": lambda q, k, v: repeated(q / q.size(-1) ** 0.5, k, v),
    "You divide by the root of d_model": lambda q, k, v: repeated(q / len(q) ** 0.5, k, v),
    "Your softmax runs over the queries": lambda q, k, v: attention(
        q, *(x.repeat_interleave(len(q) // len(k), 0) for x in (k, v)), dim=1
    ),
    "Your softmax runs over the heads": lambda q, k, v: attention(
        q, *(x.repeat_interleave(len(q) // len(k), 0) for x in (k, v)), dim=0
    ),
    "You mask later keys": lambda q, k, v: F.scaled_dot_product_attention(
        q, *(x.repeat_interleave(len(q) // len(k), 0) for x in (k, v)), is_causal=True
    ),
    "returns nothing": lambda q, k, v: None,
    "raised RuntimeError": lambda q, k, v: q @ k.mT @ v,
    "should have the shape": lambda q, k, v: repeated(q, k, v).transpose(0, 1),
}


test_groups = answer_test(
    grade_grouped,
    right=[
        *(repeated, by_groups, head_by_head, by_index, rows_of_one_product),
        *(by_the_kernel_of_torch, as_numpy, as_lists),
    ],
    wrong=WRONG_GROUPS,
)


def balance_of(p, used):
    return p.size(1) * (used.mean(0) * p.mean(0)).sum()


def used_of(p, k):
    return torch.zeros_like(p).scatter(1, p.topk(k).indices, 1.0)


def with_gates(x, w, experts, k):
    p = (x @ w).softmax(-1)
    used = used_of(p, k)
    gates = p * used / (p * used).sum(-1, keepdim=True)
    return sum(gates[:, e, None] * f(x) for e, f in enumerate(experts)), balance_of(p, used)


def token_by_token(x, w, experts, k):
    rows, counts, total = [], [0] * len(experts), torch.zeros(len(experts))
    for token in x:
        p = torch.softmax(token @ w, 0)
        total += p
        best = sorted(range(len(experts)), key=lambda e: -p[e])[:k]
        for e in best:
            counts[e] += 1
        rows.append(sum(p[e] * experts[e](token[None])[0] for e in best) / sum(p[e] for e in best))
    n = len(x)
    return torch.stack(rows), len(experts) * sum(c / n * t / n for c, t in zip(counts, total, strict=True))


def softmax_of_the_chosen(x, w, experts, k):
    logits = x @ w
    best, chosen = logits.topk(k)
    gates, output = best.softmax(-1), torch.zeros_like(x)
    for e, expert in enumerate(experts):
        token, slot = (chosen == e).nonzero(as_tuple=True)
        if len(token):
            output.index_add_(0, token, gates[token, slot, None] * expert(x[token]))
    p = logits.softmax(-1)
    return [output, balance_of(p, used_of(p, k)).item()]


def masked_logits(x, w, experts, k):
    logits = x @ w
    lowest = logits.topk(k).values[:, -1:]
    gates = logits.masked_fill(logits < lowest, -torch.inf).softmax(-1)
    outputs = torch.stack([expert(x) for expert in experts], dim=1)
    return (gates[..., None] * outputs).sum(1).numpy(), balance_of(logits.softmax(-1), (gates > 0).float())


def with_counts(x, w, experts, k):
    p = (x @ w).exp()
    p = p / p.sum(1, keepdim=True)
    counts = torch.bincount(p.topk(k).indices.flatten(), minlength=len(experts))
    return with_gates(x, w, experts, k)[0], (counts * p.sum(0)).sum() * len(experts) / len(x) ** 2


def balance_in_a_list(x, w, experts, k):
    output, balance = with_gates(x, w, experts, k)
    return output.tolist(), [balance.item()]


def wrong(*, weigh=None, choose=None, dim=-1, add=False, loss=None):
    """Mix experts with one mistake."""

    def answer(x, w, experts, k):
        p = (x @ w).softmax(dim)
        chosen = p.topk(k).indices if choose is None else choose(p, k)
        top = p.gather(1, chosen)
        g = top / top.sum(-1, keepdim=True) if weigh is None else weigh(top)
        output = x.clone() if add else torch.zeros_like(x)
        for t in range(len(x)):
            for slot, e in enumerate(chosen[t].tolist()):
                output[t] += g[t, slot] * experts[e](x[t : t + 1])[0]
        p = (x @ w).softmax(-1)
        return output, balance_of(p, used_of(p, k)) if loss is None else loss(p, used_of(p, k), k)

    return answer


def with_zeroed_logits(x, w, experts, k):
    logits = x @ w
    hidden = logits < logits.topk(k, dim=-1).values[:, -1:]
    gates = logits.masked_fill(hidden, 0.0).softmax(dim=-1)
    output = sum(gates[:, [e]] * expert(x) for e, expert in enumerate(experts))
    return output, with_gates(x, w, experts, k)[1]


WRONG_MIXTURES = {
    "The weights are not applied": wrong(weigh=torch.ones_like),
    "You average the chosen": wrong(weigh=lambda top: torch.ones_like(top) / top.size(1)),
    "The weights do not sum to 1": wrong(weigh=lambda top: top),
    "You use all experts": wrong(choose=lambda p, k: p.argsort(descending=True)),
    "You use the most probable expert alone": wrong(choose=lambda p, k: p.argmax(-1, keepdim=True)),
    "You choose the least probable": wrong(choose=lambda p, k: p.argsort()[:, :k]),
    "Your softmax runs over the tokens": wrong(dim=0),
    "You take the softmax twice": wrong(weigh=lambda top: top.softmax(-1)),
    "given to the wrong experts": wrong(weigh=lambda top: (top / top.sum(-1, keepdim=True)).flip(1)),
    "exp(0) is 1": with_zeroed_logits,
    "You add the input": wrong(add=True),
    "You multiply counts by counts": wrong(loss=lambda p, u, k: p.size(1) * (u.mean(0) ** 2).sum()),
    "You multiply probabilities by": wrong(loss=lambda p, u, k: p.size(1) * (p.mean(0) ** 2).sum()),
    "number of experts is missing": wrong(loss=lambda p, u, k: u.mean(0) @ p.mean(0)),
    "You count the most probable expert": wrong(loss=lambda p, u, k: balance_of(p, used_of(p, 1))),
    "You divide the counts by k": wrong(loss=lambda p, u, k: balance_of(p, u / k)),
    "You sum over the tokens": wrong(loss=lambda p, u, k: p.size(1) * (u.sum(0) @ p.sum(0))),
    "P is the mean of the weights": wrong(
        loss=lambda p, u, k: balance_of(p * u / (p * u).sum(-1, keepdim=True), u)
    ),
    "You multiply token by token": wrong(loss=lambda p, u, k: p.size(1) * (p * u).sum(-1).mean()),
    "Return two results": lambda x, w, experts, k: with_gates(x, w, experts, k)[0],
    "returns nothing": lambda x, w, experts, k: None,
    "raised TypeError": lambda x, w, experts: None,
}


test_mixtures = answer_test(
    grade_mixture,
    right=[with_gates, token_by_token, softmax_of_the_chosen, masked_logits, with_counts, balance_in_a_list],
    wrong=WRONG_MIXTURES,
    refused={
        "output nearly right": wrong(weigh=lambda top: 1.001 * top / top.sum(-1, keepdim=True)),
        "balance nearly right": wrong(loss=lambda p, u, k: balance_of(p, u) + 1e-3),
    },
)
