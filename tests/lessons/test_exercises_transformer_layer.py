"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import numpy as np
import torch
import torch.nn.functional as F
from answer_banks import answer_test

from exformer.nn.config import TransformerConfig
from exformer.nn.layers import EncoderLayer
from exformer.nn.normalization import layer_norm
from exformer_lessons.transformer_layer import mistakes as known
from exformer_lessons.transformer_layer.grader import grade_layer_norm, grade_parameters


def by_rows(x, gain, bias, eps):
    rows = x.reshape(-1, x.shape[-1]).tolist()
    found = []
    for row in rows:
        mean = sum(row) / len(row)
        variance = sum((value - mean) ** 2 for value in row) / len(row)
        found.append([(value - mean) / (variance + eps) ** 0.5 for value in row])
    return torch.tensor(found, dtype=x.dtype).reshape(x.shape) * gain + bias


def by_squares(x, gain, bias, eps):
    mean, square = x.mean(-1, keepdim=True), (x * x).mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt(square - mean**2 + eps) * gain + bias


def in_place(x, gain, bias, eps):
    x -= x.mean(dim=-1, keepdim=True)
    x /= (x.pow(2).mean(dim=-1, keepdim=True) + eps).sqrt()
    return x.mul_(gain).add_(bias)


NORMS = {
    "torch": lambda x, g, b, eps: F.layer_norm(x, g.shape, g, b, eps),
    "library": lambda x, g, b, eps: layer_norm(x, g, b, eps=eps),
    "rows": by_rows,
    "squares": by_squares,
    "in place": in_place,
    "numpy": lambda x, g, b, eps: by_rows(x, g, b, eps).numpy(),
    "with a gradient": lambda x, g, b, eps: by_rows(x, g, b, eps).requires_grad_(),
    "float32": lambda *case: F.layer_norm(
        case[0].float(), case[1].shape, case[1].float(), case[2].float(), case[3]
    ),
    "var_mean": lambda x, g, b, eps: (lambda v, m: g * (x - m) / (v + eps) ** 0.5 + b)(
        *torch.var_mean(x, -1, correction=0, keepdim=True)
    ),
}


def normal(x, dims, eps, *, correction=0):
    variance, mean = torch.var_mean(x, dims, correction=correction, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps)


WRONG_NORMS = {
    "by d - 1. Layer norm": lambda x, g, b, eps: g * normal(x, -1, eps, correction=1) + b,
    "Your ε is outside the root": lambda x, g, b, eps: (
        g * (x - x.mean(-1, keepdim=True)) / (x.std(-1, correction=0, keepdim=True) + eps) + b
    ),
    "and your ε is outside": lambda x, g, b, eps: (
        g * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) + b
    ),
    "Your ε does nothing": lambda x, g, b, eps: g * normal(x, -1, 0.0) + b,
    "divide by the variance": lambda x, g, b, eps: (
        g * (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + eps) + b
    ),
    "do not subtract the mean.": lambda x, g, b, eps: (
        g * x / torch.sqrt(x.var(-1, correction=0, keepdim=True) + eps) + b
    ),
    "RMS norm": lambda x, g, b, eps: F.rms_norm(x, g.shape, g, eps) + b,
    "that is batch norm": lambda x, g, b, eps: g * normal(x, 0, eps) + b,
    "run over axis 1": lambda x, g, b, eps: g * normal(x, 1, eps) + b,
    "run over the positions: take": lambda x, g, b, eps: g * normal(x.transpose(-1, -2), -1, eps).mT + b,
    "run over all numbers": lambda x, g, b, eps: (
        g * ((x - x.mean()) / (x.var(correction=0) + eps) ** 0.5) + b
    ),
    "run over the positions as well": lambda x, g, b, eps: g * normal(x, (-2, -1), eps) + b,
    "run over all axes but the last": lambda x, g, b, eps: g * normal(x, tuple(range(x.ndim - 1)), eps) + b,
    "The gain is missing.": lambda x, g, b, eps: F.layer_norm(x, g.shape, eps=eps) + b,
    "The bias is missing.": lambda x, g, b, eps: F.layer_norm(x, g.shape, eps=eps) * g,
    "Gain and bias are missing.": lambda x, g, b, eps: F.layer_norm(x, g.shape, eps=eps),
    "the bias comes last": lambda x, g, b, eps: (F.layer_norm(x, g.shape, eps=eps) + b) * g,
    "returns nothing": lambda *case: ...,
    "should have the shape": lambda x, g, b, eps: layer_norm(x, g, b, eps=eps)[0],
    "raised RuntimeError": lambda x, g, b, eps: x @ torch.ones(999),
    "the numbers are not": lambda x, g, b, eps: layer_norm(x, g, b, eps=eps) + 1,
}


