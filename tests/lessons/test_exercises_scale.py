"""Graders of lesson 20: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import numpy as np
import torch
from answer_banks import answer_test

from exformer_lessons.scale.grader import grade_all_reduce, grade_plan


def plan(table, fit, budget, *, rows=-1, per=6, swap=False, equal=False, loss=None):
    n, d, y = table[:rows].T if rows else table.T
    A, a, B, b = fit(n, d, y)  # noqa: N806
    if swap:
        A, a, B, b = B, b, A, a  # noqa: N806
    ratio = A / B if equal else a * A / (b * B)
    size = ratio ** (1 / (a + b)) * (budget / per) ** (b / (a + b))
    last_n, last_d, _ = table[-1].tolist()
    return size, budget / per / size, A * last_n**-a + B * last_d**-b if loss is None else loss


def as_tensor(*case):
    return torch.tensor(plan(*case))


def as_list(*case):
    return list(plan(*case))


def as_numpy(*case):
    return np.array(plan(*case))


def of_tensors(*case):
    return tuple(torch.tensor(x) for x in plan(*case))


def searched(table, fit, budget):
    _, _, loss = plan(table, fit, budget)
    A, a, B, b = fit(*table[:-1].T)  # noqa: N806
    n = torch.logspace(2, 7, 50_001, dtype=torch.float64)
    size = n[(A * n**-a + B * (budget / 6 / n) ** -b).argmin()].item()
    return size, budget / 6 / size, loss


def of_arrays(table, fit, budget):
    return plan(table, lambda *columns: fit(*(each.numpy() for each in columns)), budget)


def of_lists(table, fit, budget):
    return plan(table, lambda *columns: fit(*(torch.tensor(each.tolist()) for each in columns)), budget)


def rounded_to_whole_tokens(*case):
    size, tokens, loss = plan(*case)
    return round(size), round(tokens), loss


RIGHT_PLANS = [
    *(plan, as_tensor, as_list, as_numpy, of_tensors, of_arrays, of_lists),
    *(searched, rounded_to_whole_tokens),
]


def with_third(change):
    def answer(*case):
        size, tokens, loss = plan(*case)
        return change(size, tokens, loss, case)

    return answer


def own_loss(size, tokens, _, case):
    A, a, B, b = case[1](*case[0][:-1].T)  # noqa: N806
    return size, tokens, A / size**a + B / tokens**b


WRONG_PLANS = {
    "You fit with the last row too": lambda *c: plan(*c, rows=None),
    "their derivatives are": lambda *c: plan(*c, equal=True),
    "not one: C = 6ND": lambda *c: plan(*c, per=1),
    "two are the forward pass": lambda *c: plan(*c, per=2),
    "Your tokens do not use the budget": with_third(lambda n, d, loss, c: (n, c[2] / n, loss)),
    "The exponent of the size is b / (a + b)": lambda table, fit, budget: (
        lambda A, a, B, b: (  # noqa: N803
            (n := (a * A / b / B) ** (1 / (a + b)) * (budget / 6) ** (a / (a + b))),
            budget / 6 / n,
            plan(table, fit, budget)[2],
        )
    )(*fit(*table[:-1].T)),
    "You have exchanged parameters and tokens": lambda *c: (*plan(*c, swap=True)[:2], plan(*c)[2]),
    "the parameters come first": with_third(lambda n, d, loss, c: (d, n, loss)),
    "turned round": lambda table, fit, budget: (
        lambda A, a, B, b: (  # noqa: N803
            (n := (b * B / a / A) ** (1 / (a + b)) * (budget / 6) ** (b / (a + b))),
            budget / 6 / n,
            plan(table, fit, budget)[2],
        )
    )(*fit(*table[:-1].T)),
    "is raised to 1 / (a + b)": lambda table, fit, budget: (
        lambda A, a, B, b: (  # noqa: N803
            (n := (a * A / b / B) * (budget / 6) ** (b / (a + b))),
            budget / 6 / n,
            plan(table, fit, budget)[2],
        )
    )(*fit(*table[:-1].T)),
    "not that of your plan": with_third(own_loss),
    "Return three numbers": lambda *c: plan(*c)[0],
    "must be above 0": lambda *c: (0, 1, 2),
    "returns nothing": lambda *c: None,
    "raised TypeError": lambda table, fit: None,
}


test_plans = answer_test(
    grade_plan,
    right=RIGHT_PLANS,
    wrong=WRONG_PLANS,
    refused={
        "size nearly right": with_third(lambda n, d, loss, c: (1.05 * n, d / 1.05, loss)),
        "loss nearly right": with_third(lambda n, d, loss, c: (n, d, 1.05 * loss)),
    },
)


def expanded(sums, counts):
    return (sums.sum(0) / counts.sum()).expand_as(sums)


def weighted(sums, counts):
    means, weights = sums / counts[:, None], counts / counts.sum()
    return (weights @ means).repeat(len(sums), 1)


def in_a_ring(sums, counts):
    total, n = torch.zeros_like(sums[0]), 0.0
    for each, count in zip(sums, counts, strict=True):
        total, n = total + each, n + count
    return torch.stack([total / n for _ in sums])


def all_reduce_in_lists(sums, counts):
    return expanded(sums, counts).tolist()


def all_reduce_in_numpy(sums, counts):
    return np.tile(sums.numpy().sum(0) / counts.numpy().sum(), (len(sums), 1))


def by_ones(sums, counts):
    return torch.ones(len(sums), len(sums)) @ sums / counts.sum()


def worker_by_worker(sums, counts):
    for _ in sums:
        yield (sums.sum(0) / counts.sum()).tolist()


def to_all(row, sums):
    return row.expand_as(sums)


WRONG_REDUCED = {
    "You average the workers' means": lambda s, n: to_all((s / n[:, None]).mean(0), s),
    "You add the workers' means": lambda s, n: to_all((s / n[:, None]).sum(0), s),
    "You divide by the number of workers": lambda s, n: to_all(s.mean(0), s),
    "also divided by the number of all": lambda s, n: to_all(s.sum(0), s),
    "Each worker divides by its own count": lambda s, n: s.sum(0) / n[:, None],
    "Each worker keeps its own gradient": lambda s, n: s / n[:, None],
    "Only the first worker has the sum": lambda s, n: torch.cat([expanded(s, n)[:1], (s / n[:, None])[1:]]),
    "You weight the sums by the counts": lambda s, n: to_all(n @ s / n.sum(), s),
    "You drop the last worker": lambda s, n: to_all(s[:-1].sum(0) / n[:-1].sum(), s),
    "Your weights are turned around": lambda s, n: to_all(
        (s / n[:, None] / n[:, None]).sum(0) / (1 / n).sum(), s
    ),
    "should have the shape": lambda s, n: expanded(s, n)[0],
    "returns nothing": lambda s, n: None,
    "raised AttributeError": lambda s, n: s.total(),
}


test_gradients_of_workers = answer_test(
    grade_all_reduce,
    right=[
        expanded,
        weighted,
        in_a_ring,
        all_reduce_in_lists,
        all_reduce_in_numpy,
        by_ones,
        worker_by_worker,
    ],
    wrong=WRONG_REDUCED,
)
