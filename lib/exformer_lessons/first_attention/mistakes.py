"""Known mistakes, each with its hint: context vectors, alignments."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from exformer_lessons.exercises.grading import FINITE_FILL, NOT_STABLE, Mistake

Links = Sequence[tuple[int, int]]


def context(h_d: Tensor, h_e: Tensor, real: Tensor) -> Tensor:
    """The right context: the encoder's real states, weighted by the softmax of their fit."""
    return _alpha(h_d @ h_e.mT, real) @ h_e


def _alpha(scores: Tensor, real: Tensor) -> Tensor:
    return scores.masked_fill(~real[:, None], -math.inf).softmax(dim=-1)


def _raw(h_d: Tensor, h_e: Tensor, real: Tensor) -> Tensor:
    return (h_d @ h_e.mT) * real[:, None]


def _shared(h_d: Tensor, h_e: Tensor, real: Tensor) -> Tensor:
    scores = _raw(h_d, h_e, real)
    return scores / scores.sum(-1, keepdim=True) @ h_e


def _equal(h_d: Tensor, h_e: Tensor, real: Tensor) -> Tensor:
    return _alpha(h_d @ h_e.mT * 0, real) @ h_e


def _hard(h_d: Tensor, h_e: Tensor, real: Tensor) -> Tensor:
    best = _alpha(h_d @ h_e.mT, real).argmax(-1)  # (batch, tgt)
    return h_e.take_along_dim(best[..., None], dim=1)


