"""Known mistakes, each with its hint: causes of sick curves that are confused, accumulated gradients."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from exformer_lessons.exercises.grading import Mistake

#: Adds up the nats of a micro-batch; returns the sum and the number of its tokens.
LossSum = Callable[[Tensor, Any], tuple[Tensor, int]]

_LEAKS = "Both lie below the floor. "
_NEAR_ZERO = _LEAKS + "Which falls to 0 within a few points, and which model is well when measured correctly?"

#: What tells two causes apart that are easily confused, in either order.
APART: dict[frozenset[str], str] = {
    frozenset(pair): hint
    for pair, hint in {
        ("no causal mask", "targets not shifted"): (
            _LEAKS + "Who is asked for the token that it has just read begins low. Look at the first point."
        ),
        ("no causal mask", "padding counted"): _NEAR_ZERO,
        ("targets not shifted", "padding counted"): _NEAR_ZERO,
        ("leaking split", "padding counted"): (
            _LEAKS + "Measured correctly, one of the two models is as good as a healthy one: only its "
            "number is wrong."
        ),
        ("no causal mask", "leaking split"): (
            _LEAKS
            + "Copies are learned by heart, which is slow. A look at the next token is learned at once."
        ),
        ("targets not shifted", "leaking split"): (
            _LEAKS
            + "Copies must be learned by heart, which is slow, and what is learned are sentences. Look "
            "at the sample."
        ),
        ("overfitting", "leaking split"): (
            "Both learn a few sentences by heart. Does the validation loss turn, or fall with the other?"
        ),
        ("learning rate too high", "learning rate too low"): (
            "Both end too high. Steps that are too small make a smooth, slow curve; steps that are too large "
            "fall at once, and then wander."
        ),
        ("targets shifted twice", "learning rate too low"): (
            "Both end too high. A model that learned something else is much worse when measured correctly."
        ),
        ("targets shifted twice", "learning rate too high"): (
            "Both end too high. A model that learned something else is much worse when measured correctly."
        ),
        ("dropout in evaluation", "overfitting"): (
            "Does the validation loss turn upward? Or is it never twice the same?"
        ),
        ("dropout in evaluation", "learning rate too low"): (
            "Both end a little too high. Evaluate twice: are the two numbers equal?"
        ),
        ("dropout in evaluation", "learning rate too high"): (
            "Both end a little too high. Evaluate twice: are the two numbers equal?"
        ),
        ("padding counted", "mean of means"): (
            "One of these two means is a little off, the other is far below the floor."
        ),
    }.items()
}

#: How a cause is seen, where nothing else is known of the confusion.
SIGNS = {
    "no causal mask": "Its loss falls to 0 at once, and what it generates is nonsense.",
    "targets not shifted": "Its loss begins low, and it repeats what it has read.",
    "targets shifted twice": "It is asked for the token after the next, and skips words when it generates.",
    "padding counted": "Its loss is early below the floor, and the model is well when measured correctly.",
    "dropout in evaluation": "Two evaluations of the same model differ.",
    "learning rate too high": "It falls at once, and then wanders, far too high.",
    "learning rate too low": "It is smooth, and slow from the beginning.",
    "leaking split": "Both losses fall together below the floor, and new sentences are far worse.",
}


def gradient(w: Tensor, micro_batches: Sequence[Any], loss_sum: LossSum, limit: float) -> Tensor:
    """Return the gradient of the mean over all tokens of all micro-batches, clipped once."""
    return clipped(sum(_sums(w, micro_batches, loss_sum)) / _n_tokens(w, micro_batches, loss_sum), limit)


def clipped(vector: Any, limit: float) -> Tensor:
    """Scale a gradient down to a largest norm."""
    return vector * min(1.0, limit / float(vector.norm()))


def _sums(w: Tensor, micro_batches: Sequence[Any], loss_sum: LossSum) -> list[Tensor]:
    return [torch.autograd.grad(loss_sum(w, micro_batch)[0], w)[0] for micro_batch in micro_batches]


def _counts(w: Tensor, micro_batches: Sequence[Any], loss_sum: LossSum) -> list[int]:
    return [loss_sum(w, micro_batch)[1] for micro_batch in micro_batches]


def _n_tokens(w: Tensor, micro_batches: Sequence[Any], loss_sum: LossSum) -> int:
    return sum(_counts(w, micro_batches, loss_sum))


def _stale(w: Tensor) -> Any:
    return 0.0 if w.grad is None else w.grad


Case = tuple[Tensor, Sequence[Any], LossSum, float]


def _combined(how: Callable[..., Any]) -> Callable[..., Any]:
    """Make a mistake of what is done with the micro-batches' sums, their numbers of tokens and the limit."""
    return lambda w, micro_batches, loss_sum, limit: how(
        _sums(w, micro_batches, loss_sum), _counts(w, micro_batches, loss_sum), limit
    )


