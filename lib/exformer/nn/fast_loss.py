"""The mean of :func:`~exformer.nn.loss.nll` in one operation: few passes over the largest tensor.

Autograd would find the same gradient, (p - q) / N, with more passes over the logits. Measured in turns with
the plain ``nll(…)[real].mean()``, forward and backward on one thread, as a fraction of its time: 0.5 at 2,048
targets and a vocabulary of 5,259 with label smoothing, 0.7 without, 1.1 at 768 targets and 65 tokens, where
both take half a millisecond. The gradients differ in the last bit, so that all sizes use this one.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.autograd.function import FunctionCtx


def fused_mean_nll(
    logits: Float[Tensor, "batch vocab_size"],
    targets: Int64[Tensor, " batch"],
    counts: Bool[Tensor, " batch"],
    label_smoothing: float,
) -> Float[Tensor, ""]:
    """Average the negative log-likelihood over the targets that count; all must be in the vocabulary."""
    return _MeanNLL.apply(logits, targets, counts, label_smoothing)


class _MeanNLL(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx, logits: Tensor, targets: Tensor, counts: Tensor, label_smoothing: float
    ) -> Tensor:
        wide = torch.promote_types(logits.dtype, torch.float32)
        log_p = F.log_softmax(logits, dim=-1, dtype=wide)  # (batch, vocab_size)
        ctx.save_for_backward(log_p, targets, counts)
        ctx.label_smoothing, ctx.dtype = label_smoothing, logits.dtype
        nll = -log_p.gather(-1, targets[:, None]).squeeze(-1)  # (batch)
        if label_smoothing:
            nll = (1 - label_smoothing) * nll - label_smoothing * log_p.mean(dim=-1)
        if nll.device.type == "cpu":
            return nll[counts].mean()
        return nll.where(counts, 0).sum() / counts.sum()  # how many they are, only the device knows

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None, None, None]:
        if torch.is_grad_enabled():  # create_graph=True; what is computed in place has no derivative
            raise RuntimeError(
                "cross_entropy has a first derivative only, got create_graph=True: for a second one, take "
                "the mean of nll(logits, targets)"
            )
        log_p, targets, counts = ctx.saved_tensors
        difference = log_p.exp()  # p - q, in place from here on
        if ctx.label_smoothing:
            difference -= ctx.label_smoothing / log_p.size(-1)
        of_target = difference.new_full((len(targets), 1), ctx.label_smoothing - 1)
        difference.scatter_add_(-1, targets[:, None], of_target)
        difference *= (grad * counts / counts.sum())[:, None]
        return difference.to(ctx.dtype), None, None, None
