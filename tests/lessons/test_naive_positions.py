"""The simple codes of positions: by hand, against other formulas, at their limits."""

import pytest
import torch
from torch_twins import close

from exformer_lessons.positional_encoding.naive import (
    fraction_encoding,
    integer_encoding,
    one_hot_encoding,
    square_wave_encoding,
)

pytestmark = pytest.mark.usefixtures("float64")

CODES = [integer_encoding, fraction_encoding, one_hot_encoding, square_wave_encoding]


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (integer_encoding, [[0, 0, 0], [1, 0, 0], [2, 0, 0]]),
        (fraction_encoding, [[0, 0, 0], [0.5, 0, 0], [1, 0, 0]]),
        (one_hot_encoding, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        (square_wave_encoding, [[0, 0, 0], [1, 0, 0], [0, 1, 0]]),
    ],
)
def test_three_positions_by_hand(code, wanted):
    close(code(3, d_model=3), torch.tensor(wanted, dtype=torch.float64))


@pytest.mark.parametrize("code", CODES)
def test_shape_and_number_type_follow_torch(code):
    table = code(5, d_model=7)
    assert table.shape == (5, 7)
    assert table.dtype == torch.float64


def test_square_waves_are_the_binary_digits():
    table = square_wave_encoding(37, d_model=6)
    for position, digits in enumerate(table.int().tolist()):
        assert "".join(map(str, reversed(digits))) == f"{position:06b}"


def test_square_waves_are_as_wide_as_any_model():
    table = square_wave_encoding(100, d_model=130)
    close(table[:, :7], square_wave_encoding(100, d_model=7))
    assert not table[:, 7:].any()


def test_fractions_depend_on_the_length():
    short, long = fraction_encoding(5, d_model=1), fraction_encoding(9, d_model=1)
    close(short, long[::2])
    close(fraction_encoding(1, d_model=1), torch.zeros(1, 1))


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("sizes", "name"), [((0, 4), "n_positions"), ((3, 0), "d_model")])
def test_numbers_too_small_are_refused(code, sizes, name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        code(sizes[0], d_model=sizes[1])


def test_one_hot_codes_run_out():
    assert one_hot_encoding(4, d_model=4).shape == (4, 4)
    with pytest.raises(ValueError, match="5 positions need as many columns, and d_model is 4"):
        one_hot_encoding(5, d_model=4)


def test_binary_digits_run_out():
    assert len(square_wave_encoding(8, d_model=3).unique(dim=0)) == 8
    with pytest.raises(ValueError, match="count 8 positions, and 9 are asked for"):
        square_wave_encoding(9, d_model=3)
