"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

from collections import Counter

import numpy as np
import torch
from answer_banks import answer_test

from exformer_lessons.tasks.grader import grade_invented, grade_row


def from_one_row(article, separator, summary, bos, eos, pad):
    whole = [bos, *article, *separator, *summary, eos]
    start = 1 + len(article) + len(separator)
    return whole[:-1], [word if place >= start else pad for place, word in enumerate(whole)][1:]


def row(*, first=True, sep=True, early=0, ask_from="summary", end="asked"):
    """Build answers to the first exercise that are wrong in one way."""

    def answer(a, separator, s, bos, eos, pad):
        whole = [bos] * first + a + separator * sep + s + [eos]
        start = first + len(a) + len(separator) * sep
        start = {"article": first, "separator": first + len(a), "summary": start}[ask_from]
        said = [w if i >= start else pad for i, w in enumerate(whole)]
        if end == "unasked":
            said[-1] = pad
        shown, said = (whole, [*said[1:], pad]) if end == "shown" else (whole[:-1], said[1:])
        if early:
            said = (said[early:] + [pad] * early) if early > 0 else ([pad] * -early + said)[: len(said)]
        return shown, said

    return answer


def searched(article, separator, summary, bos, eos, pad):
    whole = [bos, *article, *separator, *summary, eos]
    start = whole.index(separator[-1]) + 1
    return whole[:-1], [pad] * (start - 1) + whole[start:]


def searched_from_the_end(article, separator, summary, bos, eos, pad):
    whole = [bos, *article, *separator, *summary, eos]
    start = len(whole) - whole[::-1].index(separator[-1])
    return whole[:-1], [pad] * (start - 1) + whole[start:]


ROWS = {
    "one row": from_one_row,
    "parts": row(),
    "tensors": lambda *case: torch.tensor(from_one_row(*case)),
    "arrays": lambda *case: np.array(from_one_row(*case)),
    "lists": lambda *case: list(from_one_row(*case)),
    "in place": lambda a, sep, s, bos, eos, pad: (
        a.insert(0, bos) or a.extend(sep) or ([*a, *s], [pad] * (len(a) - 1) + [*s, eos])
    ),
}
WRONG_ROWS = {
    "targets hold the article too": row(ask_from="article"),
    "targets hold the separator too": row(ask_from="separator"),
    "one position late": row(early=-1),
    "one position early": row(early=1),
    "end token is never a target": row(end="unasked"),
    "start token is missing": row(first=False),
    "separator is missing": row(sep=False),
    "input holds the end token": row(end="shown"),
    "not shifted": lambda a, sep, s, bos, eos, pad: (lambda whole, n: (whole, [pad] * n + whole[n:]))(
        [bos, *a, *sep, *s, eos], 1 + len(a) + len(sep)
    ),
    "end token is missing": lambda a, sep, s, bos, eos, pad: (
        [bos, *a, *sep, *s][:-1],
        [*[pad] * len(a + sep), *s],
    ),
    "one id of the separator": lambda a, sep, s, *ids: from_one_row(a, [sep[0]], s, *ids),
    "summary is not shown": lambda a, sep, s, bos, eos, pad: (
        (bos, *a, *sep),
        (pad,) * len(a + sep) + (*s, eos),
    ),
    "need not be 0": lambda a, sep, s, bos, eos, pad: from_one_row(a, sep, s, bos, eos, 0),
    "separator is a list": lambda a, sep, s, bos, eos, pad: (
        [bos, *a, sep, *s],
        [pad] * (1 + len(a)) + [*s, eos],
    ),
    "first word is no target": lambda a, sep, s, bos, eos, pad: (
        [bos, *a, *sep, *s],
        [pad, *[pad] * len(a + sep), *s[1:], eos],
    ),
    "hide the summary in the input": lambda a, sep, s, bos, eos, pad: (
        [bos, *a, *sep] + [pad] * len(s),
        from_one_row(a, sep, s, bos, eos, pad)[1],
    ),
    "look for the separator's id": searched,
    "the summary may hold it, too": searched_from_the_end,
    "other order": lambda *case: list(reversed(from_one_row(*case))),
    "equally long, yours have 7 and 3": lambda *case: (from_one_row(*case)[0][:7], [1, 2, 3]),
    "should have the shape": lambda *case: (from_one_row(*case)[0][:7], from_one_row(*case)[1][:7]),
    "returns nothing": lambda *case: ...,
    "must return numbers": lambda *case: ("shown", "said"),
    "raised KeyError": lambda *case: {}[1],
    "the numbers are not": lambda *case: np.array(from_one_row(*case)) + 1,
}


