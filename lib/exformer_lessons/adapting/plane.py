"""What is learned of one language and what is forgotten of another: curves in a plane, and where they end."""

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
    lines: Mapping[str, str],
    names: Sequence[tuple[str, float, float, str]] = (),
    *,
    level: float = 1.0,
    part: str = "ways",
) -> None:
    """Draw the mean curves of two ways of adapting, from their common start.

    Args:
        ax: Where to draw: axes of matplotlib.
        lines: By the names of the ways, their colors.
        names: Words, where they stand, and their color. With names, there is a star at the mixture, too.
        level: An excess in the second language, which each of the five models reaches: points and numbers
            tell how much is forgotten there, for the first way below its point, for the other above;
            a number that both share is written once.
        part: Of the record: ``ways`` for reversed English, ``swapped`` for swapped words.
    """
    for way, color in lines.items():
        across, up = _mean_curve(way, part)
        ax.plot(across, up, color=color, lw=2.2)
        ends = {"xy": (across[-1], up[-1]), "xytext": (across[-2], up[-2])}
        ax.annotate("", **ends, arrowprops={"arrowstyle": "-|>", "color": color, "mutation_scale": 15})
        ax.plot(across[0], up[0], "o", ms=8, color=INK, clip_on=False)
    for words, x, y, color in names:
        ax.text(x, y, words, color=color, ha="right")
    ax.axhline(GUESS, color=INK, lw=0.8)
    if names:
        ax.plot(0.065, 0.065, "*", ms=11, color=INK, clip_on=False)
        ax.text(0.08, 0.2, "mixture $q$", va="bottom", ha="right")
        ax.text(0.06, GUESS + 0.1, "uniform guess", ha="right", size=9)
    ax.axvline(level, color=INK, lw=0.8, ls=":")
    written = set()
    for way, right in zip(lines, (1, 0), strict=True):
        forgotten = sum(lost_at(way, level, part)) / 5
        ax.plot(level, forgotten, "o", ms=6, color=INK)
        number = f"{forgotten:.1f}"
        if number in written:  # a second one would be on top of the first
            continue
        written.add(number)
        place = {"ha": "left", "va": "top"} if right else {"ha": "right", "va": "bottom"}
        shift = 1 if right else -1
        ax.text(level / 1.08**shift, forgotten - 0.1 * shift, number, **place)
    ax.set_xscale("log")
    ax.set_xticks([9, 3, 1, 0.3, 0.1], ["9", "3", "1", "0.3", "0.1"])
    ax.minorticks_off()
    ax.set(xlim=(11, 0.055), ylim=(0, 9))
    ax.set(xlabel="in the second language", ylabel="excess in English")


def draw_ends(
    axes: Sequence[Any],
    rows: Mapping[str, tuple[str, Sequence[Sequence[float]]]],
) -> None:
    """Draw where models end: a row for each training, with the excess in English and in the second language.

    Args:
        axes: Where to draw: two axes of matplotlib side by side.
        rows: By the names of the trainings, a color and the two excesses of each adapted model.
    """
    titles = ("excess in English", "in the second language")
    for ax, title, side, ends in zip(axes, titles, (1, 0), ((0.055, 10), (0.15, 1)), strict=True):
        for y, (color, adapted) in enumerate(rows.values()):
            points = [model[side] for model in adapted]
            ax.plot(points, [y] * len(points), "o", ms=6.5, alpha=0.5, color=color, mew=0)
        ax.set_xscale("log")
        ax.set(xlim=ends, ylim=(len(rows) - 0.3, -0.5), xlabel=title)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.minorticks_off()
        for y in range(len(rows)):
            ax.axhline(y, color=INK, lw=0.4, alpha=0.3, zorder=0)
    axes[0].set_xticks([0.1, 0.3, 1, 3, 9], ["0.1", "0.3", "1", "3", "9"])
    axes[1].set_xticks([0.2, 0.4, 0.8], ["0.2", "0.4", "0.8"])
    axes[0].set_yticks(range(len(rows)), rows)
    axes[1].set_yticks([])


def lost_at(way: str, excess: float = 1.0, part: str = "ways") -> list[float]:
    """Return the excess in English of the five models when that in the second language is a value.

    Args:
        way: Name of the way.
        excess: In the second language.
        part: Of the record.
    """
    lost = [at_equal_learning(curve, excess) for curve in runs(part)[way]["curves"]]
    return [each for each in lost if each is not None]


def end_points(way: str) -> list[list[float]]:
    """Return the excess in the second language and in English of the five models after their training."""
    return [curve[-1] for curve in runs("ways")[way]["curves"]]


def _mean_curve(way: str, part: str) -> list[list[float]]:
    """Return the excess in the second language and in English, each point a mean of the five models."""
    five = runs(part)[way]["curves"]
    return [
        [sum(point[side] for point in points) / 5 for points in zip(*five, strict=True)] for side in (0, 1)
    ]
