"""All outcomes of a program that makes random choices, each with its exact probability."""

from collections import defaultdict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import TypeVar

from torch import Tensor

T = TypeVar("T", bound=Hashable)
_MOST_RUNS = 20_000


class _ImpossibleError(Exception):
    """The run has come to a choice of probability 0."""


def enumerate_outcomes(program: Callable[[Callable[[Tensor], int]], T]) -> dict[T, float]:
    """Run a program once for each way its choices can go, and add up the probability of each result.

    Args:
        program: Takes ``draw(weights)``, which chooses an index with probabilities in proportion to the
            weights, and must use it for all that is random.

    Raises:
        ValueError: If weights are no distribution, or there are too many ways.

    >>> import torch
    >>> coin = torch.tensor([0.5, 0.5])
    >>> enumerate_outcomes(lambda draw: draw(coin) + draw(coin))
    {0: 0.25, 1: 0.5, 2: 0.25}
    """
    script: list[tuple[int, int]] = []  # the choices of this run, each with the number of its options
    found: dict[T, float] = defaultdict(float)
    at, probability = 0, 1.0

    def draw(weights: Tensor) -> int:
        nonlocal at, probability
        total = float(weights.sum())
        if not (weights >= 0).all() or not 0 < total < float("inf"):
            raise ValueError(f"draw needs weights of 0 and above, got {weights.tolist()}")
        if at == len(script):
            script.append((0, len(weights)))
        choice = script[at][0]
        at += 1
        probability *= float(weights[choice]) / total
        if probability == 0:
            raise _ImpossibleError
        return choice

    for _ in range(_MOST_RUNS):
        at, probability = 0, 1.0
        with suppress(_ImpossibleError):
            found[program(draw)] += probability
        while script and script[-1][0] + 1 == script[-1][1]:
            script.pop()
        if not script:
            return dict(found)
        script[-1] = (script[-1][0] + 1, script[-1][1])
    raise ValueError("there are too many ways to choose: does your program end?")
