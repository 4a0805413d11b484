"""Comparing results of exercises: what counts as numbers, when two results agree, how they differ."""

from collections.abc import Sequence

import numpy as np
import torch


def as_numbers(value: object) -> np.ndarray:
    """Make an array of a result: tensors of any kind, lists, single numbers.

    Args:
        value: The result.

    Returns:
        An array of float64.

    Raises:
        TypeError: If it is no number, or a text or complex number that NumPy would convert.
    """
    if isinstance(value, torch.Tensor):
        value = value.detach().to_dense().double().numpy()
    found = np.asarray(value)
    if found.dtype.kind in "USc":
        raise TypeError(f"expected real numbers, got {found.dtype}")
    return found.astype(np.float64)


def all_close(
    given: Sequence[np.ndarray], others: Sequence[np.ndarray], tolerance: float, *, skip_nan: bool = False
) -> bool:
    """Tell whether two lists of results agree; results of another shape do not.

    Args:
        given: The results.
        others: As many, to compare with.
        tolerance: Largest difference that counts as equal, for numbers up to 1; it grows with the largest.
        skip_nan: Whether places are left out where a result is NaN; else NaN agrees with NaN alone.

    Returns:
        True if they agree.
    """
    for a, b in zip(given, others, strict=True):
        if a.shape != b.shape:
            return False
        counts = ~np.isnan(a) if skip_nan else np.ones_like(a, dtype=bool)
        if not np.allclose(a[counts], b[counts], rtol=0.0, atol=tolerance * _scale(b), equal_nan=True):
            return False
    return not skip_nan or not all(np.isnan(a).all() for a in given)


def _scale(values: np.ndarray) -> float:
    """Give the largest finite size among some numbers, at least 1."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=1.0))


def difference(given: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> str:
    """Say how results differ that show no known mistake.

    Args:
        given: The results.
        expected: The right ones.

    Returns:
        One sentence.
    """
    for got, wanted in zip(given, expected, strict=True):
        if got.ndim == wanted.ndim == 1 and len(got) != len(wanted):
            return f"The result should have {len(wanted)} numbers, yours has {len(got)}."
        if got.shape != wanted.shape:
            return f"The result should have the shape {wanted.shape}, yours has {got.shape}."
    if any(np.isnan(got).any() for got in given):
        return "The shape is right, but your result holds NaN."
    worst = max(float(np.abs(g - e).max(initial=0.0)) for g, e in zip(given, expected, strict=True))
    return f"The shape is right, the numbers are not: the largest difference is {worst:.3g}."


def same(a: object, b: object) -> bool:
    """Tell whether two arguments are equal to the last digit, tensors in lists too.

    Args:
        a: One of them.
        b: The other.

    Returns:
        True if they are.
    """
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return torch.equal(a, b)
    return bool(a == b)
