"""Positions: the paper's formula, its rotation property, and the limits of a table."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_twins import close, normal, papers_formula

from exformer.nn.positions.absolute import (
    LearnedPositions,
    NoPositions,
    SinusoidalPositions,
    added_positions,
    sinusoidal_encoding,
)

pytestmark = pytest.mark.usefixtures("float64")
TABLES = pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])


@pytest.mark.parametrize(
    ("n_positions", "d_model", "base"), [(7, 2, 1e4), (23, 26, 1e4), (101, 38, 1e4), (13, 10, 17.0)]
)
def test_sinusoidal_encoding_is_the_papers_formula(n_positions, d_model, base):
    got = sinusoidal_encoding(n_positions, d_model=d_model, base=base)
    close(got, papers_formula(n_positions, d_model=d_model, base=base))


def test_sinusoidal_encoding_by_hand():
    # d_model = 4 has two frequencies: 1 and 10000^(-2/4) = 1/100. Row 0 is sin 0 = 0, cos 0 = 1.
    wanted = [
        [0.0, 1.0, 0.0, 1.0],
        [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)],
        [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)],
    ]
    close(sinusoidal_encoding(3, d_model=4), torch.tensor(wanted))


@given(position=st.integers(0, 40), step=st.integers(0, 40))
def test_a_step_is_a_rotation_that_is_the_same_everywhere(position, step):
    table, turn = sinusoidal_encoding(81, d_model=14), sinusoidal_encoding(41, d_model=14)[step]
    sine, cosine = table[position, 0::2], table[position, 1::2]
    close(table[position + step, 0::2], sine * turn[1::2] + cosine * turn[0::2])
    close(table[position + step, 1::2], cosine * turn[1::2] - sine * turn[0::2])


def test_float32_is_rounded_once_at_the_end():
    exact, rounded = (sinusoidal_encoding(5003, d_model=6, dtype=dtype) for dtype in (None, torch.float32))
    assert rounded.dtype == torch.float32
    assert torch.equal(rounded, exact.float())


@TABLES
def test_modules_add_the_row_of_each_position(kind):
    positions, x = kind(6, max_len=11), normal(3, 7, 6)
    close(positions(x), x + positions.weight[:7])
    for row in range(3):  # the same rows for every sentence
        close(positions(x)[row], x[row] + positions.weight[:7])


@TABLES
@given(padding=st.lists(st.integers(0, 6), min_size=3, max_size=3), start=st.integers(0, 4))
def test_positions_start_after_left_padding(kind, padding, start):
    positions, x = kind(6, max_len=11), normal(3, 7, 6)
    got = positions(x, start=start, padding=torch.tensor(padding))
    for row, n in enumerate(padding):
        for t in range(max(n - start, 0), 7):
            close(got[row, t], x[row, t] + positions.weight[start + t - n])
    assert got.isfinite().all()


@pytest.mark.parametrize("name", ["sinusoidal", "learned", "none"])
def test_padding_takes_no_position(name):
    positions, x = added_positions(name, 6, max_len=5), normal(2, 7, 6)
    close(positions(x, padding=torch.tensor([2, 3]))[0, 2:], x[0, 2:] + getattr(positions, "weight", 0))
    with pytest.raises(ValueError, match=r"the sequence has 6 positions \(from 0 on\), and max_len is 5"):
        positions(x, padding=torch.tensor([2, 1]))


@TABLES
def test_more_padding_than_the_table_has_rows(kind):
    positions, x = kind(6, max_len=2), normal(2, 5, 6)
    got = positions(x, padding=torch.tensor([3, 4]))
    close(got[0, 3:], x[0, 3:] + positions.weight)
    close(got[1, 4], x[1, 4] + positions.weight[0])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sinusoidal", SinusoidalPositions),
        ("learned", LearnedPositions),
        ("rotary", NoPositions),
        ("alibi", NoPositions),
        ("none", NoPositions),
    ],
)
def test_what_a_model_adds_goes_by_name(name, kind):
    assert type(added_positions(name, 6, max_len=11)) is kind


@TABLES
def test_a_later_start_gives_the_later_rows(kind):
    positions, x = kind(6, max_len=11), normal(3, 11, 6)
    close(positions(x[:, 4:], start=4), positions(x)[:, 4:])


def test_sinusoidal_table_is_not_saved_and_not_learned():
    positions = SinusoidalPositions(6, max_len=11)
    assert torch.equal(positions.weight, sinusoidal_encoding(11, d_model=6))
    assert list(positions.parameters()) == []
    assert positions.state_dict() == {}


def test_sinusoids_of_a_double_model_are_exact():
    torch.set_default_dtype(torch.float32)
    try:
        positions = SinusoidalPositions(6, max_len=11).half().double()
    finally:
        torch.set_default_dtype(torch.float64)
    x = torch.zeros(1, 11, 6)
    assert torch.equal(positions(x)[0], sinusoidal_encoding(11, d_model=6))
    assert positions(x.float()).dtype == torch.float32
    assert torch.equal(positions(x.float())[0], sinusoidal_encoding(11, d_model=6, dtype=torch.float32))


def test_learned_table_learns_the_rows_that_were_used():
    positions = LearnedPositions(6, max_len=11)
    positions(normal(3, 7, 6)).sum().backward()
    wanted = torch.zeros(11, 6)
    wanted[:7] = 3  # once a sentence
    close(positions.weight.grad, wanted)
    assert positions.weight.std().item() == pytest.approx(0.02, rel=0.3)


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ((0, 4, 1e4), "n_positions must be at least 1, got 0"),
        ((-2, 4, 1e4), "n_positions must be at least 1, got -2"),
        ((2.5, 4, 1e4), r"n_positions must be an integer, got 2\.5"),
        ((5, 0, 1e4), "d_model must be at least 2, got 0"),
        ((5, 7, 1e4), r"d_model \(7\) must be even: each frequency needs a sine and a cosine"),
        ((3, 4, 0.0), r"base must be above 0, got 0\.0"),
        ((3, 4, -2.0), r"base must be above 0, got -2\.0"),
        ((3, 4, math.nan), "base must be above 0, got nan"),
    ],
)
def test_numbers_that_make_no_table_are_refused(sizes, says):
    n_positions, d_model, base = sizes
    with pytest.raises(ValueError, match=says):
        sinusoidal_encoding(n_positions, d_model=d_model, base=base)


@pytest.mark.parametrize("start", [0, 4])
def test_no_positions_leave_the_vectors_as_they_are(start):
    x = normal(3, 7, 6)
    assert NoPositions(max_len=11)(x, start=start) is x


@pytest.mark.parametrize("name", ["sinusoidal", "learned", "none"])
@pytest.mark.parametrize(("length", "start", "end"), [(12, 0, 12), (5, 7, 12), (2, -1, 1)])
def test_a_sentence_longer_than_the_table_is_refused(name, length, start, end):
    positions = added_positions(name, 6, max_len=11)
    message = (
        rf"the sequence has {end} positions \(from {start} on\), and max_len is 11: "
        "shorten it, or build the model with a larger max_len"
    )
    with pytest.raises(ValueError, match=message):
        positions(normal(3, length, 6), start=start)


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("name", ["sinusoidal", "learned", "none"])
def test_one_sequence_is_a_batch_of_one(name):
    with pytest.raises(ValueError, match=r"got the shape \(5, 6\): one sequence is x\[None\]"):
        added_positions(name, 6, max_len=11)(torch.ones(5, 6))


@pytest.mark.usefixtures("unchecked_shapes")
@TABLES
@pytest.mark.parametrize("width", [1, 5, 12])
def test_another_width_is_refused(kind, width):
    """A width of 1 would be spread over all columns."""
    with pytest.raises(
        ValueError, match=f"the table of positions was made for d_model = 6, got {width} columns"
    ):
        kind(6, max_len=11)(torch.ones(3, 7, width))
