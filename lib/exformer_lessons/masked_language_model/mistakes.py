"""Known mistakes, each with its hint: masking, filling a gap."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Score = Callable[[list[int]], float]


def show(ids: Tensor, chosen: Tensor, chance: Tensor, drawn: Tensor, mask_id: int) -> Tensor:
    """The right input of the model."""
    return _show(ids, chosen, chance, drawn, mask_id)


def _show(
    ids: Tensor,
    chosen: Tensor,
    chance: Tensor,
    drawn: Tensor,
    mask_id: int,
    low: float = 0.8,
    high: float = 0.9,
) -> Tensor:
    masked = chosen & (chance < low)
    other = chosen & ~masked & (chance < high)
    return torch.where(other, drawn, ids).masked_fill(masked, mask_id)


def _with(low: float, high: float) -> Callable[..., Tensor]:
    return lambda *case: _show(*case, low=low, high=high)


SHOW: dict[str, Callable[..., Tensor]] = {
    "At 0.8 the drawn word is shown, at 0.9 the word itself: write < rather than <=.": _with(
        math.nextafter(0.8, 1), math.nextafter(0.9, 1)
    ),
    "Every chosen word is masked: 10 % should be another word, and 10 % stay.": _with(1.0, 1.0),
    "Where chance is 0.9 or more the word stays as it is; you exchange it too.": _with(0.8, 1.0),
    "From 0.8 to 0.9 another word is shown; you leave the word as it is.": _with(0.8, 0.8),
    "Mask and other word have each other's share: 80 % are masked, 10 % exchanged.": lambda i, c, x, d, m: (
        torch.where(c & (x < 0.8), d, i).masked_fill(c & (x >= 0.8) & (x < 0.9), m)
    ),
    "Words are masked that were not chosen: only chosen positions change.": lambda i, c, x, d, m: _show(
        i, torch.ones_like(c), x, d, m
    ),
    "Words are exchanged that were not chosen: both the mask and the other word need chosen.": (
        lambda i, c, x, d, m: torch.where((x >= 0.8) & (x < 0.9), d, i).masked_fill(c & (x < 0.8), m)
    ),
    "Whatever is not masked is exchanged, chosen or not: the other word needs chosen too.": (
        lambda i, c, x, d, m: torch.where(x < 0.9, d, i).masked_fill(c & (x < 0.8), m)
    ),
    "Words are masked that were not chosen: both the mask and the other word need chosen.": (
        lambda i, c, x, d, m: torch.where(c & (x >= 0.8) & (x < 0.9), d, i).masked_fill(x < 0.8, m)
    ),
    "You mask all words but the chosen ones.": lambda i, c, x, d, m: _show(i, ~c, x, d, m),
    "Chance is read the wrong way round: mask where it is below 0.8.": lambda i, c, x, d, m: _show(
        i, c, 1 - x, d, m
    ),
    "No word is exchanged for another, and none is masked: nothing is hidden.": lambda i, c, x, d, m: i,
    "The drawn word is laid over the mask: it belongs where chance is from 0.8 to 0.9 only.": (
        lambda i, c, x, d, m: torch.where(c & (x < 0.9), d, i)
    ),
    "From 0.8 to 0.9 the drawn word is shown, above it the word itself; you have the two swapped.": (
        lambda i, c, x, d, m: torch.where(c & (x >= 0.9), d, i).masked_fill(c & (x < 0.8), m)
    ),
}


def fill(log_p: Score, words: Sequence[int], place: int, candidates: Sequence[int]) -> Tensor:
    """Fill a gap by scoring whole sentences."""
    return _scores(log_p, words, place, candidates).softmax(dim=0)


def _scores(log_p: Score, words: Sequence[int], place: int, candidates: Sequence[int]) -> Tensor:
    tries = [[*words[:place], each, *words[place + 1 :]] for each in candidates]
    return torch.tensor([float(log_p(each)) for each in tries], dtype=torch.float64)


def _left(log_p: Score, words: Sequence[int], place: int, candidates: Sequence[int]) -> Tensor:
    return fill(log_p, words[: place + 1], place, candidates)


def _right(log_p: Score, words: Sequence[int], place: int, candidates: Sequence[int]) -> Tensor:
    return fill(log_p, words[place:], 0, candidates)


def _inserted(log_p: Score, words: Sequence[int], place: int, candidates: Sequence[int]) -> Tensor:
    return fill(log_p, [*words[:place], 0, *words[place:]], place, candidates)


def _by_value(log_p: Score, words: Sequence[int], place: int, candidates: Sequence[int]) -> Tensor:
    tries = [[each if word == words[place] else word for word in words] for each in candidates]
    return torch.tensor([float(log_p(each)) for each in tries], dtype=torch.float64).softmax(dim=0)


FILL: dict[str, Callable[..., Tensor]] = {
    "They do not sum to 1: divide by the sum over the candidates.": lambda *case: _scores(*case).exp(),
    "These are log-probabilities of whole sentences: take the exponential, divide by the sum.": _scores,
    "These are logarithms: take the exponential.": lambda *case: _scores(*case).log_softmax(dim=0),
    "Only the left side and the candidate were read: read the right side too.": _left,
    "Only the candidate and the right side were read: read the left side too.": _right,
    "Each word like the one in the gap was replaced: replace the one at that position.": _by_value,
    "The candidate was put beside the word: it should take its place.": _inserted,
    "The candidate was put one position too early: positions count from 0.": lambda p, w, i, c: fill(
        p, w, i - 1, c
    ),
    "The candidate was put one position too late: positions count from 0.": lambda p, w, i, c: fill(
        p, w, i + 1, c
    ),
    "You divide logarithms by their sum: take the exponential first.": lambda *case: (
        _scores(*case) / _scores(*case).sum()
    ),
    "The softmax was taken of probabilities: it wants their logarithms.": lambda *case: (
        _scores(*case).exp().softmax(dim=0)
    ),
    "The sign is wrong: the more probable the sentence, the more probable its candidate.": lambda *case: (
        -_scores(*case)
    ).softmax(dim=0),
    "All candidates come out equal: each has to be read in its sentence.": lambda p, w, i, c: torch.full(
        (len(c),), 1 / len(c), dtype=torch.float64
    ),
}
