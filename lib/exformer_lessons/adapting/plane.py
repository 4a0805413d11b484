"""What is learned of one language against what is forgotten of another, as curves in a plane."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from exformer.corpora import english
from exformer_lessons.adapting.measure import at_equal_learning, runs
from exformer_lessons.adapting.ways import TOKENIZER
from exformer_lessons.figures import INK

#: Excess of a model to which all tokens are equally probable.
GUESS = math.log(TOKENIZER.vocab_size) - english.entropy_per_token()


def draw_plane(
    ax: Any,
    lines: Mapping[str, tuple[str, float]],
    names: Sequence[tuple[str, float, float, str]],
    *,
    reached: Sequence[str] = (),
    ends: Sequence[str] = (),
) -> None:
    """Draw the mean curves of ways of adapting, with a star at a model of both languages.

    Args:
        ax: Where to draw: axes of matplotlib.
        lines: By the names of the ways, style and width of their lines.
        names: Words, where they stand, and their color.
        reached: Ways of which a point shows, with its number, how much they forgot at an excess of 1.
        ends: Ways whose texts other models have read: x marks where those end that had read nothing before,
            + those that had read a third dialect.
    """
    for way, (style, width) in lines.items():
        ax.plot(*_mean_curve(way), style, lw=width)
    for words, x, y, color in names:
        ax.text(x, y, words, color=color, fontsize=10)
    ax.plot(0.065, 0.065, "*", ms=11, color=INK, clip_on=False)
    ax.text(0.078, 0.25, "both", fontsize=10)
    ax.axvline(1, color=INK, lw=0.8, ls=":")
    ax.axhline(GUESS, color=INK, lw=0.8)
    ax.text(0.06, GUESS + 0.1, "a guess", fontsize=10)
    for way in reached:
        forgotten = lost_at_one(way)
        ax.plot(1, forgotten, "o", ms=5, color=INK)
        ax.text(0.9, forgotten - 0.1, f"{forgotten:.1f}", fontsize=10, va="top", ha="right")
    for way in ends:
        for before, marker in (("", "x"), (", swapped words before", "+")):
            new, old, _ = (sum(side) / 5 for side in zip(*runs("fresh")[way + before]["ends"], strict=True))
            ax.plot(new, old, marker, ms=9, mew=2, color="C1")
    ax.set_xscale("log")
    ax.set_xticks([0.1, 0.3, 1, 3, 9], ["0.1", "0.3", "1", "3", "9"])
    ax.minorticks_off()
    ax.set(xlim=(0.055, 11), ylim=(0, 9))
    ax.set(xlabel="excess in the second language, nats per token", ylabel="excess in English, nats")


def lost_at_one(way: str) -> float:
    """Return the excess in English when that in the second language is 1, the mean of the five models."""
    lost = [at_equal_learning(curve, 1.0) for curve in runs("ways")[way]["curves"]]
    return sum(each or 0.0 for each in lost) / 5


def _mean_curve(way: str) -> list[list[float]]:
    """Return the excess in the second language and in English, each point a mean of the five models."""
    five = runs("ways")[way]["curves"]
    return [
        [sum(point[side] for point in points) / 5 for points in zip(*five, strict=True)] for side in (0, 1)
    ]
