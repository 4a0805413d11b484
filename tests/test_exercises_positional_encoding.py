"""Graders of lesson 05: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import math

import numpy as np
import pytest
import torch
from folded_solutions import solutions

from exformer.lessons.exercises.positional_encoding import check_alibi, check_encoding, check_rotate
from exformer.nn.positions.absolute import sinusoidal_encoding
from exformer.nn.positions.alibi import alibi_bias
from exformer.nn.positions.rotary import rotate

LESSON = "05_positions"


def by_loops(n, d, *, row=0, angle=lambda pos, i, d: pos / 10_000 ** (2 * i / d), parts=(math.sin, math.cos)):
    """Write the table entry by entry, as the paper has it, or with one thing changed."""
    return torch.tensor([[parts[j % 2](angle(pos + row, j // 2, d)) for j in range(d)] for pos in range(n)])


def with_columns(n, d, angle):
    return torch.tensor(
        [[(math.cos if j % 2 else math.sin)(angle(p, j, d)) for j in range(d)] for p in range(n)]
    )


def halves(n, d):
    table = by_loops(n, d)
    return torch.cat((table[:, 0::2], table[:, 1::2]), dim=1)


ENCODINGS = {
    "library": lambda n, d: sinusoidal_encoding(n, d_model=d),
    "loops": by_loops,
    "numpy": lambda n, d: by_loops(n, d).double().numpy(),
    "lists": lambda n, d: by_loops(n, d).tolist(),
    "by logarithms": lambda n, d: torch.stack(
        (
            (torch.arange(n)[:, None] * torch.exp(-math.log(1e4) * torch.arange(0, d, 2) / d)).sin(),
            (torch.arange(n)[:, None] * torch.exp(-math.log(1e4) * torch.arange(0, d, 2) / d)).cos(),
        ),
        dim=2,
    ).view(n, d),
}


@pytest.mark.parametrize("answer", ENCODINGS.values(), ids=ENCODINGS)
def test_right_encodings(answer):
    assert check_encoding(answer), check_encoding(answer)


WRONG_ENCODINGS = {
    "sines come first": halves,
    "other way round": lambda n, d: by_loops(n, d, parts=(math.cos, math.sin)),
    "pairs are counted from 1": lambda n, d: by_loops(
        n, d, angle=lambda p, i, d: p / 1e4 ** (2 * (i + 1) / d)
    ),
    "positions are counted from 1": lambda n, d: by_loops(n, d, row=1),
    "exponent is i/d": lambda n, d: by_loops(n, d, angle=lambda p, i, d: p / 1e4 ** (i / d)),
    "frequency of its own": lambda n, d: with_columns(n, d, lambda p, j, d: p / 1e4 ** (j / d)),
    "exactly 1/10000": lambda n, d: by_loops(n, d, angle=lambda p, i, d: p / 1e4 ** (2 * i / (d - 2))),
    "frequencies rise": lambda n, d: by_loops(n, d, angle=lambda p, i, d: p * 1e4 ** (2 * i / d)).double(),
    "degrees": lambda n, d: by_loops(n, d, angle=lambda p, i, d: math.radians(p / 1e4 ** (2 * i / d))),
    "sines only": lambda n, d: by_loops(n, d, parts=(math.sin, math.sin)),
    "returns nothing yet": lambda n, d: None,
    "should have the shape": lambda n, d: by_loops(n, d).mT,
    "raised ZeroDivisionError": lambda n, d: 1 / 0,
    "largest difference": lambda n, d: by_loops(n, d) + 1,
}


@pytest.mark.parametrize("hint", WRONG_ENCODINGS)
def test_wrong_encodings_are_named(hint):
    verdict = check_encoding(WRONG_ENCODINGS[hint])
    assert not verdict
    assert hint in verdict.says


def turn_by_matrices(x, positions, *, angle=lambda p, i, d: p / 10_000 ** (2 * i / d), signs=(-1, 1)):
    """Turn row by row and pair by pair, or with one thing changed."""
    out = torch.empty_like(x)
    for row, position in enumerate(positions.tolist()):
        for i in range(x.size(1) // 2):
            a, b = x[row, 2 * i], x[row, 2 * i + 1]
            c, s = (f(angle(position, i, x.size(1))) for f in (math.cos, math.sin))
            out[row, 2 * i], out[row, 2 * i + 1] = a * c + signs[0] * b * s, signs[1] * a * s + b * c
    return out


def by_complex_numbers(x, positions):
    angle = positions[:, None] / 10_000 ** (torch.arange(0, x.size(1), 2) / x.size(1))
    pairs = torch.complex(x[:, 0::2], x[:, 1::2]) * torch.exp(1j * angle)
    return torch.stack((pairs.real, pairs.imag), dim=-1).flatten(1)


def rotate_half(x, positions):
    """Turn as GPT-NeoX and LLaMA do in well-known code: column i with column i + d/2."""
    half = x.size(1) // 2
    angle = positions[:, None] / 10_000 ** (torch.arange(half) / half)
    a, b = x[:, :half], x[:, half:]
    return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), dim=1)


ROTATIONS = {
    "library": rotate,
    "matrices": turn_by_matrices,
    "complex numbers": by_complex_numbers,
    "numpy": lambda x, p: turn_by_matrices(x, p).numpy(),
}


@pytest.mark.parametrize("answer", ROTATIONS.values(), ids=ROTATIONS)
def test_right_rotations(answer):
    assert check_rotate(answer), check_rotate(answer)


def over_itself(x, p):
    angle = p[:, None] * 1e4 ** (-torch.arange(0, x.size(1), 2) / x.size(1))
    a, b = x[:, 0::2], x[:, 1::2]  # views
    x[:, 0::2] = a * angle.cos() - b * angle.sin()
    x[:, 1::2] = a * angle.sin() + b * angle.cos()
    return x


WRONG_ROTATIONS = {
    "wrong way": lambda x, p: turn_by_matrices(x, -p),
    "same sign": lambda x, p: turn_by_matrices(x, p, signs=(1, 1)),
    "by the position itself": lambda x, p: turn_by_matrices(x, p, angle=lambda p, i, d: p),
    "number of the row": lambda x, p: turn_by_matrices(x, torch.arange(len(x))),
    "exponent is i/d": lambda x, p: turn_by_matrices(x, p, angle=lambda p, i, d: p / 1e4 ** (i / d)),
    "pairs are counted from 1": lambda x, p: turn_by_matrices(
        x, p, angle=lambda p, i, d: p / 1e4 ** (2 * (i + 1) / d)
    ),
    "later pairs turn faster": lambda x, p: turn_by_matrices(
        x.double(), p, angle=lambda p, i, d: p * 1e4 ** (2 * i / d)
    ),
    "column i + d/2": rotate_half,
    "degrees": lambda x, p: turn_by_matrices(
        x, p, angle=lambda p, i, d: math.radians(p / 1e4 ** (2 * i / d))
    ),
    "positions are counted from 1": lambda x, p: turn_by_matrices(x, p + 1),
    "You add": lambda x, p: x + sinusoidal_encoding(31, d_model=x.size(1))[p],
    "that you still need": over_itself,
    "not been turned": lambda x, p: x,
    "returns nothing yet": lambda x, p: ...,
    "should have the shape": lambda x, p: x[:1],
    "raised IndexError": lambda x, p: x[99],
    "largest difference": lambda x, p: 2 * turn_by_matrices(x, p),
}


@pytest.mark.parametrize("hint", WRONG_ROTATIONS)
def test_wrong_rotations_are_named(hint):
    verdict = check_rotate(WRONG_ROTATIONS[hint])
    assert not verdict
    assert hint in verdict.says


def bias_by_loops(
    n, heads, *, slope=lambda h, heads: 2 ** (-8 * h / heads), distance=lambda i, j: abs(i - j)
):
    """Write the biases entry by entry, heads counted from 1, or with one thing changed."""
    return torch.tensor(
        [
            [[-slope(h, heads) * distance(i, j) for j in range(n)] for i in range(n)]
            for h in range(1, heads + 1)
        ]
    )


BIASES = {
    "library": lambda n, h: alibi_bias(torch.arange(n), torch.arange(n), n_heads=h),
    "loops": bias_by_loops,
    "numpy": lambda n, h: np.asarray(bias_by_loops(n, h)),
    "slope after slope": lambda n, h: bias_by_loops(n, h, slope=lambda h, heads: (2 ** (-8 / heads)) ** h),
}


@pytest.mark.parametrize("answer", BIASES.values(), ids=BIASES)
def test_right_biases(answer):
    assert check_alibi(answer), check_alibi(answer)


WRONG_BIASES = {
    "grows with the distance": lambda n, h: -bias_by_loops(n, h),
    "after the query get a bonus": lambda n, h: bias_by_loops(n, h, distance=lambda i, j: i - j),
    "before the query get a bonus": lambda n, h: bias_by_loops(n, h, distance=lambda i, j: j - i),
    "no bias at all": lambda n, h: bias_by_loops(n, h, distance=lambda i, j: max(i - j, 0)),
    "the work of a mask": lambda n, h: bias_by_loops(
        n, h, distance=lambda i, j: i - j if j <= i else math.inf
    ),
    "counted from 0": lambda n, h: bias_by_loops(n, h, slope=lambda h, heads: 2 ** (-8 * (h - 1) / heads)),
    "for any number of heads": lambda n, h: bias_by_loops(n, h, slope=lambda h, heads: 2**-h),
    "rounded down": lambda n, h: bias_by_loops(n, h, slope=lambda h, heads: 2 ** -(8 // heads * h)),
    "wrong order": lambda n, h: bias_by_loops(n, h).flip(0),
    "one slope": lambda n, h: bias_by_loops(n, h, slope=lambda h, heads: 2 ** (-8 / heads)),
    "square the distance": lambda n, h: bias_by_loops(n, h, distance=lambda i, j: (i - j) ** 2),
    "no slopes": lambda n, h: bias_by_loops(n, h, slope=lambda h, heads: 1.0),
    "returns nothing yet": lambda n, h: None,
    "should have the shape": lambda n, h: bias_by_loops(n, h)[0],
    "raised TypeError": lambda n: None,
    "largest difference": lambda n, h: bias_by_loops(n, h) + 1,
}


@pytest.mark.parametrize("hint", WRONG_BIASES)
def test_wrong_biases_are_named(hint):
    verdict = check_alibi(WRONG_BIASES[hint])
    assert not verdict
    assert hint in verdict.says


@pytest.mark.parametrize("check", [check_encoding, check_rotate, check_alibi])
def test_a_result_in_place_of_a_function_is_refused(check):
    assert "function itself" in check(3).says


GRADERS = {
    "ex-05-encoding": lambda names: check_encoding(names["my_encoding"]),
    "ex-05-rotary": lambda names: check_rotate(names["my_rotate"]),
    "ex-05-alibi": lambda names: check_alibi(names["my_alibi"]),
}


@pytest.mark.parametrize("exercise", GRADERS)
def test_folded_solution_is_graded_right(exercise):
    names = {"torch": torch}
    exec(solutions(LESSON)[exercise], names)
    assert GRADERS[exercise](names)


def test_each_exercise_of_the_lesson_is_graded_here():
    assert list(solutions(LESSON)) == list(GRADERS)
