"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import math

import pytest
import torch
import torch.nn.functional as F
from answer_banks import answer_test

from exformer.data.padding import pad
from exformer_lessons.encoder_decoder.grader import grade_log_likelihood, grade_shift


def with_tensors(sentences, pad_id, bos_id, eos_id):
    shown = torch.full((len(sentences), 1 + max(len(s) for s in sentences)), pad_id)
    said = shown.clone()
    shown[:, 0] = bos_id
    for row, ids in enumerate(sentences):
        shown[row, 1 : len(ids) + 1] = torch.tensor(ids)
        said[row, : len(ids)] = torch.tensor(ids)
        said[row, len(ids)] = eos_id
    return shown, said


def by_moving(sentences, pad_id, bos_id, eos_id):
    whole = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor([bos_id, *ids, eos_id]) for ids in sentences], batch_first=True, padding_value=pad_id
    )
    shown = whole[:, :-1].clone()
    shown[shown == eos_id] = pad_id
    return shown, whole[:, 1:]


def in_place(sentences, pad_id, bos_id, eos_id):
    said = [list(ids) for ids in sentences]
    for ids, copy in zip(sentences, said, strict=True):
        ids.insert(0, bos_id)  # changes what it was given
        copy.append(eos_id)
    return [pad(sentences, pad_id=pad_id), pad(said, pad_id=pad_id)]


SHIFTS = {
    "library's pad": lambda s, p, b, e: (
        pad([[b, *x] for x in s], pad_id=p),
        pad([[*x, e] for x in s], pad_id=p),
    ),
    "tensors": with_tensors,
    "one sequence, cut twice": by_moving,
    "in place": in_place,
    "one sequence, cut twice, and no more": lambda s, p, b, e: (lambda whole: (whole[:, :-1], whole[:, 1:]))(
        padded([[b, *x, e] for x in s], p)
    ),
    "one tensor": lambda *case: torch.stack(with_tensors(*case)),
    "lists": lambda *case: tuple(part.tolist() for part in with_tensors(*case)),
    "numpy": lambda *case: tuple(part.numpy() for part in with_tensors(*case)),
    "rows of tensors": lambda *case: tuple(list(part) for part in with_tensors(*case)),
}


def padded(rows, pad_id):
    return torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(row) for row in rows], batch_first=True, padding_value=pad_id
    )


def pair_of(shown, said):
    def answer(sentences, p, b, e):
        return padded([shown(s, b, e) for s in sentences], p), padded([said(s, b, e) for s in sentences], p)

    return answer


def end_last(sentences, p, b, e):
    words = padded(sentences, p)
    column = torch.ones(len(words), 1, dtype=torch.long)
    return torch.cat((b * column, words), dim=1), torch.cat((words, e * column), dim=1)


WRONG_SHIFTS = {
    "the very word": pair_of(lambda s, b, e: [*s, e], lambda s, b, e: [*s, e]),
    "Nothing is shifted": pair_of(lambda s, b, e: s, lambda s, b, e: s),
    "start token is missing": pair_of(lambda s, b, e: s, lambda s, b, e: [*s, e]),
    "never learns to stop": pair_of(lambda s, b, e: [b, *s], lambda s, b, e: s),
    "last word of each sentence is lost": pair_of(lambda s, b, e: ([b, *s])[:-1], lambda s, b, e: s),
    "the wrong way": pair_of(lambda s, b, e: [*s, e], lambda s, b, e: [b, *s]),
    "no <s> into the targets": pair_of(lambda s, b, e: [b, *s, e], lambda s, b, e: [b, *s, e]),
    "inputs hold the end token": lambda s, p, b, e: (
        padded([[b, *x, e] for x in s], p),
        padded([[*x, e] for x in s], p),
    ),
    "comes after the padding": end_last,
    "fill up with 0": lambda s, p, b, e: with_tensors(s, 0, b, e),
    "Both tables are the same": pair_of(lambda s, b, e: [b, *s], lambda s, b, e: [b, *s]),
    "Both tables need one row per sentence, here 2; yours have": [
        lambda *case: tuple(part.T for part in with_tensors(*case)),
        lambda sentences, *ids: [[[1]] * (len(sentences) + 1), [[1]] * len(sentences)],
        lambda sentences, *ids: [[[1]] * len(sentences), [[1]] * (len(sentences) + 1)],
    ],
    "should have the shape (2, 2, 5), yours has (2, 2, 6)": lambda s, p, b, e: tuple(
        F.pad(part, (0, 1), value=p) for part in with_tensors(s, p, b, e)
    ),
    "padding comes first": lambda s, p, b, e: tuple(
        [[p] * (max(map(len, s)) - len(x)) + y for x, y in zip(s, part, strict=True)]
        for part in ([[b, *x] for x in s], [[*x, e] for x in s])
    ),
    "differ in length": lambda s, p, b, e: ([[b, *x] for x in s], [[*x, e] for x in s]),
    "returns nothing": lambda *case: None,
    "Return two tables": [
        lambda *case: with_tensors(*case)[0],
        lambda s, p, b, e: ([b, *s[0]], [*s[0], e]),
        lambda *case: ([[[5], [6]], [[7]]],) * 2,
        lambda *case: ("ab", "ab"),
        lambda *case: (3, 3),
        lambda *case: ([1, 2], [1, 2]),
    ],
    "Your function must return numbers, got tuple": lambda *case: ([["x"]], [["y"]]),
    "raised ZeroDivisionError": lambda *case: 1 / 0,
    "the numbers are not": lambda *case: tuple(part + 1 for part in with_tensors(*case)),
}


