"""Figures that read well on a light and on a dark page, on a desk and on a phone."""

import math
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.lines import Line2D

#: One ink for text and axes, legible on white and on black; the book's pages swap it for theirs.
INK = "#767676"
#: Blue, vermilion, green and purple, told apart by color-blind eyes; 3 to 1 or more on white and on black.
PALETTE = ("#3a86bd", "#d0660a", "#3f8f6c", "#a13ee6")
MAX_CELLS_WITH_NUMBERS = 80
MAX_CELLS_AS_SHAPES = 400
MAX_TICKS = 8


def use_book_style() -> None:
    """Set matplotlib's defaults: no background, one ink, stable SVG, no dates; SVG and PNG in notebooks."""
    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    mpl.rcParams.update(
        dict.fromkeys(inked, INK)
        | {
            "figure.figsize": (5.0, 3.1),
            "figure.dpi": 110,
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
            "font.size": 11,
            "axes.prop_cycle": mpl.cycler(color=PALETTE),
            "lines.linewidth": 2.0,
            "svg.hashsalt": "exformer",
            "svg.fonttype": "path",
        }
    )
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg", "png", metadata={"Date": None}, bbox_inches="tight")
    except (ImportError, AttributeError):  # plain Python, without a notebook
        pass


def heat_map(
    matrix: object,
    *,
    rows: Sequence[object] | None = None,
    columns: Sequence[object] | None = None,
    title: str = "",
    labels: tuple[str, str] = ("", ""),
    limits: tuple[float | int, float | int] | None = None,
    ax: Axes | None = None,
) -> None:
    """Draw a matrix as colored cells; up to 80 cells carry their numbers, more have a color bar.

    Args:
        matrix: Numbers (row, column): a tensor, an array or nested lists.
        rows: A name for each row.
        columns: A name for each column.
        title: The finding that the figure shows.
        labels: What the columns are, and what the rows are.
        limits: Values of the first and the last color. Without them: 0 to the largest, or symmetric about 0
            where there are negative numbers.
        ax: Where to draw; without it a new figure.
    """
    values = _matrix(matrix)
    low, high = limits or _limits(values)
    ax = ax or plt.subplots(figsize=_size(values.shape))[1]
    cmap = "RdBu_r" if low < 0 else "viridis"
    if values.size <= MAX_CELLS_AS_SHAPES:  # drawn cell by cell: sharp at any size
        picture = ax.pcolormesh(values, cmap=cmap, vmin=low, vmax=high, edgecolors="face", linewidth=0.3)
    else:
        extent = (0, values.shape[1], values.shape[0], 0)
        picture = ax.imshow(
            values, cmap=cmap, vmin=low, vmax=high, extent=extent, interpolation="none", aspect="auto"
        )
    ax.set_ylim(values.shape[0], 0)
    ax.spines[:].set_visible(False)
    _name_cells(ax, rows=rows, columns=columns, shape=values.shape)
    ax.set(title=title, xlabel=labels[0], ylabel=labels[1])
    if values.size <= MAX_CELLS_WITH_NUMBERS:
        _number_cells(ax, values=values, picture=picture)
    else:
        bar = ax.figure.colorbar(picture, ax=ax, fraction=0.05, pad=0.03)
        bar.outline.set_visible(False)


def _matrix(matrix: object) -> np.ndarray:
    values = _numbers(matrix)
    if values.ndim != 2:
        raise ValueError(f"matrix has shape {values.shape}: pick one (row, column) matrix out of it")
    return values


def _limits(values: np.ndarray) -> tuple[float, float]:
    largest = float(np.abs(values).max()) or 1.0
    return (-largest, largest) if values.min() < 0 else (0.0, largest)


def _size(shape: tuple[int, int]) -> tuple[float, float]:
    n_rows, n_columns = shape
    width = min(5.0, max(3.4, 1.6 + 0.5 * n_columns))
    return width, min(5.0, max(1.8, 1.2 + (width - 1.4) * n_rows / n_columns))


def _name_cells(
    ax: Axes, *, rows: Sequence[object] | None, columns: Sequence[object] | None, shape: tuple[int, int]
) -> None:
    """Write the names of rows and columns beside the cells; long column names are rotated."""
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


def _number_cells(ax: Axes, *, values: np.ndarray, picture: ScalarMappable) -> None:
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


