"""The loss: how surprised the model is by the symbol that comes next."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable


def log_probabilities(
    logits: Float[Tensor, "*batch vocab_size"],
) -> Float[Tensor, "*batch vocab_size"]:
    r"""Take the logarithm of the softmax, in float32 where the logits have half precision.

    .. math:: \log p_w = z_w - \log \sum_v e^{z_v}

    Half precision has so few digits that different scores become the same probability.

    Args:
        logits: z, scores of all symbols of the vocabulary.

    Returns:
        The log-probability of each symbol, in nats.
    """
    half = logits.dtype in (torch.bfloat16, torch.float16)
    return F.log_softmax(logits, dim=-1, dtype=torch.float32 if half else None)


def surprise(
    logits: Float[Tensor, "*batch vocab_size"],
    targets: Int64[Tensor, "*batch"],
    *,
    label_smoothing: float = 0.0,
) -> Float[Tensor, "*batch"]:
    r"""Say how little each target was expected.

    .. math::
        s_n = -\sum_w q_n(w) \log p_n(w), \qquad
        q_n(w) = (1 - \varepsilon)\,[\,w = y_n\,] + \frac{\varepsilon}{|V|}

    Args:
        logits: Scores of all symbols of the vocabulary.
        targets: The symbols that came.
        label_smoothing: :math:`\varepsilon`, the share of the target that is spread over the vocabulary.

    Returns:
        The surprise of each target, in nats.

    Raises:
        ValueError: If shapes do not fit, a target is not in the vocabulary, or ε is outside [0, 1).

    Source:
        Szegedy et al. 2016, section 7, for the smoothing; Vaswani et al. 2017, section 5.4.
    """
    _check(logits, targets, targets, label_smoothing)
    return _surprise(log_probabilities(logits), targets, label_smoothing)


def cross_entropy(
    logits: Float[Tensor, "*batch vocab_size"],
    targets: Int64[Tensor, "*batch"],
    *,
    pad_id: int | None = None,
    label_smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    r"""Average the surprise over all targets that are not padding.

    .. math::
        L = \frac1N \sum_{n:\, y_n \ne \mathrm{pad}} s_n

    Args:
        logits: Scores of all symbols of the vocabulary.
        targets: The symbols that came.
        pad_id: Targets with this id do not count; None: all count.
        label_smoothing: :math:`\varepsilon`, the share of the target that is spread over the vocabulary.

    Returns:
        The loss in nats a token.

    Raises:
        ValueError: If nothing but padding is there, shapes do not fit, a target is not in the vocabulary,
            or ε is outside [0, 1).

    Source:
        Szegedy et al. 2016, section 7, for the smoothing; Vaswani et al. 2017, section 5.4.
    """
    real = targets if pad_id is None else targets[targets != pad_id]
    _check(logits, targets, real, label_smoothing)
    if real.numel() == 0:
        raise ValueError("there is no target but padding: the mean over no tokens is not defined")
    rows, flat = logits.reshape(-1, logits.size(-1)), targets.flatten()
    counts = torch.ones_like(flat, dtype=torch.bool) if pad_id is None else flat != pad_id
    return _MeanSurprise.apply(rows, flat.where(counts, 0), counts, label_smoothing)


class _MeanSurprise(torch.autograd.Function):
    """Average `surprise` over the targets that count.

    Autograd would find the same gradient, (p - q) / N, with more passes over the logits, the largest tensor
    of a training step.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx, logits: Tensor, targets: Tensor, counts: Tensor, label_smoothing: float
    ) -> Tensor:
        log_p = log_probabilities(logits)  # (n, vocab_size)
        ctx.save_for_backward(log_p, targets, counts)
        ctx.label_smoothing, ctx.dtype = label_smoothing, logits.dtype
        return _surprise(log_p, targets, label_smoothing)[counts].mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, slope: Tensor) -> tuple[Tensor, None, None, None]:
        log_p, targets, counts = ctx.saved_tensors
        difference = log_p.exp()  # p - q, in place from here on
        if ctx.label_smoothing:
            difference -= ctx.label_smoothing / log_p.size(-1)
        of_target = difference.new_full((len(targets), 1), ctx.label_smoothing - 1)
        difference.scatter_add_(-1, targets[:, None], of_target)
        difference *= (slope * counts / counts.sum())[:, None]
        return difference.to(ctx.dtype), None, None, None


def _surprise(log_p: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
    of_target = log_p.gather(-1, targets[..., None]).squeeze(-1)  # (*batch)
    if not label_smoothing:  # 0 times the -inf of an impossible symbol would be nan
        return -of_target
    return -(1 - label_smoothing) * of_target - label_smoothing * log_p.mean(dim=-1)


def _check(logits: Tensor, targets: Tensor, real: Tensor, label_smoothing: float) -> None:
    """Refuse what has no loss; ``real`` are the targets that count."""
    if not 0.0 <= label_smoothing < 1.0:
        raise ValueError(f"label_smoothing must lie in [0, 1), got {label_smoothing}")
    if logits.shape[:-1] != targets.shape:
        raise ValueError(
            f"logits must have the targets' shape {tuple(targets.shape)} and the vocabulary's, "
            f"got {tuple(logits.shape)}"
        )
    vocab_size = logits.size(-1)
    if real.numel() and (real.min() < 0 or real.max() >= vocab_size):
        raise ValueError(
            f"targets must lie from 0 to {vocab_size - 1} (vocab_size {vocab_size}), "
            f"got {real.min().item()} to {real.max().item()}"
        )