def _queries(moved: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    return lambda d, e, real: context(moved(d), e, real)


def _of_zeroed_states(h_d: Tensor, h_e: Tensor, real: Tensor) -> Tensor:
    states = h_e * real[..., None]
    return (h_d @ states.mT).softmax(-1) @ states


def _by_exponentials(h_d: Tensor, h_e: Tensor, real: Tensor) -> Tensor:
    """Compute the softmax as its equation has it: 0/0 where each exponential is too small for its type."""
    fit = (h_d @ h_e.mT).exp() * real[:, None]
    return fit / fit.sum(-1, keepdim=True) @ h_e


def _filled(fill: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Fill masked scores with a number that depends on the scores."""

    def wrong(h_d: Tensor, h_e: Tensor, real: Tensor) -> Tensor:
        scores = h_d @ h_e.mT
        return torch.where(real[:, None], scores, fill(scores)).softmax(-1) @ h_e

    return wrong


#: Wrong ways to compute the context vectors.
CONTEXT: dict[str, Mistake] = {
    "You divide the scores by √d_model: the first attention did not. (Lesson 03 does, and says why.)": (
        lambda d, e, real: _alpha(d @ e.mT / math.sqrt(d.size(-1)), real) @ e
    ),
    "Your mask hides rows, but padding is in the columns: real[:, None] has the shape (batch, 1, src).": (
        lambda d, e, real: (d @ e.mT).masked_fill(~real[..., None], -1e9).softmax(-1) @ e
    ),
    "You use the mask of the first sentence for all of them: each sentence has its own row of real.": (
        lambda d, e, real: context(d, e, real[:1].expand_as(real))
    ),
    "You fill padding with a number a little below the scores, and it keeps a little weight: use -inf.": (
        *(_filled(lambda s, less=less: s.min() - less) for less in (0.0, 1.0, 2.0, 5.0, 10.0)),
        *(_filled(lambda s, less=less: s.amin(-1, keepdim=True) - less) for less in (0.0, 1.0, 10.0)),
    ),
    "Padding gets weight: set its scores to -inf before the softmax.": (
        lambda d, e, real: (d @ e.mT).softmax(-1) @ e
    ),
    "You set the scores of padding to 0, and exp(0) is 1: set them to -inf.": (
        lambda d, e, real: _raw(d, e, real).softmax(-1) @ e,
        _of_zeroed_states,
    ),
    "You take padding out after the softmax, so the weights no longer sum to 1: do it before.": (
        lambda d, e, real: ((d @ e.mT).softmax(-1) * real[:, None]) @ e
    ),
    "You look at padding only: real is True where there is a word.": (
        lambda d, e, real: ((d @ e.mT).masked_fill(real[:, None], -1e9).softmax(-1)) @ e
    ),
    "Your softmax runs over the Italian positions: it belongs on the last axis, over the English states.": (
        lambda d, e, real: (d @ e.mT).masked_fill(~real[:, None], -1e9).softmax(-2) @ e
    ),
    "Your softmax runs over the sentences of the batch: it belongs on the last axis.": (
        lambda d, e, real: (d @ e.mT).masked_fill(~real[:, None], -1e9).softmax(0) @ e
    ),
    "The softmax is missing: scores are no weights, they are negative at times and do not sum to 1.": (
        lambda d, e, real: _raw(d, e, real) @ e
    ),
    "The softmax is missing, and padding is not left out.": lambda d, e, real: (d @ e.mT) @ e,
    "You divide the scores by their sum: take the exponential of each first, as a score may be negative.": (
        _shared
    ),
    "You take the mean of the decoder's own states: the values are the encoder's, h_e.": (
        lambda d, e, real: _alpha(d @ e.mT, real) @ d
    ),
    "Your scores compare the decoder's states with each other: compare h_d with h_e.": (
        lambda d, e, real: _alpha(d @ d.mT, real) @ e
    ),
    "Your scores compare the encoder's states with each other: compare h_d with h_e.": (
        lambda d, e, real: _alpha(e @ e.mT, real) @ e
    ),
    "Queries and keys are exchanged: the rows of the scores belong to h_d, the columns to h_e.": (
        lambda d, e, real: _alpha(e @ d.mT, real) @ e
    ),
    "Your scores are h_d @ h_e: transpose the second, or no score is a dot product of two states.": (
        lambda d, e, real: _alpha(d @ e, real) @ e
    ),
    "All states have the same weight: it must depend on their fit with h_d.": _equal,
    "You take the state that fits best: take the mean of all, weighted by their fit.": _hard,
    "You return the weights: multiply them with the states.": lambda d, e, real: _alpha(d @ e.mT, real),
    "You return the scores: a softmax makes weights of them, then take the mean of the states.": (
        lambda d, e, real: d @ e.mT
    ),
    "Your queries are one position late: row i of h_d is already the state that asks for context i.": (
        _queries(lambda d: torch.cat((torch.zeros_like(d[:, :1]), d[:, :-1]), dim=1)),
        _queries(lambda d: torch.cat((d[:, :1], d[:, :-1]), dim=1)),
        _queries(lambda d: d.roll(1, dims=1)),
    ),
}

#: What goes wrong with very large scores alone.
FAR: dict[str, Mistake] = {
    FINITE_FILL: lambda d, e, real: (d @ e.mT).masked_fill(~real[:, None], -1e4).softmax(-1) @ e,
    NOT_STABLE: (_by_exponentials, lambda *case: _by_exponentials(*case).nan_to_num()),
}


def agreement(weights: Tensor, alignment: Links) -> float:
    """Measure the agreement: the fraction of aligned target positions that attend to a word of theirs."""
    rows = sorted({target for _, target in alignment})
    return sum((weights[t].argmax().item(), t) in set(alignment) for t in rows) / len(rows)


def _hits(best: list[int], alignment: Links) -> int:
    return sum((source, target) in set(alignment) for target, source in enumerate(best))


def _columns(weights: Tensor, links: Links) -> float:
    """Ask of each source word, not of each target word."""
    return agreement(weights.mT, [(target, source) for source, target in links])


def _on_all(weights: Tensor, links: Links) -> float:
    rows = {target for _, target in links}
    best = weights.argmax(-1).tolist()
    return sum(all(source == best[t] for source, target in links if target == t) for t in rows) / len(rows)


def _moved(by: int) -> Callable[[Tensor, Links], float]:
    return lambda weights, alignment: agreement(weights.roll(by, dims=0), alignment)


#: Wrong ways to compare weights with an alignment.
AGREEMENT: dict[str, Mistake] = {
    "You mix up the pair: the first number is the position in the source, a column.": (
        lambda w, links: agreement(w, [(target, source) for source, target in links])
    ),
    "You look for the largest weight of a column: each target word has a row.": (
        lambda w, links: agreement(w.mT, links),
        _columns,
    ),
    "You divide by the number of links: a target word with two links counts once.": (
        lambda w, links: _hits(w.argmax(-1).tolist(), links) / len(links)
    ),
    "You divide by the number of all rows: only words that are aligned count.": (
        lambda w, links: _hits(w.argmax(-1).tolist(), links) / len(w)
    ),
    "You give a number of words: return a fraction, so divide.": (
        lambda w, links: float(_hits(w.argmax(-1).tolist(), links))
    ),
    "You add up the weights on the links: count the words whose largest weight is on one.": (
        lambda w, links: sum(w[t, s].item() for s, t in links) / len({t for _, t in links})
    ),
    "You take the mean weight on a link: count the words whose largest weight is on one.": (
        lambda w, links: sum(w[t, s].item() for s, t in links) / len(links)
    ),
    "Your rows are one position late: row t holds the weights with which word t is predicted.": _moved(-1),
    "Your rows are one position early: row t holds the weights with which word t is predicted.": _moved(1),
    "A word with two links is right if its largest weight is on one of them, not only on the last.": (
        lambda w, links: agreement(w, [(s, t) for t, s in {t: s for s, t in links}.items()])
    ),
    "A word with two links is right if its largest weight is on one of them, not only on the first.": (
        lambda w, links: agreement(w, [(s, t) for t, s in {t: s for s, t in reversed(links)}.items()])
    ),
    "A word with two links agrees if its largest weight is on one of them: it cannot be on both.": _on_all,
    "That is the fraction of words that look elsewhere: take 1 minus it.": (
        lambda w, links: 1 - agreement(w, links)
    ),
}