COUNTS = {
    "loop": lambda s, a, names: len([w for w in s.split() if w in set(names) - set(a.split())]),
    "counters": lambda s, a, names: (lambda c: sum(c[w] for w in names if w not in a.split()))(
        Counter(s.split())
    ),
    "float": lambda s, a, names: float(sum(w in names and w not in a.split() for w in s.split())),
}
WRONG_COUNTS = {
    "every word that is not in the article": lambda s, a, names: len(
        [w for w in s.split() if w not in a.split()]
    ),
    "20 is found in 200": lambda s, a, names: len([w for w in s.split() if w in names and w not in a]),
    "used twice is two": lambda s, a, names: len({w for w in s.split() if w in names and w not in a.split()}),
    "look at the summary's words": lambda s, a, names: len(
        [w for w in a.split() if w in names and w not in s.split()]
    ),
    "the others are invented": lambda s, a, names: len(
        [w for w in s.split() if w in names and w in a.split()]
    ),
    "also those of the article": lambda s, a, names: len([w for w in s.split() if w in names]),
    "That is a share": lambda s, a, names: (
        len([w for w in s.split() if w in names and w not in a.split()]) / len(s.split())
    ),
    "share of the names": lambda s, a, names: (
        len([w for w in s.split() if w in names and w not in a.split()])
        / (len([w for w in s.split() if w in names]) or 1)
    ),
    "found in 2020 too": lambda s, a, names: sum(s.count(n) for n in names if n not in a.split()),
    "however often the summary has it": lambda s, a, names: len(
        [w for w in (Counter(s.split()) - Counter(a.split())).elements() if w in names]
    ),
    "compare whole words": lambda s, a, names: len(
        [w for w in s.split() if w in "/".join(names) and w not in a.split()]
    ),
    "look for each name": lambda s, a, names: len([n for n in names if n in s and n not in a]),
    "change the case of the words": lambda s, a, names: sum(
        w.lower() in [n.lower() for n in names] and w not in a.split() for w in s.split()
    ),
    "the verb may is none": lambda s, a, names: sum(
        w in [n.lower() for n in names] and w not in a.lower().split() for w in s.lower().split()
    ),
    "may is none": lambda s, a, names: sum(w.title() in names and w not in a.split() for w in s.split()),
    "returns nothing": lambda s, a, names: None,
    "raised AttributeError": lambda s, a, names: names.keys(),
    "the number should be 0, yours is 17": lambda s, a, names: 17,
}

test_rows = answer_test(grade_row, right=ROWS, wrong=WRONG_ROWS)


def empties_its_names(summary, article, names):
    while names:
        names.pop()
    return 0


def test_the_hidden_cases_stay_as_they_are():
    assert not grade_invented(empties_its_names)
    assert not grade_invented(lambda s, a, names: 0)
    assert grade_row(ROWS["in place"])
    assert grade_row(ROWS["parts"])


def of_changed_words(ours, theirs):
    return lambda s, a, names: sum(
        w in map(ours, names) and theirs(w) not in theirs(a).split() for w in ours(s).split()
    )


test_counts = answer_test(
    grade_invented,
    right=COUNTS,
    wrong=WRONG_COUNTS,
    refused={
        "small letters": of_changed_words(str.lower, str.lower),
        "small letters in the article": of_changed_words(str, str.lower),
        "no commas": of_changed_words(*(lambda text: text.replace(",", ""),) * 2),
    },
)
