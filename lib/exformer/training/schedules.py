"""Learning rate schedules: a linear warm-up, then a decay by inverse square root, cosine or straight line."""

import math
from collections.abc import Callable

#: The learning rate of a step; the first step is number 1.
Schedule = Callable[[int], float]


def inverse_sqrt_schedule(step: int, *, peak: float, warmup: int) -> float:
    r"""Return the learning rate of a linear warm-up and a decay with the inverse square root of the step.

    .. math:: lr = peak \cdot \min\left(\frac{step}{warmup},\, \sqrt{\frac{warmup}{step}}\right)

    Args:
        step: The step that is about to be taken, counted from 1.
        peak: The highest learning rate, reached at step ``warmup``.
        warmup: Number of warm-up steps, at least 1.

    Returns:
        The learning rate.

    Raises:
        ValueError: If step or warmup is below 1.

    Source:
        Vaswani et al. 2017, equation 3, with the peak instead of the width.

    >>> [inverse_sqrt_schedule(step, peak=1.0, warmup=4) for step in (1, 4, 16)]
    [0.25, 1.0, 0.5]
    """
    if step < 1 or warmup < 1:
        raise ValueError(f"steps are counted from 1 and warmup is at least 1, got {step} and {warmup}")
    return peak * min(step / warmup, math.sqrt(warmup / step))


def cosine_schedule(step: int, *, peak: float, warmup: int, total: int, floor: float = 0.1) -> float:
    r"""Return the learning rate of a linear warm-up and a decay along half a cosine wave.

    .. math::
        lr = peak \cdot \left(f + (1 - f)\, \frac{1 + \cos(\pi\, r)}{2}\right), \qquad
        r = \frac{step - warmup}{total - warmup}

    Args:
        step: The step that is about to be taken, counted from 1.
        peak: The highest learning rate, reached at step ``warmup``.
        warmup: Number of warm-up steps, at least 1.
        total: Number of steps in all, more than ``warmup``.
        floor: :math:`f`, the fraction of the peak that is left at the end.

    Returns:
        The learning rate.

    Raises:
        ValueError: If the steps are not in the order 1 <= warmup < total, or step is outside 1..total.

    Source:
        Loshchilov and Hutter 2017, equation 5, without restarts.

    >>> [round(cosine_schedule(step, peak=1.0, warmup=2, total=6), 2) for step in (1, 2, 4, 6)]
    [0.5, 1.0, 0.55, 0.1]
    """
    _check_steps(step, warmup=warmup, total=total)
    if step < warmup:
        return peak * step / warmup
    wave = (1 + math.cos(math.pi * (step - warmup) / (total - warmup))) / 2
    return peak * (floor + (1 - floor) * wave)


def linear_schedule(step: int, *, peak: float, warmup: int, total: int) -> float:
    r"""Return the learning rate of a linear warm-up and a linear decay.

    The line would reach zero one step after the last.

    .. math:: lr = peak \cdot \min\left(\frac{step}{warmup},\,
              \frac{total - step + 1}{total - warmup + 1}\right)

    Args:
        step: The step that is about to be taken, counted from 1.
        peak: The highest learning rate, reached at step ``warmup``.
        warmup: Number of warm-up steps, at least 1.
        total: Number of steps in all, more than ``warmup``.

    Returns:
        The learning rate.

    Raises:
        ValueError: If the steps are not in the order 1 <= warmup < total, or step is outside 1..total.

    Source:
        Devlin et al. 2019, appendix A.2.

    >>> [linear_schedule(step, peak=1.0, warmup=2, total=4) for step in (1, 2, 4)]
    [0.5, 1.0, 0.3333333333333333]
    """
    _check_steps(step, warmup=warmup, total=total)
    return peak * min(step / warmup, (total - step + 1) / (total - warmup + 1))


def _check_steps(step: int, *, warmup: int, total: int) -> None:
    if not 1 <= warmup < total or not 1 <= step <= total:
        raise ValueError(
            f"expected 1 <= warmup < total and 1 <= step <= total, got warmup {warmup}, step {step}, "
            f"total {total}: warm up for fewer steps, or train longer"
        )
