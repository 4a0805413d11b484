"""Gradient clipping: the longest gradient with which a step may be taken."""

from collections.abc import Iterable

from torch import nn

from exformer.training.config import check_clip_norm


def clip_gradients(parameters: Iterable[nn.Parameter], *, max_norm: float) -> None:
    r"""Scale the gradient down to a largest norm, in place; a shorter one stays as it is.

    .. math:: g \leftarrow \min\left(1, \frac{c}{\lVert g \rVert}\right) g

    All parameters are one vector, so that the direction of the step stays the same.

    Args:
        parameters: Those of the model.
        max_norm: :math:`c`.

    Raises:
        ValueError: If ``max_norm`` is not above 0, or infinite.

    Source:
        Pascanu, Mikolov and Bengio 2013, algorithm 1.

    >>> import torch
    >>> weight = nn.Parameter(torch.zeros(2))
    >>> weight.grad = torch.tensor([3.0, 4.0])
    >>> clip_gradients([weight], max_norm=1.0)
    >>> weight.grad
    tensor([0.6000, 0.8000])
    """
    check_clip_norm(max_norm)
    nn.utils.clip_grad_norm_(parameters, max_norm)
