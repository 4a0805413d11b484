"""Weights of a few bits: each block of numbers is an integer times one scale."""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from exformer.models.decoder_lm import DecoderLM

#: How many numbers share a scale, by name; a row of a weight matrix makes one output.
BLOCKS = ("tensor", "row", "group")


def round_weights(w: Tensor, *, bits: int, block: str, group: int = 32) -> Tensor:
    r"""Round a matrix to integers of some bits, times a scale for each block of numbers.

    .. math:: \hat w = s \cdot \mathrm{round}(w / s), \qquad s = \max |w| / (2^{b-1} - 1)

    >>> round_weights(torch.tensor([[7.0, 2.6], [0.7, 0.16]]), bits=4, block="tensor").tolist()
    [[7.0, 3.0], [1.0, 0.0]]
    >>> round_weights(torch.tensor([[7.0, 2.6]]), bits=4, block="row").tolist()
    [[7.0, 3.0]]
    """
    blocks = w.reshape(-1, _width(w, block, group))
    scale = blocks.abs().amax(dim=1, keepdim=True) / (2 ** (bits - 1) - 1)
    return (scale * (blocks / scale.clamp(min=1e-30)).round()).reshape(w.shape)


def _width(w: Tensor, block: str, group: int = 32) -> int:
    """Return how many numbers of a matrix share a scale."""
    widths = {"tensor": w.numel(), "row": w.size(1), "group": group}
    if block not in widths:
        raise ValueError(f"block must be one of {', '.join(BLOCKS)}, got {block!r}")
    return widths[block]


@torch.no_grad()
def rounded_model(model: nn.Module, *, bits: int, block: str) -> nn.Module:
    """Return a copy of a model with every matrix rounded."""
    model = deepcopy(model)
    for weight in model.parameters():
        if weight.dim() == 2:
            weight.copy_(round_weights(weight, bits=bits, block=block))
    return model


@torch.no_grad()
def with_one_large_channel(model: DecoderLM, *, factor: float = 20.0) -> DecoderLM:
    """Return a copy that computes the same: a hidden unit of each network times a factor, then divided by it.

    The activation must be the square of ReLU: the unit's output grows by the square of the factor.
    """
    model, channel = deepcopy(model), 7
    for layer in model.layers:
        network: Any = layer.feed_forward  # type: ignore[missing-attribute]
        network.w_1.weight[channel] *= factor
        network.w_1.bias[channel] *= factor
        network.w_2.weight[:, channel] /= factor**2
    return model


@torch.no_grad()
def divergence(model: nn.Module, other: nn.Module, texts: Tensor) -> float:
    """Return the mean KL divergence from a model to another, in nats per token of some texts."""
    p, q = (each(texts).double().log_softmax(dim=-1) for each in (model, other))
    return (p.exp() * (p - q)).sum(dim=-1).mean().item()
