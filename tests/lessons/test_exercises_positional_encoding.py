"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import math

import numpy as np
import pytest
import torch
from folded_solutions import solutions

from exformer.nn.positions.absolute import sinusoidal_encoding
from exformer.nn.positions.alibi import alibi_bias
from exformer.nn.positions.rotary import rotate
from exformer_lessons.positional_encoding import mistakes as known
from exformer_lessons.positional_encoding.grader import (
    grade_alibi,
    grade_encoding,
    grade_relative_bias,
    grade_rotate,
    grade_shift_matrix,
)

LESSON = "positional_encoding"


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
    assert grade_encoding(answer), grade_encoding(answer)


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
    "You have sines only": lambda n, d: by_loops(n, d, parts=(math.sin, math.sin)),
    "cosines only": lambda n, d: by_loops(n, d, parts=(math.cos, math.cos)),
    "exponent is 2j/d": lambda n, d: with_columns(n, d, lambda p, j, d: p / 1e4 ** (2 * j / d)),
    "2π times too large": lambda n, d: by_loops(
        n, d, angle=lambda p, i, d: 2 * math.pi * p / 1e4 ** (2 * i / d)
    ),
    "the same frequency": lambda n, d: by_loops(n, d, angle=lambda p, i, d: p / 10_000 ** (2 * i // d)),
    "holds the angles": lambda n, d: by_loops(n, d, parts=(float, float)),
    "returns nothing yet": lambda n, d: None,
    "should have the shape": lambda n, d: by_loops(n, d).mT,
    "raised ZeroDivisionError": lambda n, d: 1 / 0,
    "largest difference": lambda n, d: by_loops(n, d) + 1,
}


@pytest.mark.parametrize("hint", WRONG_ENCODINGS)
def test_wrong_encodings_are_named(hint):
    verdict = grade_encoding(WRONG_ENCODINGS[hint])
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
    assert grade_rotate(answer), grade_rotate(answer)


def over_itself(x, p):
    angle = p[:, None] * 1e4 ** (-torch.arange(0, x.size(1), 2) / x.size(1))
    a, b = x[:, 0::2], x[:, 1::2]  # views
    x[:, 0::2] = a * angle.cos() - b * angle.sin()
    x[:, 1::2] = a * angle.sin() + b * angle.cos()
    return x


def mixed(x, p, *, halves_of_x):
    """Port half of well-known code: pairs of one layout, angles of the other."""
    angle = p[:, None] / 1e4 ** (torch.arange(0, x.size(1), 2) / x.size(1))
    if halves_of_x:
        a, b = x.chunk(2, dim=1)
        angle, across = angle.repeat_interleave(2, dim=1), torch.cat((-b, a), dim=1)
    else:
        angle, across = torch.cat((angle, angle), dim=1), torch.stack((-x[:, 1::2], x[:, 0::2]), 2).flatten(1)
    return x * angle.cos() + across * angle.sin()


def halves_of(x):
    return torch.cat((x[:, 0::2], x[:, 1::2]), dim=1)


WRONG_ROTATIONS = {
    "wrong way": lambda x, p: turn_by_matrices(x, -p),
    "same sign": lambda x, p: turn_by_matrices(x, p, signs=(1, 1)),
    "by the position itself": lambda x, p: turn_by_matrices(x, p, angle=lambda p, i, d: p),
    "number of the row": lambda x, p: turn_by_matrices(x, torch.arange(len(x))),
    "exponent is i/d": lambda x, p: turn_by_matrices(x, p, angle=lambda p, i, d: p / 1e4 ** (i / d)),
    "pairs are counted from 1": lambda x, p: turn_by_matrices(
        x, p, angle=lambda p, i, d: p / 1e4 ** (2 * (i + 1) / d)
    ),
    "later pairs rotate faster": lambda x, p: turn_by_matrices(
        x.double(), p, angle=lambda p, i, d: p * 1e4 ** (2 * i / d)
    ),
    "column i + d/2: here": rotate_half,
    "degrees": lambda x, p: turn_by_matrices(
        x, p, angle=lambda p, i, d: math.radians(p / 1e4 ** (2 * i / d))
    ),
    "positions are counted from 1": lambda x, p: turn_by_matrices(x, p + 1),
    "You add": lambda x, p: x + sinusoidal_encoding(31, d_model=x.size(1))[p],
    "that you still need": over_itself,
    "not been rotated": lambda x, p: x,
    "by the angles of neighbors": lambda x, p: mixed(x, p, halves_of_x=True),
    "laid out for halves": lambda x, p: mixed(x, p, halves_of_x=False),
    "come before the second ones": lambda x, p: halves_of(turn_by_matrices(x, p)),
    "exponent is 2j/d": lambda x, p: turn_by_matrices(x, p, angle=lambda p, i, d: p / 1e4 ** (4 * i / d)),
    "returns nothing yet": lambda x, p: ...,
    "should have the shape": lambda x, p: x[:1],
    "raised IndexError": lambda x, p: x[99],
    "largest difference": lambda x, p: 2 * turn_by_matrices(x, p),
}


@pytest.mark.parametrize("hint", WRONG_ROTATIONS)
def test_wrong_rotations_are_named(hint):
    verdict = grade_rotate(WRONG_ROTATIONS[hint])
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
    assert grade_alibi(answer), grade_alibi(answer)


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
    "slopes are 1/h": lambda n, h: bias_by_loops(n, h, slope=lambda h, heads: 1 / h),
    "2^(-8/h), and rise": lambda n, h: bias_by_loops(n, h, slope=lambda h, heads: 2 ** (-8 / h)),
    "lack the minus": lambda n, h: bias_by_loops(n, h, slope=lambda h, heads: 2 ** (8 * h / heads)),
    "returns nothing yet": lambda n, h: None,
    "should have the shape": lambda n, h: bias_by_loops(n, h)[0],
    "raised TypeError": lambda n: None,
    "largest difference": lambda n, h: bias_by_loops(n, h) + 1,
}


