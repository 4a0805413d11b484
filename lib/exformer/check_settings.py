"""Checks of settings: integers, numbers, seeds, choices. Every package may import this; it imports none."""

from collections.abc import Mapping
from numbers import Real
from operator import index
from typing import SupportsIndex


def check_integer(name: str, value: SupportsIndex, *, least: int, most: int | None = None) -> int:
    """Check an integer, and return it as Python's own, also if it comes from NumPy or PyTorch.

    Args:
        name: Name of the argument, for the message.
        value: Its value.
        least: The smallest allowed value.
        most: The largest allowed value; None for no limit.

    Raises:
        ValueError: If it is not an integer, too small or too large.

    >>> import numpy as np
    >>> check_integer("n_layers", np.int64(3), least=1)
    3
    >>> check_integer("n_layers", 3.0, least=1)
    Traceback (most recent call last):
        ...
    ValueError: n_layers must be an integer, got 3.0
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = index(value)
    except TypeError:
        raise ValueError(f"{name} must be an integer, got {value!r}") from None
    if most is not None and not least <= number <= most:
        raise ValueError(f"{name} must lie from {least:,} to {most:,}, got {number}")
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


def check_real(name: str, value: object) -> float:
    """Check a real number, and return it as Python's own, also if it comes from NumPy.

    Args:
        name: Name of the argument, for the message.
        value: Its value.

    Raises:
        ValueError: If it is not a number.

    >>> check_real("top_p", "0.9")
    Traceback (most recent call last):
        ...
    ValueError: top_p must be a number, got '0.9'
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {value!r}")
    return float(value)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Check that a setting is one of its choices.

    >>> check_choice("activation", "tanh", ("relu", "gelu"))
    Traceback (most recent call last):
        ...
    ValueError: activation must be one of relu, gelu, got 'tanh'
    """
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def check_choices(config: object, choices: Mapping[str, tuple[str, ...]]) -> None:
    """Check that each setting of a configuration is one of its choices."""
    for name, known in choices.items():
        check_choice(name, getattr(config, name), known)


def check_integers(config: object, least: Mapping[str, int]) -> None:
    """Check integers of a configuration and their least values; integers of NumPy become Python's."""
    for name, low in least.items():
        object.__setattr__(config, name, check_integer(name, getattr(config, name), least=low))


def check_seed(config: object, name: str) -> None:
    """Check that a setting is a seed that NumPy takes; an integer of NumPy becomes Python's."""
    object.__setattr__(config, name, check_integer(name, getattr(config, name), least=0, most=2**32 - 1))
