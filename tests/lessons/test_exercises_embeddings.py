"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from answer_banks import OVERWRITES, answer_test

from exformer.nn.embedding import embed
from exformer_lessons.embeddings.grader import grade_neighbors, grade_table_gradient


def by_sorting(table, i, n):
    def cosine(j):
        return float(table[i] @ table[j]) / math.sqrt(float(table[i] @ table[i]) * float(table[j] @ table[j]))

    return sorted((j for j in range(len(table)) if j != i), key=cosine, reverse=True)[:n]


def by_numpy(table, i, n):
    rows = table.numpy() / np.linalg.norm(table.numpy(), axis=1, keepdims=True)
    cosines = rows @ rows[i]
    cosines[i] = -np.inf
    return np.argsort(-cosines)[:n]


def one_by_one(table, i, n):
    cosines = {j: F.cosine_similarity(table[i], table[j], dim=0).item() for j in range(len(table)) if j != i}
    for _ in range(n):
        best = max(cosines, key=cosines.get)
        del cosines[best]
        yield best


def by_angle(table, i, n):
    rows = F.normalize(table.double(), dim=1)
    angles = torch.arccos((rows @ rows[i]).clamp(-1, 1))
    angles[i] = math.inf
    return angles.argsort()[:n]


def by_distance_of_units(table, i, n):
    rows = F.normalize(table, dim=1)
    distance = torch.cdist(rows, rows[i : i + 1])[:, 0]
    distance[i] = math.inf
    return distance.topk(n, largest=False).indices


RIGHT = {
    "sorting": by_sorting,
    "numpy": by_numpy,
    "yielded": one_by_one,
    "angles": by_angle,
    "distances of unit rows": by_distance_of_units,
    "without the query's length": lambda table, i, n: [
        j for j in ((table @ table[i]) / table.norm(dim=1)).argsort(descending=True).tolist() if j != i
    ][:n],
    "tuple of tensors": lambda table, i, n: tuple(by_angle(table, i, n)),
}


def ranked(scores, i, n):
    scores = scores.clone()
    scores[i] = -math.inf
    return scores.topk(n).indices


WRONG = {
    "You rank by the dot product": lambda table, i, n: ranked(table @ table[i], i, n),
    "You rank by the distance": lambda table, i, n: ranked(-torch.cdist(table, table[i : i + 1])[:, 0], i, n),
    "its own neighbor": lambda table, i, n: F.cosine_similarity(table, table[i : i + 1]).topk(n).indices,
    "You leave out each row whose cosine is 1": lambda table, i, n: [
        j
        for j in by_sorting(table, i, len(table) - 1)
        if F.cosine_similarity(table[i], table[j], dim=0) < 0.9999
    ][:n],
    "You take the first": lambda table, i, n: (
        F.cosine_similarity(table, table[i : i + 1]).topk(n + 1).indices[1:]
    ),
    "for row i itself": lambda table, i, n: np.argsort(
        -F.cosine_similarity(table, table[i : i + 1]).numpy(), kind="stable"
    )[1 : n + 1],
    "move down by one": lambda table, i, n: (
        F.cosine_similarity(table[torch.arange(len(table)) != i], table[i : i + 1]).topk(n).indices
    ),
    "one neighbor is missing": lambda table, i, n: (
        F.cosine_similarity(table, table[i : i + 1]).topk(n).indices[1:]
    ),
    "the farthest rows": lambda table, i, n: ranked(-F.cosine_similarity(table, table[i : i + 1]), i, n),
    "in reverse": lambda table, i, n: by_sorting(table, i, n)[::-1],
    "the size of the cosine": lambda table, i, n: ranked(
        F.cosine_similarity(table, table[i : i + 1]).abs(), i, n
    ),
    "You return cosines": lambda table, i, n: F.cosine_similarity(table, table[i : i + 1])[
        by_sorting(table, i, n)
    ],
    "normalize the columns": lambda table, i, n: ranked(
        F.normalize(table, dim=0) @ F.normalize(table, dim=0)[i], i, n
    ),
    "subtract the mean row": lambda table, i, n: ranked(
        F.cosine_similarity(table - table.mean(0), (table - table.mean(0))[i : i + 1]), i, n
    ),
    "squared lengths": lambda table, i, n: ranked(table @ table[i] / (table * table).sum(1), i, n),
    "signs only": lambda table, i, n: [
        j
        for j in F.cosine_similarity(table.sign(), table[i : i + 1].sign()).argsort(descending=True).tolist()
        if j != i
    ][:n],
    "without their cosines": lambda table, i, n: tuple(ranked(table @ table[i], i, n)[None].repeat(2, 1)),
    "returns nothing": lambda table, i, n: None,
}


def in_place(table, i, n):
    table /= table.norm(dim=1, keepdim=True)
    return by_sorting(table, i, n)


test_neighbors = answer_test(grade_neighbors, right=RIGHT, told={OVERWRITES: in_place}, wrong=WRONG)


def by_one_hot(ids, ahead, vocab_size):
    return F.one_hot(ids, vocab_size).float().T @ ahead


def by_autograd(ids, ahead, vocab_size):
    table = torch.zeros(vocab_size, ahead.size(1), dtype=ahead.dtype, requires_grad=True)
    embed(ids, table).backward(ahead)
    return table.grad


def by_rows(ids, ahead, vocab_size):
    rows = [[0.0] * ahead.size(1) for _ in range(vocab_size)]
    for i, gradient in zip(ids.tolist(), ahead.tolist(), strict=True):
        rows[i] = [a + b for a, b in zip(rows[i], gradient, strict=True)]
    return rows


def by_adding(ids, ahead, vocab_size):
    return torch.zeros(vocab_size, ahead.size(1)).index_add_(0, ids, ahead)


GRADIENTS = {"adding": by_adding, "one-hot": by_one_hot, "autograd": by_autograd, "rows": by_rows}


def assigned(ids, ahead, vocab_size):
    rows = torch.zeros(vocab_size, ahead.size(1), dtype=ahead.dtype)
    for place, i in enumerate(ids):
        rows[i] = ahead[place]
    return rows


def assigned_once(ids, ahead, vocab_size):
    rows, seen = torch.zeros(vocab_size, ahead.size(1), dtype=ahead.dtype), set()
    for place, i in enumerate(ids.tolist()):
        if i not in seen:
            rows[i] = ahead[place]
        seen.add(i)
    return rows


WRONG_GRADIENTS = {
    "add, do not overwrite": assigned,
    "first gradient alone": assigned_once,
    "mean of the gradients": lambda ids, ahead, n: (
        by_one_hot(ids, ahead, n) / F.one_hot(ids, n).sum(0).clamp(min=1)[:, None]
    ),
    "divide by the number of ids": lambda ids, ahead, n: by_one_hot(ids, ahead, n) / ids.numel(),
    "count how often": lambda ids, ahead, n: by_one_hot(ids, torch.ones_like(ahead), n),
    "You subtract": lambda ids, ahead, n: -by_one_hot(ids, ahead, n),
    "should have the shape": lambda ids, ahead, n: by_one_hot(ids, ahead, n).T,
    "returns nothing": lambda *case: None,
    "raised NotImplementedError": lambda ids, ahead, n: (_ for _ in ()).throw(NotImplementedError("todo")),
    "the numbers are not": lambda ids, ahead, n: 3 * by_one_hot(ids, ahead, n),
}


test_gradients = answer_test(grade_table_gradient, right=GRADIENTS, wrong=WRONG_GRADIENTS)
