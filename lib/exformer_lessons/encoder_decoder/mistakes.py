"""Known mistakes, each with its hint: teacher forcing and the likelihood of a sentence."""

import math
from collections.abc import Callable

import numpy as np
from torch import Tensor

Rows = list[list[int]]
Shift = Callable[..., tuple[Rows, Rows]]


def shift(sentences: Rows, pad_id: int, bos_id: int, eos_id: int) -> tuple[Rows, Rows]:
    """The right shift: the inputs begin with the start token, the targets finish with the end token."""
    shown, said = [[bos_id, *ids] for ids in sentences], [[*ids, eos_id] for ids in sentences]
    return _fill(shown, pad_id), _fill(said, pad_id)


def _fill(rows: Rows, pad_id: int, *, left: bool = False) -> Rows:
    width = max(map(len, rows))
    return [
        [pad_id] * (width - len(ids)) * left + ids + [pad_id] * (width - len(ids)) * (not left)
        for ids in rows
    ]


def _shifted(shown: Callable[..., list[int]], said: Callable[..., list[int]], *, left: bool = False) -> Shift:
    def mistake(sentences: Rows, pad_id: int, bos_id: int, eos_id: int) -> tuple[Rows, Rows]:
        rows = [[one(list(ids), bos_id, eos_id) for ids in sentences] for one in (shown, said)]
        return _fill(rows[0], pad_id, left=left), _fill(rows[1], pad_id, left=left)

    return mistake


def _end_behind_padding(sentences: Rows, pad_id: int, bos_id: int, eos_id: int) -> tuple[Rows, Rows]:
    filled = _fill(sentences, pad_id)
    return [[bos_id, *ids] for ids in filled], [[*ids, eos_id] for ids in filled]


def _ragged(sentences: Rows, pad_id: int, bos_id: int, eos_id: int) -> tuple[Rows, Rows]:
    return [[bos_id, *ids] for ids in sentences], [[*ids, eos_id] for ids in sentences]


#: Wrong ways to make the decoder's inputs and targets.
SHIFT: dict[str, Shift] = {
    "You show the decoder the very word that it should predict: its input starts with <s>.": _shifted(
        lambda w, b, e: [*w, e], lambda w, b, e: [*w, e]
    ),
    "Nothing is shifted, and nothing starts or ends: <s> goes before the inputs, "
    "</s> after the targets.": _shifted(lambda w, b, e: w, lambda w, b, e: w),
    "The start token is missing: without an input, the first word cannot be predicted.": _shifted(
        lambda w, b, e: w, lambda w, b, e: [*w, e]
    ),
    "The end token is missing: your decoder never learns to stop.": _shifted(
        lambda w, b, e: [b, *w], lambda w, b, e: w
    ),
    "The last word of each sentence is lost, and so is the end token.": _shifted(
        lambda w, b, e: [b, *w[:-1]], lambda w, b, e: w
    ),
    "You shift the wrong way: your decoder sees the next word and predicts the previous one.": _shifted(
        lambda w, b, e: [*w, e], lambda w, b, e: [b, *w]
    ),
    "Both rows start and end with the special tokens: so <s> would be predicted after <s>. "
    "Put no </s> into the inputs, and no <s> into the targets.": _shifted(
        lambda w, b, e: [b, *w, e], lambda w, b, e: [b, *w, e]
    ),
    "Your inputs hold the end token: nothing is predicted after it.": _shifted(
        lambda w, b, e: [b, *w, e], lambda w, b, e: [*w, e]
    ),
    "Your end token comes after the padding: first the tokens, then the padding.": _end_behind_padding,
    "Your padding comes first: fill up at the end.": _shifted(
        lambda w, b, e: [b, *w], lambda w, b, e: [*w, e], left=True
    ),
    "You fill up with 0: use pad_id, which may be another.": lambda s, pad, b, e: shift(s, 0, b, e),
    "Both tables are the same, and start with <s>: the targets are one word ahead.": _shifted(
        lambda w, b, e: [b, *w], lambda w, b, e: [b, *w]
    ),
    "Your rows differ in length: fill the short ones up with pad_id.": _ragged,
}


