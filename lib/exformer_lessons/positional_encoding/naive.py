"""The encodings of positions that come to mind first; lesson 05 shows what each of them lacks."""

import torch
from jaxtyping import Float
from torch import Tensor

from exformer.check_settings import check_integer


def integer_encoding(n_positions: int, *, d_model: int) -> Float[Tensor, "position d_model"]:
    r"""Write the position itself into the first column: unique, but it grows without bound.

    .. math:: r_{pos,0} = pos, \qquad r_{pos,j} = 0 \;\text{ for } j > 0

    Args:
        n_positions: How many positions, counted from 0; at least 1.
        d_model: Width of the encoding, at least 1.

    Raises:
        ValueError: If a number is too small.

    >>> integer_encoding(3, d_model=2).tolist()
    [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]
    """
    _check(n_positions, d_model)
    return _in_first_column(torch.arange(n_positions), d_model=d_model)


def fraction_encoding(n_positions: int, *, d_model: int) -> Float[Tensor, "position d_model"]:
    r"""Write how much of the sequence has passed: bounded, but the same number is another position elsewhere.

    .. math:: r_{pos,0} = \frac{pos}{n - 1}, \qquad r_{pos,j} = 0 \;\text{ for } j > 0

    A sequence of one position is encoded as 0.

    Args:
        n_positions: Length n of the sequence, at least 1.
        d_model: Width of the encoding, at least 1.

    Raises:
        ValueError: If a number is too small.

    >>> fraction_encoding(5, d_model=1).flatten().tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    _check(n_positions, d_model)
    return _in_first_column(torch.arange(n_positions) / max(n_positions - 1, 1), d_model=d_model)


def one_hot_encoding(n_positions: int, *, d_model: int) -> Float[Tensor, "position d_model"]:
    r"""Use one column per position: all positions are equally far apart, and columns run out.

    .. math:: r_{pos,j} = [\, j = pos \,]

    Args:
        n_positions: How many positions, from 1 to ``d_model``.
        d_model: Width of the encoding.

    Raises:
        ValueError: If a number is too small, or there are more positions than columns.

    >>> one_hot_encoding(2, d_model=3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    _check(n_positions, d_model)
    if n_positions > d_model:
        raise ValueError(
            f"one-hot codes of {n_positions} positions need as many columns, and d_model is {d_model}: "
            "shorten the sequence or widen the vectors"
        )
    return torch.eye(n_positions, d_model)


def square_wave_encoding(n_positions: int, *, d_model: int) -> Float[Tensor, "position d_model"]:
    r"""Count in binary digits: each column is a square wave, half as fast as the one before.

    .. math:: r_{pos,j} = \lfloor pos / 2^j \rfloor \bmod 2

    Args:
        n_positions: How many positions, counted from 0; at least 1 and at most 2 to the power ``d_model``.
        d_model: Number of digits, the fastest first.

    Raises:
        ValueError: If a number is too small, or there are too few digits to count that far.

    >>> square_wave_encoding(4, d_model=2).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """
    _check(n_positions, d_model)
    if n_positions > 2**d_model:
        raise ValueError(
            f"{d_model} binary digits (d_model) count {2**d_model} positions, and {n_positions} are asked "
            "for: shorten the sequence or widen the vectors"
        )
    digit = torch.arange(d_model).clamp(max=62)  # no position is as large as 2**62, so further digits are 0
    code = torch.arange(n_positions)[:, None] >> digit & 1  # (position, d_model)
    return code.to(torch.get_default_dtype())


def _check(n_positions: int, d_model: int) -> None:
    check_integer("n_positions", n_positions, least=1)
    check_integer("d_model", d_model, least=1)


def _in_first_column(values: Tensor, *, d_model: int) -> Tensor:
    code = torch.zeros(len(values), d_model)
    code[:, 0] = values
    return code
