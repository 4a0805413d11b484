"""Graders: attention over blocks with an online softmax, and a speculative step by exact enumeration."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from exformer_lessons.exercises.grading import Verdict, and_also, grade, takes_functions
from exformer_lessons.exercises.results import UnfitError
from exformer_lessons.faster import mistakes as known
from exformer_lessons.faster.enumeration import enumerate_outcomes

_VOCAB, _LENGTH = 3, 3
_MOST_DRAWS = 12  # of a step: a proposal, a coin, and what follows, with some to spare


def _blocks(*, size: float, low: float = 0.0) -> list[tuple[Any, ...]]:
    """Make cases; with ``low``, all scores are about that number."""
    rng = torch.Generator().manual_seed(18)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=rng, dtype=torch.float64)

    cases = []
    for lengths in ((2, 3, 4), (5, 1), (1, 2, 1, 3)):
        q = size * normal(4)
        blocks = [(normal(n, 4), normal(n, 3)) for n in lengths]
        if low:
            q[0] = 1.0
            for k, _ in blocks:
                k[:, 0] = low
        cases.append((q, blocks))
    return cases


class _Joined(TorchFunctionMode):
    """Notices a tensor with a row or a column for each of n keys."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n, self.seen = n, False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.seen |= isinstance(result, Tensor) and result.dim() == 2 and self.n in result.shape
        return result


#: Said of an answer that is right, but needs all keys at once.
JOINED = "But you join the blocks: what is kept from block to block is a maximum, a sum and a total."


def _joins(answer: Callable[..., object]) -> bool:
    q, blocks = _blocks(size=1.0)[0]
    mode = _Joined(sum(len(k) for k, _ in blocks))
    with suppress(RuntimeError), mode:  # what is right in float32 alone may fail here
        answer(q, blocks)
    return mode.seen