@pytest.mark.parametrize("hint", WRONG_BIASES)
def test_wrong_biases_are_named(hint):
    verdict = grade_alibi(WRONG_BIASES[hint])
    assert not verdict
    assert hint in verdict.says


def test_the_halves_of_one_mistake_are_named_alike():
    def both_at_once(n, d):
        return by_loops(n, d, angle=lambda p, i, d: p / 1e4 ** (4 * i / d))  # range(0, d, 2), and 2i again

    assert "exponent is 2j/d" in grade_encoding(both_at_once).says


def shift_by_blocks(k, d, *, angle=lambda k, i, d: k / 10_000 ** (2 * i / d), signs=(-1, 1)):
    """Put one rotation per pair on the diagonal, or with one thing changed."""
    blocks = []
    for i in range(d // 2):
        c, s = (f(angle(k, i, d)) for f in (math.cos, math.sin))
        blocks.append(torch.tensor([[c, signs[0] * s], [signs[1] * s, c]]))
    return torch.block_diag(*blocks)


def shift_by_least_squares(k, d):
    table = sinusoidal_encoding(64 + k, d_model=d, dtype=torch.float64)
    return torch.linalg.lstsq(table[:64], table[k:], driver="gelsd").solution


def shift_by_kronecker(k, d):
    angle = k * 1e4 ** (-np.arange(0, d, 2) / d)
    cosines, sines = np.diag(np.cos(angle)), np.diag(np.sin(angle))
    return np.kron(cosines, np.eye(2)) + np.kron(sines, [[0, -1], [1, 0]])


SHIFTS = {
    "blocks": shift_by_blocks,
    "least squares": shift_by_least_squares,
    "numpy": shift_by_kronecker,
    "power": lambda k, d: torch.linalg.matrix_power(shift_by_blocks(1, d).double(), k),
    "rows": lambda k, d: (row for row in shift_by_blocks(k, d)),
    "transposed view": lambda k, d: shift_by_blocks(-k, d).T,
    "sparse": lambda k, d: shift_by_blocks(k, d).to_sparse(),
}


@pytest.mark.parametrize("answer", SHIFTS.values(), ids=SHIFTS)
def test_right_shifts(answer):
    assert grade_shift_matrix(answer), grade_shift_matrix(answer)


def test_the_graders_shift_is_that_of_the_code():
    for k, d in ((1, 6), (5, 4), (-3, 8)):
        table = sinusoidal_encoding(20, d_model=d, dtype=torch.float64)
        start, end = max(0, -k), 20 - max(0, k)
        torch.testing.assert_close(table[start:end] @ known.shift(k, d), table[start + k : end + k])


def for_halves(k, d):
    order = torch.cat((torch.arange(0, d, 2), torch.arange(1, d, 2)))
    return shift_by_blocks(k, d)[order[:, None], order]


WRONG_SHIFTS = {
    "shifts back": lambda k, d: shift_by_blocks(k, d).T,
    "same sign": lambda k, d: shift_by_blocks(k, d, signs=(-1, -1)),
    "exponent is i/d": lambda k, d: shift_by_blocks(k, d, angle=lambda k, i, d: k / 1e4 ** (i / d)),
    "exponent is 2j/d": lambda k, d: shift_by_blocks(k, d, angle=lambda k, i, d: k / 1e4 ** (4 * i / d)),
    "counted from 1": lambda k, d: shift_by_blocks(k, d, angle=lambda k, i, d: k / 1e4 ** (2 * (i + 1) / d)),
    "by the same angle": lambda k, d: shift_by_blocks(k, d, angle=lambda k, i, d: k),
    "all its sines first": for_halves,
    "2π times too large": lambda k, d: shift_by_blocks(
        k, d, angle=lambda k, i, d: math.tau * k / 1e4 ** (2 * i / d)
    ),
    "by one position": lambda k, d: shift_by_blocks(1, d),
    "for k = 1 only": lambda k, d: shift_by_blocks(1, d) ** k,
    "returns nothing yet": lambda k, d: None,
    "should have the shape (6, 6), yours has (2, 2)": lambda k, d: shift_by_blocks(k, 2),
    "raised TypeError": lambda k: None,
    "largest difference": lambda k, d: torch.eye(d).roll(k, dims=1),
}


@pytest.mark.parametrize("hint", WRONG_SHIFTS)
def test_wrong_shifts_are_named(hint):
    verdict = grade_shift_matrix(WRONG_SHIFTS[hint])
    assert not verdict
    assert hint in verdict.says


@pytest.mark.parametrize(
    ("hint", "answer"),
    [
        ("same sign", lambda k, d: shift_by_blocks(k, d, signs=(1, 1))),
        ("all its sines first", lambda k, d: for_halves(k, d).T),
        ("for k = 1 only", lambda k, d: k * shift_by_blocks(1, d)),
    ],
)
def test_other_ways_to_make_one_mistake_in_a_shift(hint, answer):
    assert hint in grade_shift_matrix(answer).says


def relative_by_loops(n, table, *, index=lambda offset, most: min(max(offset, -most), most) + most):
    """Look up pair by pair, or with one thing changed."""
    most = (len(table) - 1) // 2
    return [[table[index(key - query, most)].item() for key in range(n)] for query in range(n)]


def relative_by_windows(n, table):
    most = len(table) // 2
    wide = torch.cat((table[:1].expand(n), table, table[-1:].expand(n)))
    return torch.stack([wide[n + most - query :][:n] for query in range(n)])


def signed(n):
    return torch.arange(n) - torch.arange(n)[:, None]


RELATIVE = {
    "loops": relative_by_loops,
    "windows": relative_by_windows,
    "gather": lambda n, t: t.gather(0, (signed(n) + len(t) // 2).clamp(0, len(t) - 1).ravel()).view(n, n),
    "numpy": lambda n, t: np.take(t.numpy(), signed(n).numpy() + len(t) // 2, mode="clip"),
    "rows": lambda n, t: (row for row in relative_by_windows(n, t)),
    "that of the reversed table, transposed": lambda n, t: relative_by_windows(n, t.flip(0)).T,
    "learned": lambda n, t: relative_by_windows(n, t.requires_grad_()),
}


@pytest.mark.parametrize("answer", RELATIVE.values(), ids=RELATIVE)
def test_right_relative_biases(answer):
    assert grade_relative_bias(answer), grade_relative_bias(answer)


def indexed(index):
    return lambda n, table: relative_by_loops(n, table, index=index)


WRONG_RELATIVE = {
    "query minus key": lambda n, t: relative_by_windows(n, t).T,
    "the offset has a sign": indexed(lambda offset, most: min(abs(offset), most) + most),
    "wrap around": indexed(lambda offset, most: (offset + most) % (2 * most + 1)),
    "add max_distance": indexed(lambda offset, most: min(max(offset, -most), most)),
    "one entry off": indexed(lambda offset, most: min(max(offset, -most), most) + most - 1),
    "you give 0": lambda n, t: relative_by_windows(n, t).where(signed(n).abs() <= len(t) // 2, 0.0),
    "returns nothing yet": lambda n, t: ...,
    "should have the shape (5, 5), yours has (5,)": lambda n, t: relative_by_windows(n, t)[0],
    "raised IndexError": lambda n, t: t[signed(n) + len(t) // 2],
    "largest difference": lambda n, t: relative_by_windows(n, t).tril(),
}


@pytest.mark.parametrize("hint", WRONG_RELATIVE)
def test_wrong_relative_biases_are_named(hint):
    verdict = grade_relative_bias(WRONG_RELATIVE[hint])
    assert not verdict
    assert hint in verdict.says


@pytest.mark.parametrize(
    ("hint", "index"),
    [
        ("the offset has a sign", lambda offset, most: min(abs(offset), most)),
        ("wrap around", lambda offset, most: min(offset + most, 2 * most)),
        ("one entry off", lambda offset, most: min(max(offset + most + 1, 0), 2 * most)),
        ("one entry off", lambda offset, most: min(max(offset + most - 1, 0), 2 * most)),
        ("one entry off", lambda offset, most: min(max(offset, 1 - most), most - 1) + most - 1),
    ],
)
def test_other_ways_to_make_one_mistake_in_a_relative_bias(hint, index):
    assert hint in grade_relative_bias(indexed(index)).says


@pytest.mark.parametrize(
    ("bank", "tried"),
    [
        (known.ENCODING, WRONG_ENCODINGS),
        (known.ROTATE, WRONG_ROTATIONS),
        (known.ALIBI, WRONG_BIASES),
        (known.SHIFT, WRONG_SHIFTS),
        (known.RELATIVE_BIAS, WRONG_RELATIVE),
    ],
    ids=["encoding", "rotate", "alibi", "shift", "relative bias"],
)
def test_each_known_mistake_is_tried_here(bank, tried):
    for hint in bank:
        assert sum(part in hint for part in tried) == 1, hint


@pytest.mark.parametrize(
    "check", [grade_encoding, grade_rotate, grade_alibi, grade_shift_matrix, grade_relative_bias]
)
def test_a_result_in_place_of_a_function_is_refused(check):
    assert "function itself" in check(3).says


GRADERS = {
    "Rotary positions": lambda names: grade_rotate(names["my_rotate"]),
    "ALiBi": lambda names: grade_alibi(names["my_alibi"]),
    "A relative bias": lambda names: grade_relative_bias(names["my_relative_bias"]),
}


@pytest.mark.parametrize("exercise", GRADERS)
def test_folded_solution_is_graded_right(exercise):
    names = {"torch": torch}
    exec(solutions(LESSON)[exercise], names)
    verdict = GRADERS[exercise](names)
    assert verdict
    assert "does the work" not in verdict.says


def test_each_exercise_of_the_lesson_is_graded_here():
    assert list(solutions(LESSON)) == list(GRADERS)


def test_an_encoding_is_for_any_width():
    def of_width_6(n, d):
        angle = torch.arange(n)[:, None] / 10_000 ** (torch.arange(0, d, 2) / 6)
        return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)

    assert not grade_encoding(of_width_6)


def test_a_shift_by_nothing_is_a_shift():
    assert not grade_shift_matrix(lambda k, d_model: known.shift(k or 1, d_model))


def test_a_table_may_be_wider_than_the_text():
    def middle_of_the_text(n, table):
        most = min(n - 1, len(table) // 2)
        offsets = torch.arange(n) - torch.arange(n)[:, None]
        return table[offsets.clamp(-most, most) + most]

    assert not grade_relative_bias(middle_of_the_text)