def _mean(gradients: list[Tensor]) -> Any:
    return sum(gradients) / len(gradients)


def _running(gradients: list[Tensor], counts: list[int]) -> Any:
    """Divide what has been added up at each micro-batch again."""
    total: Any = 0.0
    for i, each in enumerate(gradients):
        total = (total + each) / sum(counts[: i + 1])
    return total


#: Wrong ways to add up the gradients of several micro-batches.
ACCUMULATION: dict[str, Mistake] = {
    "You divide by the number of micro-batches although their tokens are not equally many: add the sums, "
    "divide once by all tokens.": (
        _combined(lambda g, n, c: clipped(_mean([a / b for a, b in zip(g, n, strict=True)]), c)),
        _combined(lambda g, n, c: clipped(_mean(g), c)),
    ),
    "You add the means of the micro-batches: add the sums, and divide once by all tokens.": _combined(
        lambda g, n, c: clipped(sum(a / b for a, b in zip(g, n, strict=True)), c)
    ),
    "You drop the last micro-batch: it also counts, however short it is.": (
        _combined(lambda g, n, c: clipped(sum(g[:-1]) / sum(n[:-1]), c)),
        _combined(lambda g, n, c: clipped(sum(g[:-1]) / sum(n), c)),
        _combined(lambda g, n, c: clipped(_mean([a / b for a, b in zip(g[:-1], n[:-1], strict=True)]), c)),
    ),
    "You clip before you add: clip the sum of all micro-batches, once.": (
        _combined(lambda g, n, c: sum(clipped(a / sum(n), c) for a in g)),
        _combined(lambda g, n, c: sum(clipped(a, c) for a in g) / sum(n)),
        _combined(lambda g, n, c: _mean([clipped(a / b, c) for a, b in zip(g, n, strict=True)])),
        _combined(lambda g, n, c: sum(clipped(a / b, c) for a, b in zip(g, n, strict=True))),
        _combined(lambda g, n, c: sum(clipped(a / b / len(g), c) for a, b in zip(g, n, strict=True))),
        _combined(lambda g, n, c: sum(b * clipped(a / b, c) for a, b in zip(g, n, strict=True)) / sum(n)),
    ),
    "You clip the sum and then divide: divide first, the limit is for the mean.": _combined(
        lambda g, n, c: clipped(sum(g), c) / sum(n)
    ),
    "You do not divide: the mean is the sum over the number of all tokens.": _combined(
        lambda g, n, c: clipped(sum(g), c)
    ),
    "You do not clip: a gradient that is longer than the limit is scaled down to it.": _combined(
        lambda g, n, c: sum(g) / sum(n)
    ),
    "You scale every gradient to the limit: one that is shorter stays as it is.": _combined(
        lambda g, n, c: (lambda v: v * c / v.norm())(sum(g) / sum(n))
    ),
    "You clip each entry: scale the whole gradient by one factor, so that its direction stays.": _combined(
        lambda g, n, c: (torch.stack(g).sum(dim=0) / sum(n)).clamp(-c, c)
    ),
    "You keep only the last micro-batch's gradient: zero it before the first one, not before each.": (
        _combined(lambda g, n, c: clipped(g[-1] / sum(n), c)),
        _combined(lambda g, n, c: clipped(g[-1] / n[-1], c)),
    ),
    "You divide each sum by the tokens so far, which are not yet all: divide once, after the last.": (
        _combined(lambda g, n, c: clipped(sum(a / sum(n[: i + 1]) for i, a in enumerate(g)), c)),
        _combined(lambda g, n, c: clipped(_running(g, n), c)),
    ),
    "You divide by the tokens of the last micro-batch: divide by those of all micro-batches.": _combined(
        lambda g, n, c: clipped(sum(g) / n[-1], c)
    ),
    "You count the longest micro-batch for each: divide by the tokens that there are.": _combined(
        lambda g, n, c: clipped(sum(g) / (len(n) * max(n)), c)
    ),
    "You add to the gradient of an earlier step: w.grad must be zeroed first.": (
        lambda w, micro_batches, loss_sum, c: clipped(
            _stale(w) + sum(_sums(w, micro_batches, loss_sum)) / _n_tokens(w, micro_batches, loss_sum), c
        ),
        lambda w, micro_batches, loss_sum, c: clipped(
            (_stale(w) + sum(_sums(w, micro_batches, loss_sum))) / _n_tokens(w, micro_batches, loss_sum), c
        ),
    ),
    "The sign is turned: return the gradient, not the step.": _combined(
        lambda g, n, c: -clipped(sum(g) / sum(n), c)
    ),
}
