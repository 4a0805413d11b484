"""Figures: legible on both pages, told apart by all eyes, the same bytes each time."""

import io
import math
from itertools import pairwise

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from exformer_lessons.figures import INK, PALETTE, _spread, bars, heat_map, lines, panels, use_book_style

WORDS = ["your", "cat", "is", "a", "lovely", "cat"]
LIGHT, DARK = "#fffefb", "#14171a"  # the backgrounds in book/_static/book.css
#: What an eye without one kind of cone sees, in linear light (Machado, Oliveira and Fernandes 2009, table 1).
BLINDNESS = {
    "none": np.eye(3),
    "red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}


@pytest.fixture(autouse=True)
def _style():
    with mpl.rc_context():
        mpl.use("Agg")
        use_book_style()
        yield
        plt.close("all")


def linear(color):
    rgb = np.array(to_rgb(color))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    a, b = sorted(0.05 + linear(color) @ [0.2126, 0.7152, 0.0722] for color in (one, other))
    return b / a


def lab(rgb):
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ rgb
    x, y, z = np.cbrt(np.clip(xyz, 1e-4, None) / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("page", [LIGHT, DARK])
def test_colors_stand_out_on_both_pages(page) -> None:
    assert contrast(INK, page) > 3.5
    assert all(contrast(color, page) >= 3 for color in PALETTE), [contrast(c, page) for c in PALETTE]


@pytest.mark.parametrize("eye", BLINDNESS)
def test_colors_are_told_apart_by_all_eyes(eye) -> None:
    seen = [lab(np.clip(np.array(BLINDNESS[eye]) @ linear(color), 0, 1)) for color in PALETTE]
    for i, one in enumerate(seen):
        for other in seen[i + 1 :]:
            assert np.linalg.norm(one - other) > 25


def drawn():
    stream = io.BytesIO()
    plt.savefig(stream, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close("all")
    return stream.getvalue()


def test_a_figure_is_the_same_bytes_each_time() -> None:
    pictures = []
    for _ in range(2):
        lines({"one": [1, 2, 3], "two": [1, 4, 9]}, title="Growth", labels=("step", "value"))
        pictures.append(drawn())
    assert pictures[0] == pictures[1]
    assert INK.encode() in pictures[0]


def test_ink_is_the_books() -> None:
    from book_page import INK as PAGES_INK

    assert PAGES_INK == INK


def test_labels_of_a_small_heat_map() -> None:
    heat_map(
        torch.eye(6, dtype=torch.float32), rows=WORDS, columns=WORDS, title="Itself", labels=("key", "query")
    )
    ax = plt.gca()
    assert [text.get_text() for text in ax.get_yticklabels()] == WORDS
    assert ax.get_xticks().tolist() == ax.get_yticks().tolist() == [n + 0.5 for n in range(6)]
    assert ax.texts[0].get_text() == "1.00"
    assert ax.texts[1].get_text() == "0.00"
    assert ax.yaxis_inverted()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("key", "query")
    assert plt.gcf().get_figwidth() <= 6.4


def test_numbers_stand_out_from_their_cells() -> None:
    heat_map(np.linspace(-1, 1, 35).reshape(5, 7))
    mesh = plt.gca().collections[0]
    for text, value in zip(plt.gca().texts, mesh.get_array().ravel(), strict=True):
        assert contrast(text.get_color(), mesh.to_rgba(value)[:3]) >= 4.5


def test_a_large_heat_map_has_a_bar_and_no_numbers() -> None:
    heat_map(torch.rand(23, 31), limits=(0.0, 1.0))
    ax, bar = plt.gcf().axes
    assert not ax.texts
    assert ax.images[0].get_clim() == (0.0, 1.0)
    assert bar.get_ylim() == (0.0, 1.0)
    assert ax.get_ylim() == (23, 0)


@pytest.mark.parametrize("sign", [1, -1])
def test_negative_numbers_get_two_colors_about_zero(sign: int) -> None:
    heat_map([[-1.0 * sign, 3.0 * sign], [0.5, 0.0]])
    assert plt.gca().collections[0].get_clim() == (-3.0, 3.0)


def test_each_line_has_its_name_at_its_end() -> None:
    lines({"low": [1, 1], "lower": [1, 1.001], "high": [1, 9]}, x=[4, 16], log="x", labels=("d_k", "spread"))
    ax = plt.gca()
    names = {
        text.get_text(): text.xyann[1] + ax.transData.transform(text.xy)[1] * 72 / 110 for text in ax.texts
    }
    assert names["high"] > names["lower"] + 13 > names["low"] + 26
    assert [text.get_text() for text in ax.get_xticklabels()] == ["4", "16"]
    assert ax.get_legend() is None


def test_stroke_of_a_label_is_like_its_line() -> None:
    lines({f"a long name {n}": [0, n / 9] for n in range(4)} | {"dashed": [0, 9]})
    plt.gcf().canvas.draw()
    ax = plt.gca()
    for line, text in zip(ax.lines, ax.texts, strict=True):
        stroke = text.arrow_patch
        assert (to_rgb(stroke.get_edgecolor()), stroke.get_linestyle()) == (
            to_rgb(line.get_color()),
            line.get_linestyle(),
        )
        x, y = stroke.get_path().vertices[0]
        name = Text.get_window_extent(text)  # of an annotation it holds the stroke too
        assert x <= name.x0
        assert name.y0 < y < name.y1


def test_stroke_of_a_label_after_other_lines() -> None:
    _, ax = plt.subplots()
    ax.axhline(1.0, color="black", linestyle=":")
    lines({"one": [1, 2], "two": [1, 3]}, ax=ax)
    strokes = [
        (to_rgb(a.get_edgecolor()), a.get_linestyle()) for a in (text.arrow_patch for text in ax.texts)
    ]
    assert strokes == [(to_rgb(color), "-") for color in PALETTE[:2]]


def test_names_of_close_ends_do_not_overlap_whatever_the_scale() -> None:
    lines({str(n): [0, n] for n in (1, 2, 99)})
    plt.gcf().canvas.draw()
    low, next_, _ = [Text.get_window_extent(text) for text in plt.gca().texts]
    assert next_.y0 >= low.y1


def test_twelve_names_of_one_end_do_not_overlap() -> None:
    lines({str(n): [n, 1] for n in range(12)})
    plt.gcf().canvas.draw()
    names = sorted((Text.get_window_extent(text) for text in plt.gca().texts), key=lambda name: name.y0)
    assert all(upper.y0 >= lower.y1 for lower, upper in pairwise(names))


@pytest.mark.parametrize("log", ["", "y"])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_label_of_a_diverging_line(log: str, wrong: float) -> None:
    lines({"good": [1.0, 2.0, 3.0], "diverged": [1.0, 2.5, wrong], "none": [wrong] * 3}, log=log)
    good, diverged = plt.gca().texts
    assert (good.get_text(), *good.xy, diverged.get_text(), *diverged.xy) == (
        "good",
        2,
        3,
        "diverged",
        1,
        2.5,
    )
    assert np.isfinite([good.xyann, diverged.xyann]).all()
    assert b"</svg>" in drawn()
    lines({"good": [1.0, 2.0, 3.0]}, x=[1, 2, wrong], log=log)
    assert tuple(plt.gca().texts[0].xy) == (2, 2)


def test_label_on_a_logarithmic_axis() -> None:
    lines({"down": [4.0, 2.0, 0.0]}, x=[1, 2, 3], log="y")
    assert [tuple(text.xy) for text in plt.gca().texts] == [(2.0, 2.0)]
    lines({"down": [4.0, 2.0, 0.0]}, x=[3, 1, 0], log="x")
    assert [tuple(text.xy) for text in plt.gca().texts] == [(1.0, 2.0)]
    lines({"down": [4.0, 2.0, 0.0]}, x=[1, 2, 3])
    assert [tuple(text.xy) for text in plt.gca().texts] == [(3.0, 0.0)]


def test_every_line_is_drawn_of_tensors_too() -> None:
    many = {str(n): torch.tensor([n, 2.0], dtype=torch.bfloat16, requires_grad=True) for n in range(12)}
    lines(many, x=torch.tensor([1, 2]))
    assert [line.get_ydata().tolist() for line in plt.gca().lines] == [[n, 2.0] for n in range(12)]


def test_bars_bear_their_numbers() -> None:
    bars({"greedy": 0.934, "chance": 0.01}, title="Right", label="share", digits=1)
    assert [text.get_text() for text in plt.gca().texts] == ["0.9", "0.0"]
    assert plt.gca().yaxis_inverted()


def test_spread_keeps_order_and_gap() -> None:
    placed = _spread([5.0, 5.0, 40.0, 4.0], gap=10.0)
    assert sorted(range(4), key=lambda i: placed[i]) == [3, 0, 1, 2]
    assert np.diff(sorted(placed)).min() >= 10 - 1e-6
    assert placed[2] == 40.0
    assert np.diff(_spread([5.0] * 12, gap=10.0)).min() >= 10 - 1e-6
    assert _spread([], gap=10.0) == []


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: heat_map(torch.zeros(2, 3, 5)), r"shape \(2, 3, 5\): pick one"),
        (lambda: heat_map(torch.zeros(2, 3), rows=WORDS), "6 names for 2 rows"),
        (lambda: heat_map(torch.zeros(2, 3), columns=WORDS), "6 names for 3 columns"),
        (lambda: lines({"a": [1, 2, 3]}, x=[1, 2]), "'a' has 3 values for 2 positions"),
        (
            lambda: lines({str(n): [n] for n in range(99)}),
            r"expected 1 to 12 series \(of more, draw two figures\), got 99",
        ),
        (lambda: lines({}, log="x"), r"expected 1 to 12 series \(of more, draw two figures\), got 0"),
        (lambda: lines({"a": []}), r"'a' has shape \(0,\): expected a row of at least one number"),
        (lambda: lines({"a": torch.zeros(2, 3)}), r"'a' has shape \(2, 3\): expected a row"),
        (lambda: lines({"a": 1.0}), r"'a' has shape \(\): expected a row"),
        (lambda: lines({"a": [1, 2]}, x=3.0), "'a' has 2 values for 1 positions"),
        (lambda: lines({"a": [1, 2]}, log="z"), "log must be '', 'x', 'y' or 'xy', got 'z'"),
    ],
)
def test_what_does_not_fit_is_refused(draw, message) -> None:
    with pytest.raises(ValueError, match=message):
        draw()