test_norms = answer_test(grade_layer_norm, right=NORMS, wrong=WRONG_NORMS)


def of_the_library(d_model, n_heads, d_ff):
    layer = EncoderLayer(TransformerConfig(d_model=d_model, n_heads=n_heads, d_ff=d_ff))
    return sum(p.numel() for p in layer.parameters())


def by_heads(d_model, n_heads, d_ff):
    d_head = d_model // n_heads
    heads = n_heads * 3 * (d_model * d_head + d_head)
    return heads + d_model**2 + d_model + d_model * d_ff + d_ff + d_ff * d_model + d_model + 4 * d_model


COUNTS = {
    "library": of_the_library,
    "head by head": by_heads,
    "float": lambda *sizes: float(of_the_library(*sizes)),
    "tensor": lambda *sizes: torch.tensor(of_the_library(*sizes)),
    "numpy": lambda *sizes: np.int64(of_the_library(*sizes)),
}


def linear(n_in, n_out, *, bias=True):
    return n_in * n_out + n_out * bias


def count(*, bias_a=True, bias_f=True, merge=1, back=1, norms=2, per_norm=2, heads=False, attention=True):
    def answer(d, h, d_ff):
        times = h if heads else 1
        found = (3 * times + merge * (times if heads == "all" else 1)) * linear(d, d, bias=bias_a) * attention
        found += linear(d, d_ff, bias=bias_f) + back * linear(d_ff, d, bias=bias_f)
        return found + norms * per_norm * d

    return answer


WRONG_COUNTS = {
    "All biases of the linear maps": [count(bias_a=False, bias_f=False)],
    "short by 4 · d_model": [count(bias_a=False), count(norms=0)],
    "biases of the feed-forward": [count(bias_f=False)],
    "short by 2 · d_model": [count(norms=1), count(per_norm=1)],
    "merged by a fourth": [count(merge=0)],
    "every head matrices of the full width": [count(heads="all")],
    "every head queries, keys and values": [count(heads=True)],
    "it goes to d_ff, and back": [count(back=0)],
    "The feed-forward network is missing": [lambda d, h, d_ff: 4 * linear(d, d) + 4 * d],
    "The attention is missing": [count(attention=False)],
    "matrices alone": [lambda d, h, d_ff: 4 * d * d + 2 * d * d_ff],
    "not one for the whole layer": [lambda d, h, d_ff: count(norms=0)(d, h, d_ff) + 4],
    "use the number that is given": [lambda d, h, d_ff: of_the_library(d, h, 4 * d)],
    "returns nothing": [lambda *sizes: None],
    "raised ZeroDivisionError": [lambda *sizes: 1 / 0],
    "the number should be 3748, yours is 3749": [lambda *sizes: of_the_library(*sizes) + 1],
    "should be one number": [lambda *sizes: [1, 2]],
}


test_counts = answer_test(grade_parameters, right=COUNTS, wrong=WRONG_COUNTS)


def test_no_two_known_mistakes_agree():
    found = [tuple(f(*s) for s in ((20, 2, 48), (35, 5, 70))) for f in known.PARAMETERS.values()]
    assert len(set(found)) == len(found)