@takes_functions
def grade_blocks(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_attention(q, blocks)``.

    Args:
        answer: Takes a query, and blocks of keys and values; returns the result of attention over all keys.
    """
    options = {"right": known.attention, "mistakes": known.BLOCKS, "praise": "Every block, in any size."}
    usual = grade(answer, cases=_blocks(size=1.0), **options)
    large = grade(answer, cases=_blocks(size=2_000.0), **options)
    low = grade(answer, cases=_blocks(size=1.0, low=-3_000.0), **options)
    verdict = and_also(usual, large, "Where scores are in the thousands")
    verdict = and_also(verdict, low, "Where all scores are near -3,000")
    return Verdict(True, f"{verdict.says} {JOINED}") if verdict and _joins(answer) else verdict


def _language(seed: int) -> Callable[[list[int]], Tensor]:
    """Return a distribution of the next token after each text."""

    @cache
    def of_text(*ids: int) -> Tensor:
        number = seed + sum((token + 1) * 5**place for place, token in enumerate(ids))
        p = torch.rand(_VOCAB, generator=torch.Generator().manual_seed(number), dtype=torch.float64) + 0.05
        return p / p.sum()

    # a copy, since an answer may change it in place
    return lambda ids: of_text(*map(int, ids)).clone()


def _sharpen(q: Tensor) -> Tensor:
    return q**2 / (q**2).sum()


def _careful(draw: Callable[[Tensor], int], drawn: list[Tensor] | None = None) -> Callable[[Any], int]:
    """Let weights be a list, too, and note them; refuse a step that draws without end."""
    noted = [] if drawn is None else drawn

    def careful(weights: Any) -> int:
        noted.append(torch.as_tensor(weights, dtype=torch.float64).flatten())
        if len(noted) > _MOST_DRAWS:
            raise UnfitError(
                "A step draws three times at most: a rejected proposal is replaced from the residual, not "
                "proposed again."
            )
        return draw(noted[-1])

    return careful


def _tokens(new: Any) -> list[Any] | tuple[Any, ...]:
    """Check what a step returns."""
    found = new.tolist() if isinstance(new, Tensor | np.ndarray) else new
    if not isinstance(found, list | tuple) or not 1 <= len(found) <= 2:
        raise UnfitError(f"A step returns a list of one or two new tokens, got {new!r}.")
    return found


def _probabilities(step: Callable[..., Any], seed: int) -> Tensor:
    """Return the probability of each text of three tokens that is made by steps.

    What a step returns depends on the text alone, so its outcomes are enumerated once for each text.
    """
    p, q = _language(seed), _language(seed + 1_000_003)
    texts = [text for n in range(_LENGTH + 1) for text in product(range(_VOCAB), repeat=n)]  # shorter first
    reached = dict.fromkeys(texts, 0.0) | {(): 1.0}

    def go_on(draw: Callable[[Tensor], int]) -> tuple[int, ...]:
        new = _tokens(step(list(text), p, q, _sharpen, _careful(draw)))
        return tuple([*text, *map(int, new)][:_LENGTH])

    for text in texts:
        if len(text) < _LENGTH and reached[text]:
            for longer, probability in enumerate_outcomes(go_on).items():
                reached[longer] = reached.get(longer, 0.0) + reached[text] * probability
    return torch.tensor([reached[text] for text in texts if len(text) == _LENGTH], dtype=torch.float64)


@takes_functions
def grade_step(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_step(ids, p, q, sharpen, draw)``.

    Args:
        answer: Takes a text, the distributions of target and draft, what sharpens the draft's, and a function
            that samples an index; returns one or two new tokens.
    """
    if _first(answer) is None:
        return Verdict(False, "Your function returns nothing.")

    texts = grade(
        lambda seed: _probabilities(answer, seed),
        right=_of_known(known.step),
        mistakes={
            hint: tuple(map(_of_known, each if isinstance(each, tuple) else (each,)))
            for hint, each in known.STEP.items()
        },
        cases=[(1,), (2,), (3,)],
        praise="All 27 texts have the target's probabilities.",
        tolerance=1e-6,  # a coin in float32 is right as well
    )
    if texts and (says := _not_speculative(answer)):
        return Verdict(False, says)
    return texts if not texts or _has_bonus(answer) else Verdict(True, f"{texts.says} {NO_BONUS}")


@cache
def _of_known(step: Callable[..., Any]) -> Callable[[int], Tensor]:
    """Return the probabilities of a step of our own by the seed; each is computed once."""
    return cache(lambda seed: _probabilities(step, seed))


#: Said of a step that is exact, but leaves out the free token.
NO_BONUS = "But after an accepted proposal one more token is free: p([*ids, x]) is known from the same pass."


def _first(answer: Callable[..., Any]) -> object:
    """Return a step's result, or what it raised."""
    p = _language(5)
    try:
        return answer([], p, p, _sharpen, _careful(lambda weights: 0))
    except Exception as error:  # the grader shows it
        return error


def _not_speculative(answer: Callable[..., Any]) -> str:
    """Return what is wrong with a step that has the right probabilities; nothing if it proposes."""
    p, q = _language(1), _language(1_000_004)

    def seen(draw: Callable[[Tensor], int]) -> str:
        weights: list[Tensor] = []
        choices: list[int] = []

        def noted(each: Tensor) -> int:
            choices.append(draw(each))
            return choices[-1]

        new = _tokens(answer([], p, q, _sharpen, _careful(noted, weights)))
        if not _alike(weights[0], _sharpen(q([]))):
            return known.NOT_SHARPENED if _alike(weights[0], q([])) else known.NO_DRAFT
        return known.NOT_FREE if len(new) == 2 and new[0] != choices[0] else ""

    return next(filter(None, enumerate_outcomes(seen)), "")


def _alike(weights: Tensor, p: Tensor) -> bool:
    return weights.shape == p.shape and torch.allclose(weights / weights.sum(), p, rtol=0, atol=1e-5)


def _has_bonus(answer: Callable[..., Any]) -> bool:
    p = _language(5)
    lengths = enumerate_outcomes(lambda draw: len(answer([], p, p, lambda q: q, _careful(draw))))
    return set(lengths) == {2}