def lines(
    series: Mapping[str, object],
    *,
    x: object = None,
    title: str = "",
    labels: tuple[str, str] = ("", ""),
    log: str = "",
    ax: Axes | None = None,
) -> None:
    """Draw one line per series, with its name at its end instead of a legend.

    A line has gaps where values are not finite, as those of a loss that diverged; its name is beside the last
    point that can be drawn, and a line without any has none.

    Args:
        series: Name of each line, and its values: a tensor, an array or a list.
        x: The position of each value; without it 0, 1, 2, ….
        title: The finding that the figure shows.
        labels: What the two axes are, with units.
        log: Which axes are logarithmic: ``""``, ``"x"``, ``"y"`` or ``"xy"``.
        ax: Where to draw; without it a new figure.

    Raises:
        ValueError: If there is no series, or more than can be told apart, if one lacks a value for a
            position, or if an axis is unknown.
    """
    styles = [{"color": color, "linestyle": dash} for dash in ("-", "--", ":") for color in PALETTE]
    if not 1 <= len(series) <= len(styles):
        raise ValueError(f"expected 1 to {len(styles)} series (of more, draw two figures), got {len(series)}")
    if set(log) - {"x", "y"}:
        raise ValueError(f"log must be '', 'x', 'y' or 'xy', got {log!r}")
    ax = ax or plt.subplots()[1]
    drawn = []
    for style, (name, values) in zip(styles, series.items(), strict=False):
        values = _numbers(values)
        if values.ndim != 1 or not len(values):
            raise ValueError(f"{name!r} has shape {values.shape}: expected a row of at least one number")
        positions = np.arange(len(values)) if x is None else _numbers(x).ravel()
        if len(positions) != len(values):
            raise ValueError(
                f"{name!r} has {len(values)} values for {len(positions)} positions: give one for each"
            )
        drawn += [(name, line) for line in ax.plot(positions, values, **style)]
    if "x" in log:
        ax.set_xscale("log")
        if len(positions) <= MAX_TICKS:
            ax.set_xticks(positions, [f"{x:,g}" for x in positions], minor=False)
            ax.xaxis.minorticks_off()
    if "y" in log:
        ax.set_yscale("log")
    ax.set(title=title, xlabel=labels[0], ylabel=labels[1])
    label_ends(ax, [(name, *_last_point(line)) for name, line in drawn])


def _last_point(line: Line2D) -> tuple[float, float]:
    """Return the last point of a line that can be drawn: finite, above 0 on a logarithmic axis; or NaN."""
    points = np.asarray(line.get_xydata())
    scales = line.axes.get_xscale(), line.axes.get_yscale()
    above = [0.0 if scale == "log" else -np.inf for scale in scales]
    drawn = points[(np.isfinite(points) & (points > above)).all(axis=1)]
    return tuple(drawn[-1].tolist()) if len(drawn) else (math.nan, math.nan)


def label_ends(ax: Axes, ends: Sequence[tuple[str, float, float]]) -> None:
    """Write each line's name at its end, tied to it by a stroke like the line; no two names overlap.

    Args:
        ax: Axes whose last lines are these, in the order of the ends, with their final scales.
        ends: Name, x and y of the end of each line; an end that is not finite gets no name.
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


def panels(
    found: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    x: Sequence[float],
    labels: tuple[str, str],
    limits: tuple[float, float],
    line: float | None = None,
    columns: int = 4,
) -> None:
    """Draw small panels on the same axes, each with its letter: the first of its series thin, the last thick.

    Args:
        found: The series of each panel, by its letter.
        x: The position of each value; a shorter series ends earlier.
        labels: What the two axes are.
        limits: Of the vertical axis.
        line: The height of a line across each panel; None for none.
        columns: Panels in a row.
    """
    rows = -(-len(found) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(5.8, 1.4 * rows), sharex=True, sharey=True)
    for ax, (letter, series) in zip(np.ravel(grid), found.items(), strict=False):
        for values, color, width in zip(series.values(), (PALETTE[1], PALETTE[0]), (1.2, 2.4), strict=True):
            ax.plot(x[: len(values)], values, color=color, lw=width)
        if line is not None:
            ax.axhline(line, color=INK, lw=1)
        ax.text(0.94, 0.8, letter, transform=ax.transAxes, ha="right", weight="bold", fontsize=12)
        ax.set(ylim=limits)
        ax.locator_params(axis="y", nbins=4, steps=[1, 2, 5, 10])
    for ax in np.ravel(grid)[len(found) :]:
        ax.set_visible(False)
    figure.supxlabel(labels[0], fontsize=10)
    figure.supylabel(labels[1], fontsize=10)
    figure.tight_layout(pad=0.5)


def bars(
    values: Mapping[str, float | int],
    *,
    title: str = "",
    label: str = "",
    digits: int = 2,
    ax: Axes | None = None,
) -> None:
    """Draw one horizontal bar per value, its name at the left and its number at its end.

    Args:
        values: Name of each bar, and its length.
        title: The finding that the figure shows.
        label: What the numbers are, with units.
        digits: Digits after the point.
        ax: Where to draw; without it a new figure.
    """
    ax = ax or plt.subplots(figsize=(5.0, 0.7 + 0.42 * len(values)))[1]
    drawn = ax.barh(list(values), list(values.values()), color=PALETTE[0], height=0.65)
    ax.bar_label(drawn, labels=[f"{value:,.{digits}f}" for value in values.values()], padding=4)
    ax.invert_yaxis()
    ax.margins(x=0.14)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set(title=title, xlabel=label)


def _numbers(values: object) -> np.ndarray:
    """Turn a tensor, an array or a list into an array of floats."""
    found = values.detach().double().cpu() if hasattr(values, "detach") else values
    return np.asarray(found, dtype=float)
