"""Graders: attention over blocks with an online softmax, and a speculative step by exact enumeration."""

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import torch
from torch import Tensor

from exformer_lessons.exercises.grading import Verdict, and_also, grade, takes_functions
from exformer_lessons.faster import mistakes as known
from exformer_lessons.faster.enumeration import enumerate_outcomes

_VOCAB, _LENGTH = 3, 3


def _blocks(*, size: float) -> list[tuple[Any, ...]]:
    rng = torch.Generator().manual_seed(18)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=rng, dtype=torch.float64)

    cases = []
    for lengths in ((2, 3, 4), (5, 1), (1, 2, 1, 3)):
        q = size * normal(4)
        cases.append((q, [(normal(n, 4), normal(n, 3)) for n in lengths]))
    return cases


@takes_functions
def grade_blocks(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_attention(q, blocks)``.

    Args:
        answer: Takes a query, and blocks of keys and values; returns the result of attention over all keys.
    """
    options = {"right": known.attention, "mistakes": known.BLOCKS, "praise": "Every block, in any size."}
    usual = grade(answer, cases=_blocks(size=1.0), **options)
    large = grade(answer, cases=_blocks(size=2_000.0), **options)
    return and_also(usual, large, "Where scores are in the thousands")


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


def _careful(draw: Callable[[Tensor], int]) -> Callable[[Any], int]:
    """Let weights be a list, too."""
    return lambda weights: draw(torch.as_tensor(weights, dtype=torch.float64).flatten())


def _probabilities(step: Callable[..., Any], seed: int) -> Tensor:
    """Return the probability of each text of three tokens that is made by steps.

    What a step returns depends on the text alone, so its outcomes are enumerated once for each text.
    """
    p, q = _language(seed), _language(seed + 1_000_003)
    texts = [text for n in range(_LENGTH + 1) for text in product(range(_VOCAB), repeat=n)]  # shorter first
    reached = dict.fromkeys(texts, 0.0) | {(): 1.0}

    def go_on(draw: Callable[[Tensor], int]) -> tuple[int, ...]:
        new = step(list(text), p, q, _sharpen, _careful(draw))
        if not isinstance(new, list | tuple) or not 1 <= len(new) <= 2:
            raise ValueError(f"a step returns a list of one or two tokens, got {new!r}")
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
        return Verdict(False, "Your function returns nothing yet.")

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
        return answer([], p, p, _sharpen, lambda weights: 0)
    except Exception as error:  # the grader shows it
        return error


def _has_bonus(answer: Callable[..., Any]) -> bool:
    p = _language(5)
    lengths = enumerate_outcomes(lambda draw: len(answer([], p, p, lambda q: q, _careful(draw))))
    return set(lengths) == {2}
