"""Results of answers: numbers are made of them, and compared; where they differ, one sentence says how."""

from collections.abc import Iterable, Iterator, Sequence, ValuesView
from itertools import islice
from typing import Any

import numpy as np
import torch

_MOST = 10_000  # an answer may yield without end


class UnfitError(Exception):
    """A result that cannot be compared; its text is what the reader is told."""


def as_list(value: Any) -> Any:
    """Make lists of what is yielded one by one, or mapped; leave all else as it is."""
    if isinstance(value, Iterator | ValuesView):
        return [as_list(each) for each in islice(value, _MOST)]
    if type(value) in (list, tuple) and any(isinstance(each, Iterator | ValuesView) for each in value):
        return type(value)(as_list(each) for each in value)
    return value


def as_numbers(value: object) -> np.ndarray:
    """Make an array of float64 of a result: a tensor of any kind, a list of such, a single number.

    Raises:
        TypeError: If it is no number, or a text that NumPy would convert.
        UnfitError: If it is complex, or holds None.
    """
    nested = (list, tuple, torch.Tensor)
    if isinstance(value, list | tuple) and any(isinstance(each, nested) for each in value):
        value = [as_numbers(each) for each in value]
    if isinstance(value, torch.Tensor):
        value = value.detach().to_dense()
        value = (value if value.is_complex() else value.double()).numpy()
    found = np.asarray(value)
    if found.dtype.kind == "c":
        raise UnfitError("Your numbers are complex: return real ones, such as torch.view_as_real gives.")
    if found.dtype.kind in "US":
        raise TypeError(f"expected numbers, got {found.dtype}")
    if found.dtype.kind == "O" and any(each is None for each in found.flat):
        raise UnfitError("Your result holds None where a number should be.")
    return found.astype(np.float64)


def all_close(
    given: Sequence[np.ndarray], others: Iterable[np.ndarray], tolerance: float, *, skip_nan: bool = False
) -> bool:
    """Return whether two lists of results agree; results of another shape do not.

    Args:
        given: The results.
        others: As many, to compare with; those after the first that differs are not asked for.
        tolerance: Largest difference that counts as equal, for numbers up to 1; it grows with the largest.
        skip_nan: Whether positions are left out where a result is NaN; else NaN agrees with NaN alone.
    """
    for a, b in zip(given, others, strict=True):
        if a.shape != b.shape:
            return False
        counts = ~np.isnan(a) if skip_nan else np.ones_like(a, dtype=bool)
        if not np.allclose(a[counts], b[counts], rtol=0.0, atol=tolerance * _scale(b), equal_nan=True):
            return False
    return not skip_nan or not all(np.isnan(a).all() for a in given)


def _scale(values: np.ndarray) -> float:
    """Return the largest finite absolute value of some numbers, at least 1."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=1.0))


def difference(given: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> str:
    """Return a sentence on how results differ that show no known mistake."""
    for got, wanted in zip(given, expected, strict=True):
        if wanted.ndim == 0 and got.ndim:
            return f"The result should be one number, yours has the shape {got.shape}."
        if wanted.ndim == 1 and got.ndim < 2 and got.size != wanted.size:
            return f"The result should have {len(wanted)} numbers, yours has {got.size}."
        if got.shape != wanted.shape:
            return f"The result should have the shape {wanted.shape}, yours has {got.shape}."
    plain = all(wanted.ndim == 0 for wanted in expected)
    if any(np.isnan(got).any() for got in given):
        return "Your result is NaN." if plain else "The shape is right, but your result holds NaN."
    gaps = [
        np.abs(np.subtract(g, e, out=np.zeros_like(g), where=g != e))
        for g, e in zip(given, expected, strict=True)
    ]
    worst = max(float(gap.max(initial=0.0)) for gap in gaps)
    if plain:
        which = [gap.item() for gap in gaps].index(worst)
        wanted, got = (_digits(numbers[which].item()) for numbers in (expected, given))
        return f"In one hidden case the number should be {wanted}, yours is {got}."
    return f"The shape is right, the numbers are not: the largest difference is {worst:.3g}."


def _digits(number: float) -> str:
    return f"{number:.0f}" if number.is_integer() else f"{number:.6g}"


def same(a: object, b: object) -> bool:
    """Return whether two arguments are equal to the last digit, tensors in lists and dicts too."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    return bool(a == b)


def in_float32(value: Any) -> Any:
    """Return arguments with float32 tensors in place of float64 ones; all else stays."""
    if isinstance(value, list | tuple):
        return type(value)(map(in_float32, value))
    if isinstance(value, dict):
        return {name: in_float32(each) for name, each in value.items()}
    if not isinstance(value, torch.Tensor) or value.dtype != torch.float64:
        return value
    single = value.detach().float().requires_grad_(value.requires_grad)
    if value.grad is not None:
        single.grad = value.grad.float()
    return single
