"""Whole numbers that are handed in: sizes, counts, seeds. Every package may import this; it imports none."""

from numbers import Real
from operator import index
from typing import SupportsIndex


def whole_number(name: str, value: SupportsIndex, *, least: int, most: int | None = None) -> int:
    """Return a whole number as Python's own, also where NumPy or PyTorch made it; refuse what is none.

    Args:
        name: Of the argument, for the message.
        value: What was given for it.
        least: The smallest number that is allowed.
        most: The largest; None: there is none.

    Raises:
        ValueError: If it is no whole number, too small or too large.

    >>> import numpy as np
    >>> whole_number("n_layers", np.int64(3), least=1)
    3
    >>> whole_number("n_layers", 3.0, least=1)
    Traceback (most recent call last):
        ...
    ValueError: n_layers must be a whole number, got 3.0
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = index(value)
    except TypeError:
        raise ValueError(f"{name} must be a whole number, got {value!r}") from None
    if most is not None and not least <= number <= most:
        raise ValueError(f"{name} must lie from {least:,} to {most:,}, got {number}")
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


def real_number(name: str, value: object) -> float:
    """Return a real number as Python's own, also if it comes from NumPy.

    Args:
        name: Name of the argument, for the message.
        value: Its value.

    Raises:
        ValueError: If it is not a number.

    >>> real_number("top_p", "0.9")
    Traceback (most recent call last):
        ...
    ValueError: top_p must be a number, got '0.9'
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {value!r}")
    return float(value)
