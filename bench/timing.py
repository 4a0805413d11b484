"""Time several functions in turns, so that whatever slows the machine down for a while hits all alike."""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from statistics import median, quantiles

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def turns(names: Sequence[str], turn: int) -> list[str]:
    """Return the order of one round: A B, B A, B A, A B, ...

    Each odd round is the one before it backwards; each pair of rounds begins with the next name.

    Args:
        names: Who takes part.
        turn: The round, counted from 0.

    Returns:
        The names in their order.
    """
    first = turn // 2 % len(names)
    order = [*names[first:], *names[:first]]
    return order[::-1] if turn % 2 else order


def time_in_turns(
    steps: dict[str, Callable[[int], object]],
    *,
    warmup: int,
    min_rounds: int,
    budget_s: float,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Call each function once a round, until the time is used up.

    Args:
        steps: The functions by name; each is given the number of the round.
        warmup: How many rounds go before those that are counted.
        min_rounds: How many rounds are counted at least, 2 or more.
        budget_s: Seconds after which no further round begins.
        clock: Gives seconds.

    Returns:
        The seconds of each function in each round that counts.

    Raises:
        ValueError: If there would be no rounds to compare.
    """
    if min_rounds < 2 or warmup < 0:
        raise ValueError(
            f"min_rounds must be at least 2 and warmup at least 0, got {min_rounds} and {warmup}"
        )
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    begin = clock()
    for turn in count():
        n_counted = turn - warmup
        if n_counted >= min_rounds and clock() - begin >= budget_s:
            return seconds
        gc.collect()  # here, not in somebody's step
        for name in turns(list(steps), turn):
            start = clock()
            steps[name](turn)
            elapsed = clock() - start
            if n_counted >= 0:
                seconds[name].append(elapsed)


@dataclass(frozen=True)
class Summary:
    """The times of one contender.

    Args:
        median_s: Median seconds of a step.
        ratio: Median, over the rounds, of our seconds divided by its seconds; below 1 we are faster.
        ratio_low: The quarter of the rounds that were best for us had a ratio below this.
        ratio_high: The quarter of the rounds that were worst for us had a ratio above this.
    """

    median_s: float
    ratio: float
    ratio_low: float
    ratio_high: float


def summarize(seconds: dict[str, list[float]], *, ours: str) -> dict[str, Summary]:
    """Compare ours with each, round by round.

    Args:
        seconds: What :func:`time_in_turns` measured.
        ours: Whose seconds stand above the line.

    Returns:
        One summary for each, ours too: its ratio is 1.
    """
    summaries = {}
    for name, column in seconds.items():
        ratios = [a / b for a, b in zip(seconds[ours], column, strict=True)]
        low, _, high = quantiles(ratios, n=4, method="inclusive")
        summaries[name] = Summary(median(column), median(ratios), low, high)
    return summaries


def best_peer(summaries: dict[str, Summary], *, ours: str) -> str:
    """Return the fastest peer: the one with the highest ratio."""
    return max((name for name in summaries if name != ours), key=lambda name: summaries[name].ratio)