@pytest.mark.parametrize(
    ("shape", "numbers", "shapes"), [((8, 10), 80, 1), ((9, 9), 0, 1), ((20, 20), 0, 1), ((1, 401), 0, 0)]
)
def test_how_many_cells_have_numbers_and_are_shapes(shape, numbers, shapes) -> None:
    _, ax = plt.subplots()
    heat_map(np.arange(shape[0] * shape[1]).reshape(shape), ax=ax)
    assert (len(ax.texts), len(ax.collections), len(ax.images)) == (numbers, shapes, 1 - shapes)
    assert len(ax.figure.axes) == 1 + (not numbers)


def test_cells_have_two_digits_below_ten() -> None:
    for matrix, wanted in (([[9.994, -9.0]], ["9.99", "-9.00"]), ([[1.25, -10.0]], ["1.2", "-10.0"])):
        heat_map(matrix)
        assert [text.get_text() for text in plt.gca().texts] == wanted


def test_zeros_have_the_first_color_and_limits_the_last_word() -> None:
    heat_map([[0.0, 0.0]])
    assert plt.gca().collections[0].get_clim() == (0.0, 1.0)
    heat_map([[2.0, -1.0]], limits=(0.0, 4.0))
    cells = plt.gca().collections[0]
    assert (cells.get_clim(), cells.get_cmap().name) == ((0.0, 4.0), "viridis")
    heat_map([[2.0, 1.0]], limits=(-4.0, 4.0))
    assert plt.gca().collections[0].get_cmap().name == "RdBu_r"


