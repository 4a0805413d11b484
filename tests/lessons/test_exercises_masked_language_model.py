"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import math

import numpy as np
import torch
from answer_banks import answer_test

from exformer_lessons.masked_language_model.grader import grade_fill, grade_show


def by_loops(ids, chosen, chance, drawn, mask_id):
    rows = []
    for row in range(len(ids)):
        shown = []
        for at in range(ids.shape[1]):
            x = float(chance[row, at])
            if not chosen[row, at] or x >= 0.9:
                shown.append(int(ids[row, at]))
            else:
                shown.append(mask_id if x < 0.8 else int(drawn[row, at]))
        rows.append(shown)
    return rows


def in_place(ids, chosen, chance, drawn, mask_id):
    ids[chosen & (chance < 0.8)] = mask_id
    other = chosen & (chance >= 0.8) & (chance < 0.9)
    ids[other] = drawn[other]
    return ids


def by_numpy(ids, chosen, chance, drawn, mask_id):
    hidden = np.where(chance < 0.8, mask_id, np.where(chance < 0.9, drawn, ids))
    return np.where(chosen, hidden, ids)


def by_buckets(ids, chosen, chance, drawn, mask_id):
    part = torch.bucketize(chance, torch.tensor([0.8, 0.9]), right=True)  # limits in float32
    what = torch.stack([torch.full_like(ids, mask_id), drawn, ids])
    return torch.where(chosen, what.gather(0, part[None])[0], ids)


def with_limits_of_numpy(ids, chosen, chance, drawn, mask_id):
    return by_numpy(ids, chosen, chance.numpy().astype(np.float32), drawn, mask_id)


def shows(masked, other, kept):
    """Make an answer from what is shown below 0.8, from 0.8 to 0.9, and above."""

    def answer(ids, chosen, chance, drawn, mask_id):
        what = {"mask": torch.full_like(ids, mask_id), "other": drawn, "same": ids}
        hidden = torch.where(chance < 0.8, what[masked], torch.where(chance < 0.9, what[other], what[kept]))
        return torch.where(chosen, hidden, ids)

    return answer


def not_yet_written(*case):
    raise NotImplementedError("later")


WRONG_SHOWS = {
    "Every chosen word is masked": shows("mask", "mask", "mask"),
    "you exchange it too": shows("mask", "other", "other"),
    "you leave the word as it is": shows("mask", "same", "same"),
    "have each other's share": shows("other", "mask", "same"),
    "Words are masked that were not chosen": lambda i, c, x, d, m: shows("mask", "other", "same")(
        i, c | True, x, d, m
    ),
    "all words but the chosen ones": lambda i, c, x, d, m: shows("mask", "other", "same")(i, ~c, x, d, m),
    "wrong way round": lambda i, c, x, d, m: shows("mask", "other", "same")(i, c, 1 - x, d, m),
    "nothing is hidden": lambda ids, *rest: ids,
    "laid over the mask": shows("other", "other", "same"),
    "you have the two swapped": shows("mask", "same", "other"),
    "write < rather than <=": lambda i, c, x, d, m: torch.where(
        c & (x <= 0.8), m, torch.where(c & (x <= 0.9), d, i)
    ),
    "raised NotImplementedError: later": not_yet_written,
    "with brackets": lambda i, c, x, d, m: torch.where(c & x < 0.8, m, i),
    "returns nothing": lambda *case: None,
    "raised IndexError": lambda ids, *rest: ids[99],
    "should have the shape": lambda ids, *rest: ids[0],
    "the numbers are not": shows("other", "mask", "other"),
}


def with_limits(below, above):
    def show(ids, chosen, chance, drawn, mask_id):
        out = torch.where(chosen & (chance < above), drawn, ids)
        return torch.where(chosen & (chance < below), torch.full_like(ids, mask_id), out)

    return show


test_shows = answer_test(
    grade_show,
    right=[by_loops, in_place, by_numpy, by_buckets, with_limits_of_numpy],
    wrong=WRONG_SHOWS,
    refused={"0.8 is masked": with_limits(0.8 + 1e-6, 0.9), "0.9 is drawn": with_limits(0.8, 0.9 + 1e-6)},
)


def fill_by_lists(log_p, words, place, candidates):
    p = []
    for each in candidates:
        words[place] = each
        p.append(log_p(words))
    e = [math.exp(each - max(p)) for each in p]
    return [each / sum(e) for each in e]


def fill_by_tensors(log_p, words, place, candidates):
    ids = torch.tensor([words] * len(candidates))
    ids[:, place] = torch.tensor(candidates)
    return torch.tensor([log_p(row) for row in ids]).softmax(dim=0)


def scores(log_p, words, place, candidates, left=0, right=None, wide=1):
    return np.array([log_p([*words[left:place], c, *words[place + wide : right]]) for c in candidates])


def normal(logs):
    return np.exp(logs) / np.exp(logs).sum()


def fill_by_bare_exponentials(*case):
    e = [math.exp(each) for each in scores(*case)]
    return [each / sum(e) for each in e]


WRONG_FILLS = {
    "They do not sum to 1": lambda *case: np.exp(scores(*case)),
    "log-probabilities of whole sentences": lambda *case: scores(*case),
    "Return the probabilities alone": lambda *case: dict(enumerate(fill_by_lists(*case))),
    "near -1000: Your function raised ZeroDivisionError": fill_by_bare_exponentials,
    "like the one in the gap": lambda p, w, i, c: normal(
        np.array([p([k if word == w[i] else word for word in w]) for k in c])
    ),
    "These are logarithms": lambda *case: np.log(normal(scores(*case))),
    "read the right side too": lambda p, w, i, c: normal(scores(p, w, i, c, right=i + 1)),
    "read the left side too": lambda p, w, i, c: normal(scores(p, w, i, c, left=i)),
    "put beside the word": lambda p, w, i, c: normal(scores(p, w, i, c, wide=0)),
    "one position too early": lambda p, w, i, c: normal(scores(p, w, i - 1, c)),
    "one position too late": lambda p, w, i, c: normal(scores(p, w, i + 1, c)),
    "divide logarithms by their sum": lambda *case: scores(*case) / scores(*case).sum(),
    "taken of probabilities": lambda *case: normal(np.exp(scores(*case))),
    "the more probable the sentence": lambda *case: normal(-scores(*case)),
    "come out equal": lambda p, w, i, c: [1 / len(c)] * len(c),
    "returns nothing": lambda *case: None,
    "raised TypeError": lambda p, w, i, c: p(),
    "should have 4 numbers, yours has 1": lambda *case: 0.5,
    "the numbers are not": lambda *case: normal(2 * scores(*case)),
}


test_fills = answer_test(grade_fill, right=[fill_by_lists, fill_by_tensors], wrong=WRONG_FILLS)
