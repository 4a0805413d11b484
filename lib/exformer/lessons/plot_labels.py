"""Words and numbers in figures: names of rows and columns, numbers in cells, names at the ends of lines."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.lines import Line2D


def name_cells(
    ax: Axes, *, rows: Sequence[object] | None, columns: Sequence[object] | None, shape: tuple[int, int]
) -> None:
    """Write the names of rows and columns beside the cells; long column names stand aslant."""
    for names, length, axis, what in (
        (rows, shape[0], ax.yaxis, "rows"),
        (columns, shape[1], ax.xaxis, "columns"),
    ):
        axis.set_tick_params(length=0)
        if names is None:
            continue
        if len(names) != length:
            raise ValueError(f"{len(names)} names for {length} {what}: give one for each")
        axis.set_ticks(np.arange(length) + 0.5, [str(name) for name in names])
    if columns is not None and max(len(str(name)) for name in columns) > 4:
        ax.xaxis.set_tick_params(rotation=40)
        for text in ax.get_xticklabels():
            text.set(horizontalalignment="right", rotation_mode="anchor")


def number_cells(ax: Axes, *, values: np.ndarray, picture: ScalarMappable) -> None:
    """Write each number into its cell, black on bright cells and white on dark ones."""
    digits = 2 if np.abs(values).max() < 10 else 1
    for (row, column), value in np.ndenumerate(values):
        red, green, blue, _ = picture.to_rgba(value)
        bright = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 > 0.18
        ax.text(
            column + 0.5,
            row + 0.5,
            f"{value:.{digits}f}",
            ha="center",
            va="center",
            fontsize=9.5,
            color="black" if bright else "white",
        )


def label_ends(ax: Axes, ends: Sequence[tuple[str, float, float]]) -> None:
    """Write each line's name at its end, tied to it by a stroke like the line; no two names overlap.

    Args:
        ax: Axes whose last lines are these, in the order of the ends, with their final scales.
        ends: Name, x and y of the end of each line; an end that is no number gets no name.
    """
    ax.autoscale_view()  # limits are set when needed; a transform alone does not ask for them
    points = 72.0 / ax.figure.dpi
    own = ax.lines[-len(ends) :]
    known = [(*end, line) for end, line in zip(ends, own, strict=True) if np.isfinite(end[1:]).all()]
    heights = [ax.transData.transform((x, y))[1] * points for _, x, y, _ in known]
    shifted = _spread(heights, gap=14.0)
    for (name, x, y, line), was, now in zip(known, heights, shifted, strict=True):
        ax.annotate(
            name,
            xy=(x, y),
            xytext=(16, now - was),
            textcoords="offset points",
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": line.get_color(),
                "linestyle": line.get_linestyle(),
                "lw": 1,
                "shrinkA": 2,
                "shrinkB": 0,
                "relpos": (0, 0.5),  # else it aims at the middle of its name and crosses its neighbour's
            },
        )


def last_point(line: Line2D) -> tuple[float, float]:
    """Return the last point of a line that can be drawn: finite, above 0 on a logarithmic axis; or NaN."""
    points = np.asarray(line.get_xydata())
    scales = line.axes.get_xscale(), line.axes.get_yscale()
    above = [0.0 if scale == "log" else -np.inf for scale in scales]
    drawn = points[(np.isfinite(points) & (points > above)).all(axis=1)]
    return tuple(drawn[-1].tolist()) if len(drawn) else (math.nan, math.nan)


def _spread(heights: Sequence[float], *, gap: float) -> list[float]:
    """Move heights apart to at least the gap, in their order, about their middle."""
    order = np.argsort(heights, kind="stable")
    placed = np.asarray(heights, dtype=float)[order]
    for _ in range(1000):
        overlap = gap - np.diff(placed)
        if (overlap <= 1e-6).all():
            break
        push = np.maximum(overlap, 0) / 2
        placed[:-1] -= push
        placed[1:] += push
    moved = np.empty_like(placed)
    moved[order] = placed
    return moved.tolist()