def test_names_of_columns_longer_than_four_letters_are_turned() -> None:
    for names, angle in ((["four", "cat"], 0.0), (["cat", "fiver"], 40.0)):
        heat_map([[1.0, 2.0], [3.0, 4.0]], columns=names, rows=["a long name", "b"])
        ax = plt.gca()
        assert [(text.get_text(), text.get_rotation()) for text in ax.get_xticklabels()] == [
            (name, angle) for name in names
        ]
        assert {text.get_rotation() for text in ax.get_yticklabels()} == {0.0}


def test_up_to_eight_positions_are_written_on_a_logarithmic_axis() -> None:
    for n in (8, 9):
        lines({"a": [1] * n}, x=[1000 + 7 * i for i in range(n)], log="x")
        written = [text.get_text() for text in plt.gca().get_xticklabels()]
        assert (written[:2] == ["1,000", "1,007"]) == (n == 8)


def test_what_is_drawn_goes_into_the_axes_that_are_given() -> None:
    _, (left, right) = plt.subplots(ncols=2)
    for draw in (lines, bars):
        draw({"a": [1.0, 2.0] if draw is lines else 1234.567}, ax=left, title=draw.__name__)
        assert left.get_title(loc="left") == draw.__name__
    assert [text.get_text() for text in left.texts][-1] == "1,234.57"
    assert not right.texts


def test_panels_have_their_letters_and_lines() -> None:
    curves = {letter: {"training": [3.0, 2.0, 1.0], "validation": [3.0, 2.0, 2.5]} for letter in "ABCDE"}
    curves["B"] = {"training": [3.0], "validation": [2.0]}  # ends early
    panels(curves, x=[1.0, 20.0, 40.0], labels=("steps", "loss"), limits=(0.0, 4.0), line=2.0, columns=3)
    axes = plt.gcf().axes
    assert [ax.get_visible() for ax in axes] == [True] * 5 + [False]
    assert [ax.texts[0].get_text() for ax in axes[:5]] == list("ABCDE")
    assert [len(ax.lines) for ax in axes] == [3] * 5 + [0]
    assert [len(line.get_xdata()) for line in axes[1].lines[:2]] == [1, 1]
    assert {ax.get_ylim() for ax in axes} == {(0.0, 4.0)}
