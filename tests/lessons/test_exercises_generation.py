"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import torch
from answer_banks import answer_test

from exformer_lessons.generation.grader import grade_beam_step, grade_top_p


def with_a_loop(p, threshold):
    kept, total = torch.zeros_like(p), 0.0
    for i in p.argsort(descending=True).tolist():
        kept[i] = p[i]
        total += p[i].item()
        if total >= threshold:
            break
    return kept / total


def with_a_list(p, threshold):
    numbers = p.tolist()
    order = sorted(range(len(numbers)), key=lambda i: -numbers[i])
    n = next(n for n in range(1, len(order) + 1) if sum(numbers[i] for i in order[:n]) >= threshold)
    total = sum(numbers[i] for i in order[:n])
    return [x / total if i in order[:n] else 0.0 for i, x in enumerate(numbers)]


def with_a_mask(p, threshold):
    before = torch.stack([p[p > x].sum() for x in p])
    return torch.where(before < threshold, p, 0.0) / p[before < threshold].sum()


TOP_P = {
    "loop": with_a_loop,
    "list": with_a_list,
    "the last of equal ones": lambda p, threshold: with_a_loop(p.flip(0), threshold).flip(0),
    "numpy": lambda p, threshold: with_a_loop(p, threshold).numpy(),
    "softmax of logarithms": lambda p, threshold: with_a_loop(p, threshold).log().softmax(0),
}


def cut(p, n, *, scale=lambda kept: kept / kept.sum(), descending=True):
    order = p.argsort(descending=descending)[:n]
    kept = torch.zeros_like(p)
    kept[order] = p[order]
    return scale(kept)


def count(p, threshold, *, descending=True):
    """How many it takes to reach the threshold."""
    return int((p.sort(descending=descending).values.cumsum(0) < threshold).sum()) + 1


def softmax_of_kept(kept):
    found = torch.zeros_like(kept)
    found[kept > 0] = kept[kept > 0].softmax(0)
    return found


def in_given_order(p, threshold):
    n = int((p.cumsum(0) < threshold).sum()) + 1
    kept = torch.cat((p[:n], torch.zeros(len(p) - n)))
    return kept / kept.sum()


def with_gather(p, threshold):
    order = p.argsort(descending=True)
    return with_a_loop(p[order], threshold)[order]


def with_a_sorted_mask(p, threshold):
    mask = torch.arange(len(p)) < count(p, threshold)
    return p * mask / (p * mask).sum()


WRONG_TOP_P = {
    "divide by the threshold": lambda p, t: cut(p, count(p, t), scale=lambda kept: kept / t),
    "bring the mask back": with_a_sorted_mask,
    "write to them": with_gather,
    "above 1 - threshold": lambda p, t: torch.where(p < 1 - t, 0, p) / p[p >= 1 - t].sum(),
    "drop the token at which": lambda p, t: cut(
        p, int((p.sort(descending=True).values.cumsum(0) <= t).sum())
    ),
    "at which the sum reaches the threshold": lambda p, t: cut(
        p, max(1, int((p.sort(descending=True).values.cumsum(0) <= t).sum()))
    ),
    "only while the sum is below": lambda p, t: cut(p, count(p, t) - 1),
    "one more: return the smallest set": lambda p, t: cut(
        p, int((p.sort(descending=True).values.cumsum(0) <= t).sum()) + 1
    ),
    "does not sum to 1": lambda p, t: cut(p, count(p, t), scale=lambda kept: kept),
    "you keep all": with_a_mask,
    "softmax of probabilities": lambda p, t: cut(p, count(p, t), scale=softmax_of_kept),
    "softmax over all tokens": lambda p, t: cut(p, count(p, t), scale=lambda kept: kept.softmax(0)),
    "least probable token": lambda p, t: cut(p, count(p, t, descending=False), descending=False),
    "in the order of the ids": in_given_order,
    "compare each probability": lambda p, t: p * (p >= t) / (p * (p >= t)).sum(),
    "Your result is sorted": lambda p, t: with_a_loop(p.sort(descending=True).values, t),
    "returns nothing": lambda p, t: ...,
    "should have 5 numbers, yours has 3": lambda p, t: p[p > 0.1],
    "raised IndexError": lambda p, t: p[99],
    "nothing is cut off": lambda p, t: p,
    "the numbers are not": lambda p, t: p / 2,
}


