"""The loss: the negative log-likelihood of the token that comes next."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from exformer.nn.fast_loss import fused_mean_nll

_IGNORED = -100  # PyTorch's ignore_index, which other libraries write over targets that are not to count


def log_probabilities(
    logits: Float[Tensor, "*batch vocab_size"],
) -> Float[Tensor, "*batch vocab_size"]:
    r"""Take the logarithm of the softmax, in float32 where the logits have half precision.

    .. math:: \log p_w = z_w - \log \sum_v e^{z_v}

    Half precision has so few digits that different scores become the same probability.

    Returns:
        The log-probability of each token of the vocabulary, in nats.
    """
    return F.log_softmax(logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))


def nll(
    logits: Float[Tensor, "*batch vocab_size"],
    targets: Int64[Tensor, "*batch"],
    *,
    label_smoothing: float = 0.0,
) -> Float[Tensor, "*batch"]:
    r"""Compute the negative log-likelihood of each target.

    .. math::
        \ell_n = -\sum_w q_n(w) \log p_n(w), \qquad
        q_n(w) = (1 - \varepsilon)\,[\,w = y_n\,] + \frac{\varepsilon}{|V|}

    The fast form, of the mean alone, is :func:`~exformer.nn.fast_loss.fused_mean_nll`.

    Args:
        logits: Scores of all tokens of the vocabulary.
        targets: The right tokens.
        label_smoothing: :math:`\varepsilon`, the fraction of the target that is spread over the vocabulary.

    Returns:
        One number per target, in nats.

    Raises:
        ValueError: If shapes do not fit, a target is not in the vocabulary, or ε is outside [0, 1).

    Source:
        Szegedy et al. 2016, section 7, for the smoothing; Vaswani et al. 2017, section 5.4.
    """
    _check(logits, targets, None, label_smoothing)
    log_p = log_probabilities(logits)  # (*batch, vocab_size)
    of_targets = -log_p.gather(-1, targets[..., None]).squeeze(-1)  # (*batch)
    if not label_smoothing:  # 0 times the -inf of an impossible token would be nan
        return of_targets
    return (1 - label_smoothing) * of_targets - label_smoothing * log_p.mean(dim=-1)


def cross_entropy(
    logits: Float[Tensor, "*batch vocab_size"],
    targets: Int64[Tensor, "*batch"],
    *,
    pad_id: int | None = None,
    label_smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    r"""Average the negative log-likelihood over all targets that count.

    .. math::
        L = \frac1N \sum_{n:\, y_n \ne \mathrm{pad}} \ell_n

    It is ``nll(logits, targets)[counts].mean()``, with a gradient that takes fewer passes.

    Args:
        logits: Scores of all tokens of the vocabulary.
        targets: The right tokens. One of -100 never counts, as in ``torch.nn.functional.cross_entropy``.
        pad_id: Targets with this id do not count either; None: all others count.
        label_smoothing: :math:`\varepsilon`, the fraction of the target that is spread over the vocabulary.

    Returns:
        The loss in nats per token.

    Raises:
        ValueError: If no target counts, shapes do not fit, a target is not in the vocabulary, or ε is outside
            [0, 1). On a GPU the targets are not looked at, because that would wait for the device: there, the
            loss of no targets is NaN, and PyTorch stops at a target outside of the vocabulary.
        RuntimeError: In a backward pass with ``create_graph=True``: there is no second derivative.

    Source:
        Szegedy et al. 2016, section 7, for the smoothing; Vaswani et al. 2017, section 5.4.

    >>> import torch
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 0.0], [9.0, 0.0]])
    >>> cross_entropy(logits, torch.tensor([1, 1, 0]), pad_id=0)
    tensor(1.4100)
    >>> cross_entropy(logits, torch.tensor([1, 1, -100]))
    tensor(1.4100)
    """
    counts = targets != _IGNORED if pad_id is None else (targets != _IGNORED) & (targets != pad_id)
    _check(logits, targets, counts, label_smoothing)
    if targets.device.type == "cpu" and not counts.any():
        raise ValueError("no target counts: the mean over no tokens is not defined")
    rows, flat = logits.reshape(-1, logits.size(-1)), targets.where(counts, 0).flatten()
    return fused_mean_nll(rows, flat, counts.flatten(), label_smoothing)


def _check(logits: Tensor, targets: Tensor, counts: Tensor | None, label_smoothing: float) -> None:
    """Check shapes, and on a CPU the targets; ``counts`` says which ones count, None: all."""
    if not 0.0 <= label_smoothing < 1.0:
        raise ValueError(f"label_smoothing must lie in [0, 1), got {label_smoothing}")
    if logits.shape[:-1] != targets.shape:
        raise ValueError(
            f"logits must have the targets' shape {tuple(targets.shape)} and the vocabulary's, "
            f"got {tuple(logits.shape)}"
        )
    if targets.device.type != "cpu":  # to look at numbers is to wait for the device
        return
    real, vocab_size = targets if counts is None else targets[counts], logits.size(-1)
    if real.numel() and (real.min() < 0 or real.max() >= vocab_size):
        raise ValueError(
            f"targets must lie from 0 to {vocab_size - 1} (vocab_size {vocab_size}), "
            f"got {real.min().item()} to {real.max().item()}; cross_entropy leaves "
            "out targets of -100, and padding with pad_id"
        )