def log_likelihood(logits: Tensor, targets: Tensor, pad_id: int) -> Tensor:
    """Add the log-probabilities of each sentence's words, padding left out."""
    return (_of_targets(logits.log_softmax(-1), targets) * (targets != pad_id)).sum(-1)


def _of_targets(scores: Tensor, targets: Tensor) -> Tensor:
    return scores.gather(-1, targets[..., None]).squeeze(-1)  # (batch, tgt)


def spread(given: object, *, like: Tensor) -> object:
    """Repeat one number for all sentences, so that it can be compared."""
    size = given.numel() if isinstance(given, Tensor) else np.size(given)
    number = given.item() if size == 1 and isinstance(given, Tensor) else given
    return [number] * len(like) if size == 1 else given


def _of_all(logits: Tensor, targets: Tensor, pad_id: int) -> Tensor:
    return log_likelihood(logits, targets, pad_id).sum().expand(len(targets))


def _mean_of_all(logits: Tensor, targets: Tensor, pad_id: int) -> Tensor:
    return _of_all(logits, targets, pad_id) / (targets != pad_id).sum()


def _one_off(logits: Tensor, targets: Tensor, pad_id: int) -> Tensor:
    return log_likelihood(logits[:, :-1], targets[:, 1:], pad_id)


#: Wrong ways to compute the log-likelihood of sentences.
LOG_LIKELIHOOD: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "You add logits: a log_softmax must first make log-probabilities of them.": (
        lambda z, y, pad: (_of_targets(z, y) * (y != pad)).sum(-1)
    ),
    "You take the softmax twice: log_softmax wants logits, not probabilities.": (
        lambda z, y, pad: log_likelihood(z.softmax(-1), y, pad)
    ),
    "You add probabilities: the likelihood is their product, so add their logarithms.": (
        lambda z, y, pad: (_of_targets(z.softmax(-1), y) * (y != pad)).sum(-1)
    ),
    "That is the likelihood itself: take its logarithm, or add logarithms from the start.": (
        lambda z, y, pad: log_likelihood(z, y, pad).exp()
    ),
    "You count the padding: a position whose target is pad_id adds nothing.": (
        lambda z, y, pad: _of_targets(z.log_softmax(-1), y).sum(-1)
    ),
    "You take 0 for the padding token: use pad_id, which may be another.": (
        lambda z, y, pad: log_likelihood(z, y, 0)
    ),
    "The sign is wrong: logarithms of probabilities are negative. Yours is the loss of each sentence.": (
        lambda z, y, pad: -log_likelihood(z, y, pad)
    ),
    "You take the mean over the words: the likelihood is a product over all of them, so add.": (
        lambda z, y, pad: log_likelihood(z, y, pad) / (y != pad).sum(-1)
    ),
    "You take the mean over all positions, padding too: add, and leave the padding out.": (
        lambda z, y, pad: _of_targets(z.log_softmax(-1), y).mean(-1)
    ),
    "You give one number for the whole batch: return one per sentence.": _of_all,
    "That is the mean over the words of all sentences: return one sum per sentence.": _mean_of_all,
    "That is the loss, one mean for the batch: return one sum per sentence, without the minus.": (
        lambda z, y, pad: -_mean_of_all(z, y, pad)
    ),
    "You are one position off: targets are shifted already, logits at t belong to targets at t.": (_one_off),
    "Your softmax runs over the positions: it belongs on the last axis, over the vocabulary.": (
        lambda z, y, pad: (_of_targets(z.log_softmax(-2), y) * (y != pad)).sum(-1)
    ),
    "You take the logarithm to base 2, so these are bits: return nats.": (
        lambda z, y, pad: log_likelihood(z, y, pad) / math.log(2)
    ),
    "You take the logarithm to base 10: take the natural one.": (
        lambda z, y, pad: log_likelihood(z, y, pad) / math.log(10)
    ),
    "You take the best word at each position: take the probability of the word in targets.": (
        lambda z, y, pad: (z.log_softmax(-1).amax(-1) * (y != pad)).sum(-1)
    ),
}