ONE_WIDTH = ["start token is missing", "never learns to stop"]


@pytest.mark.parametrize("hint", ONE_WIDTH)
def test_a_mistake_is_named_in_tables_of_one_width_too(hint):
    def answer(sentences, p, b, e):
        shown, said = WRONG_SHIFTS[hint](sentences, p, b, e)
        whole = padded([*shown.tolist(), *said.tolist()], p)
        return whole[: len(sentences)], whole[len(sentences) :]

    assert hint in grade_shift(answer).says


test_shifts = answer_test(
    grade_shift,
    right=SHIFTS,
    wrong=WRONG_SHIFTS,
    refused={"another padding": lambda s, p, b, e: with_tensors(s, -1, b, e)},
)


def by_loops(logits, targets, pad_id):
    found = []
    for rows, words in zip(logits.tolist(), targets.tolist(), strict=True):
        total = 0.0
        for row, word in zip(rows, words, strict=True):
            if word != pad_id:
                total += row[word] - math.log(sum(math.exp(z) for z in row))
        found.append(total)
    return found


def by_torch(logits, targets, pad_id):
    losses = F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad_id, reduction="none")
    return -losses.sum(dim=1)


def by_product(logits, targets, pad_id):
    p = torch.softmax(logits, dim=2).take_along_dim(targets.unsqueeze(2), dim=2).squeeze(2)
    return torch.where(targets == pad_id, 1.0, p).prod(dim=1).log()


def by_sentence(logits, targets, pad_id):
    return torch.stack(
        [
            torch.distributions.Categorical(logits=z[y != pad_id]).log_prob(y[y != pad_id]).sum()
            for z, y in zip(logits, targets, strict=True)
        ]
    )


LIKELIHOODS = {
    "loops": by_loops,
    "torch's loss": by_torch,
    "product": by_product,
    "one sentence at a time": by_sentence,
    "numpy": lambda *case: by_torch(*case).numpy(),
    "float64": lambda z, y, p: by_torch(z.double(), y, p),
}


def of_words(z, y):
    return z.take_along_dim(y.unsqueeze(2), dim=2).squeeze(2)


WRONG_LIKELIHOODS = {
    "add logits": lambda z, y, p: torch.where(y == p, 0.0, of_words(z, y)).sum(1),
    "add probabilities": lambda z, y, p: torch.where(y == p, 0.0, of_words(F.softmax(z, 2), y)).sum(1),
    "likelihood itself": lambda z, y, p: torch.where(y == p, 1.0, of_words(F.softmax(z, 2), y)).prod(1),
    "count the padding": lambda z, y, p: of_words(F.log_softmax(z, 2), y).sum(1),
    "take 0 for the padding token": lambda z, y, p: by_torch(z, y, 0),
    "sign is wrong": lambda z, y, p: F.cross_entropy(
        z.transpose(1, 2), y, ignore_index=p, reduction="none"
    ).sum(1),
    "must return numbers, got list": lambda z, y, p: [[1.0], [1.0, 2.0]],
    "take the softmax twice": lambda z, y, p: by_torch(z.softmax(2), y, p),
    "mean over the words: the": lambda z, y, p: by_torch(z, y, p) / y.ne(p).sum(1),
    "mean over all positions": lambda z, y, p: of_words(F.log_softmax(z, 2), y).mean(1),
    "one number for the whole batch": lambda z, y, p: by_torch(z, y, p).sum(),
    "mean over the words of all": lambda z, y, p: (
        -F.cross_entropy(z.flatten(0, 1), y.flatten(), ignore_index=p)
    ),
    "That is the loss": lambda z, y, p: F.cross_entropy(z.flatten(0, 1), y.flatten(), ignore_index=p),
    "one position off": lambda z, y, p: by_torch(z[:, :-1], y[:, 1:], p),
    "runs over the positions": lambda z, y, p: torch.where(y == p, 0.0, of_words(F.log_softmax(z, 1), y)).sum(
        1
    ),
    "to base 2": lambda z, y, p: torch.where(y == p, 0.0, of_words(F.softmax(z, 2), y).log2()).sum(1),
    "to base 10": lambda z, y, p: torch.where(y == p, 0.0, of_words(F.softmax(z, 2), y).log10()).sum(1),
    "best word at each position": lambda z, y, p: torch.where(
        y == p, 0.0, F.log_softmax(z, 2).max(2).values
    ).sum(1),
    "returns nothing": lambda z, y, p: ...,
    "should have the shape": lambda z, y, p: F.log_softmax(z, 2),
    "raised IndexError": lambda z, y, p: z[99],
    "largest difference": lambda z, y, p: by_torch(z, y, p) + 1,
}


test_likelihoods = answer_test(
    grade_log_likelihood,
    right=LIKELIHOODS,
    wrong=WRONG_LIKELIHOODS,
    refused={"0 is no word": lambda z, y, p: by_torch(z, y.masked_fill(y == 0, p), p)},
)