test_top_p = answer_test(grade_top_p, right=TOP_P, wrong=WRONG_TOP_P)


def flat(live, further, beam):
    total = (live.unsqueeze(1) + further).reshape(-1)
    order = total.argsort(descending=True)[:beam]
    return total[order], order // further.shape[1], order % further.shape[1]


def sorted_list(live, further, beam):
    every = [
        (p + q, row, symbol)
        for row, p in enumerate(live.tolist())
        for symbol, q in enumerate(further[row].tolist())
    ]
    return list(zip(*sorted(every, reverse=True)[:beam], strict=True))


def of_the_best_in_each_row(live, further, beam):
    """The best of all are among the best `beam` of each row."""
    values, symbols = (live[:, None] + further).topk(beam)
    best, index = values.flatten().topk(beam)
    return best, index // beam, symbols.flatten()[index]


BEAM_STEPS = {
    "flat": flat,
    "sorted list": sorted_list,
    "best in each row first": of_the_best_in_each_row,
    "one tensor": lambda *case: torch.stack([part.double() for part in flat(*case)]),
    "numpy": lambda *case: tuple(part.numpy() for part in flat(*case)),
    "lists": lambda *case: [part.tolist() for part in flat(*case)],
    "product of probabilities": lambda live, further, beam: (
        (found := flat(live, further, beam))[0].exp().log(),
        *found[1:],
    ),
}


def each_row(live, further, beam):
    found = [(live[i].item() + row.max().item(), i, row.argmax().item()) for i, row in enumerate(further)]
    return list(zip(*sorted(found, reverse=True), strict=True))


def too_late(live, further, beam):
    _, rows, symbols = flat(torch.zeros_like(live), further, beam)
    return live[rows] + further[rows, symbols], rows, symbols


def best_only(live, further, beam):
    values, symbols = further[live.argmax()].topk(beam)
    return values + live.max(), torch.full((beam,), int(live.argmax())), symbols


def ragged(live, further, beam):
    return [[1, 2], [3]]


def worst(live, further, beam):
    total, rows, symbols = flat(-live, -further, beam)
    return -total, rows, symbols


WRONG_BEAM_STEPS = {
    "best continuation of each": each_row,
    "row by row": lambda live, further, beam: (
        (live[:, None] + further).amax(dim=1),
        torch.arange(beam),
        further.argmax(dim=1),
    ),
    "best must come first": lambda *case: [part.flip(0) for part in flat(*case)],
    "forget how probable": lambda live, further, beam: flat(0 * live, further, beam),
    "too late": too_late,
    "multiply log-probabilities": lambda live, further, beam: flat(0 * live, live[:, None] * further, beam),
    "return probabilities": lambda *case: ((found := flat(*case))[0].exp(), *found[1:]),
    "mixed up": lambda live, further, beam: (
        (top := (live[:, None] + further).flatten().topk(beam)).values,
        top.indices // beam,
        top.indices % beam,
    ),
    "with //": lambda live, further, beam: (
        (top := (live[:, None] + further).flatten().topk(beam)).values,
        top.indices / further.size(1),
        top.indices % further.size(1),
    ),
    "least probable": worst,
    "best beginning alone": best_only,
    "rows come before tokens": lambda *case: [flat(*case)[i] for i in (0, 2, 1)],
    "returns nothing": lambda *case: None,
    "three things": [lambda *case: flat(*case)[0], lambda *case: 3, lambda *case: "abc", ragged],
    "raised TypeError": lambda live: live,
    "largest difference": lambda *case: [part + 1 for part in flat(*case)],
}


test_beam_steps = answer_test(grade_beam_step, right=BEAM_STEPS, wrong=WRONG_BEAM_STEPS)
