"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import math

import numpy as np
import torch
from answer_banks import answer_test, bank_test

from exformer.nn.positions.absolute import sinusoidal_encoding
from exformer.nn.positions.alibi import alibi_bias
from exformer.nn.positions.rotary import rotate
from exformer_lessons.positional_encoding import mistakes as known
from exformer_lessons.positional_encoding.grader import (
    grade_alibi,
    grade_rotate,
)


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
    "returns nothing": lambda x, p: ...,
    "should have the shape": lambda x, p: x[:1],
    "raised IndexError": lambda x, p: x[99],
    "largest difference": lambda x, p: 2 * turn_by_matrices(x, p),
}


test_rotations = answer_test(grade_rotate, right=ROTATIONS, wrong=WRONG_ROTATIONS)


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
    "returns nothing": lambda n, h: None,
    "should have the shape": lambda n, h: bias_by_loops(n, h)[0],
    "raised TypeError": lambda n: None,
    "largest difference": lambda n, h: bias_by_loops(n, h) + 1,
}


test_biases = answer_test(grade_alibi, right=BIASES, wrong=WRONG_BIASES)


test_known = bank_test((known.ROTATE, WRONG_ROTATIONS), (known.ALIBI, WRONG_BIASES))
