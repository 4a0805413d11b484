"""Known mistakes, each with its hint: layer norm, counting parameters."""

from collections.abc import Callable

import torch
from torch import Tensor

from exformer.nn.normalization import layer_norm, rms_norm


def norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Normalize."""
    return layer_norm(x, gain, bias, eps=eps)


def _parts(x: Tensor, dim: int | tuple[int, ...] = -1, *, unbiased: bool = False) -> tuple[Tensor, Tensor]:
    """Return the centered numbers and their variance."""
    return x - x.mean(dim=dim, keepdim=True), x.var(dim=dim, keepdim=True, unbiased=unbiased)


def _over(dims: Callable[[Tensor], int | tuple[int, ...]]) -> Callable[..., Tensor]:
    def mistake(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
        centered, variance = _parts(x, dims(x))
        return gain * centered / torch.sqrt(variance + eps) + bias

    return mistake


def _outside(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    centered, variance = _parts(x)
    return gain * centered / (variance.sqrt() + eps) + bias


def _no_eps(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    centered, variance = _parts(x)
    return gain * centered / variance.sqrt() + bias


def _unbiased(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    centered, variance = _parts(x, unbiased=True)
    return gain * centered / torch.sqrt(variance + eps) + bias


def _by_variance(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    centered, variance = _parts(x)
    return gain * centered / (variance + eps) + bias


def _not_centered(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    return gain * x / torch.sqrt(_parts(x)[1] + eps) + bias


def _root_mean_square(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    return rms_norm(x, gain, eps=eps) + bias


def _bias_first(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    return gain * (norm(x, torch.ones_like(gain), torch.zeros_like(bias), eps) + bias)


def _unbiased_outside(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    centered, variance = _parts(x, unbiased=True)
    return gain * centered / (variance.sqrt() + eps) + bias


def _without(*, gain: bool, bias: bool) -> Callable[..., Tensor]:
    def mistake(x: Tensor, g: Tensor, b: Tensor, eps: float) -> Tensor:
        return norm(x, torch.ones_like(g) if gain else g, torch.zeros_like(b) if bias else b, eps)

    return mistake


#: Wrong layer norms.
NORM: dict[str, Callable[..., Tensor]] = {
    "You divide the sum of squares by d - 1. Layer norm divides it by d: var(unbiased=False).": _unbiased,
    "Your ε is outside the root: add it to the variance, then take the root.": _outside,
    "You divide the sum of squares by d - 1, and your ε is outside the root.": _unbiased_outside,
    "Your ε does nothing: add it to the variance, or equal numbers give 0/0.": _no_eps,
    "You divide by the variance: divide by its root.": _by_variance,
    "You do not subtract the mean.": _not_centered,
    "You do not subtract the mean, neither above nor under the root: this is RMS norm.": _root_mean_square,
    "Your mean and variance run over the first axis: that is batch norm. Take the last.": _over(lambda x: 0),
    "Your mean and variance run over axis 1: take the last axis, -1, however many there are.": (
        _over(lambda x: 1)
    ),
    "Your mean and variance run over the positions: take the last axis, the features.": _over(lambda x: -2),
    "Your mean and variance run over all numbers: each vector has its own, so take the last axis only.": (
        _over(lambda x: tuple(range(x.dim())))
    ),
    "Your mean and variance run over the positions as well: take the last axis only.": (
        _over(lambda x: tuple(range(-min(2, x.dim()), 0)))
    ),
    "Your mean and variance run over all axes but the last: take the last one only.": (
        _over(lambda x: tuple(range(x.dim() - 1)))
    ),
    "The gain is missing.": _without(gain=True, bias=False),
    "The bias is missing.": _without(gain=False, bias=True),
    "Gain and bias are missing.": _without(gain=True, bias=True),
    "You add the bias before the gain multiplies: the bias comes last.": _bias_first,
}


def parameters(d_model: int, n_heads: int, d_ff: int) -> int:
    """Count."""
    return 4 * d_model * (d_model + 1) + 2 * d_model * d_ff + d_ff + d_model + 4 * d_model


def _off(difference: Callable[[int, int, int], float]) -> Callable[[int, int, int], float]:
    return lambda d, h, d_ff: parameters(d, h, d_ff) + difference(d, h, d_ff)


#: Wrong counts, by what they miss or count too often.
PARAMETERS: dict[str, Callable[[int, int, int], float]] = {
    "All biases of the linear maps are missing: four of the attention, two of the feed-forward network.": (
        _off(lambda d, h, d_ff: -5 * d - d_ff)
    ),
    "You are short by 4 · d_model: the biases of the attention, or both norms, are missing.": (
        _off(lambda d, h, d_ff: -4 * d)
    ),
    "The biases of the feed-forward network are missing: d_ff of them, and d_model.": (
        _off(lambda d, h, d_ff: -d - d_ff)
    ),
    "You are short by 2 · d_model: a layer has two norms, each with a gain and a bias.": (
        _off(lambda d, h, d_ff: -2 * d)
    ),
    "Your three matrices make queries, keys and values: the heads are merged by a fourth, with its bias.": (
        _off(lambda d, h, d_ff: -d * d - d)
    ),
    "You give every head matrices of the full width: the heads share it, d_model / n_heads each.": (
        _off(lambda d, h, d_ff: (h - 1) * 4 * (d * d + d))
    ),
    "You give every head queries, keys and values of the full width: the heads share it.": (
        _off(lambda d, h, d_ff: (h - 1) * 3 * (d * d + d))
    ),
    "You count one matrix of the feed-forward network: it goes to d_ff, and back.": (
        _off(lambda d, h, d_ff: -d * d_ff - d)
    ),
    "The feed-forward network is missing.": _off(lambda d, h, d_ff: -2 * d * d_ff - d - d_ff),
    "The attention is missing.": _off(lambda d, h, d_ff: -4 * d * (d + 1)),
    "You count the matrices alone: the biases, and gain and bias of two norms, are missing.": (
        _off(lambda d, h, d_ff: -9 * d - d_ff)
    ),
    "A norm has one gain and one bias for each feature, not one for the whole layer.": (
        _off(lambda d, h, d_ff: -4 * d + 4)
    ),
    "You take d_ff for 4 · d_model: use the number that is given.": lambda d, h, d_ff: parameters(
        d, h, 4 * d
    ),
}
