"""Known mistakes, each with its hint: DPO's loss, and the loss of a policy gradient over a group."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from exformer.training.preferences import completion_mask, dpo_loss, group_advantages
from exformer_lessons.exercises.grading import Mistake


def pair_loss(
    chosen: Tensor, rejected: Tensor, reference_chosen: Tensor, reference_rejected: Tensor, beta: float
) -> Tensor:
    """Return DPO's loss of a pair, from the log-probabilities of its tokens."""
    sums = [part.sum()[None] for part in (chosen, rejected, reference_chosen, reference_rejected)]
    return dpo_loss(*sums[:2], reference_chosen=sums[2], reference_rejected=sums[3], beta=beta)


def _pair(
    how: Callable[..., Any] = lambda m, b: -F.logsigmoid(b * m),
    margin: Callable[..., Any] = lambda w, x, rw, rx: (w - rw) - (x - rx),
    total: Callable[[Tensor], Tensor] = torch.sum,
) -> Callable[..., Any]:
    """Make a mistake of what is done with the margin and beta, of the margin, or of the tokens."""
    return lambda w, x, rw, rx, beta: how(margin(*map(total, (w, x, rw, rx))), beta)


#: Wrong ways to compute DPO's loss.
DPO: dict[str, Mistake] = {
    "You leave the reference out: each log-probability is compared with that of the model before training.": (
        _pair(margin=lambda w, x, rw, rx: w - x)
    ),
    "You use the preferred text alone: the loss compares it with the rejected one.": (
        _pair(margin=lambda w, x, rw, rx: w - rw),
        lambda w, x, rw, rx, beta: -w.sum(),
        lambda w, x, rw, rx, beta: -w.mean(),
    ),
    "The margin has the wrong sign: the loss must fall when the preferred text becomes more probable.": (
        _pair(margin=lambda w, x, rw, rx: (x - rx) - (w - rw))
    ),
    "The loss has the wrong sign: it is minus the logarithm, so that it is above 0.": (
        _pair(how=lambda m, b: F.logsigmoid(b * m))
    ),
    "You average over the tokens: the log-probability of a text is the sum over its tokens.": (
        _pair(total=torch.mean)
    ),
    "Beta is outside of the sigmoid: it multiplies the margin.": (
        _pair(how=lambda m, b: -b * F.logsigmoid(m)),
        _pair(how=lambda m, b: -F.logsigmoid(m) / b),
    ),
    "Beta is missing: it multiplies the margin.": _pair(how=lambda m, b: -F.logsigmoid(m)),
    "Beta multiplies the whole margin: set parentheses around the difference of the two log-ratios.": (
        lambda w, x, rw, rx, b: -F.logsigmoid(b * (w.sum() - rw.sum()) - (x.sum() - rx.sum())),
        lambda w, x, rw, rx, b: -F.logsigmoid((w.sum() - rw.sum()) - b * (x.sum() - rx.sum())),
    ),
    "You divide by beta: it multiplies the margin.": _pair(how=lambda m, b: -F.logsigmoid(m / b)),
    "The sigmoid is missing: the loss is minus the logarithm of the sigmoid of beta times the margin.": (
        _pair(how=lambda m, b: -b * m)
    ),
    "The logarithm is missing: the loss is minus the logarithm of the sigmoid.": (
        _pair(how=lambda m, b: -torch.sigmoid(b * m)),
        _pair(how=lambda m, b: 1 - torch.sigmoid(b * m)),
        _pair(how=lambda m, b: torch.sigmoid(b * m)),
    ),
    "Your references have the wrong signs, or are exchanged: each is subtracted from its own text's.": (
        _pair(margin=lambda w, x, rw, rx: (w - rx) - (x - rw))
    ),
    "You compare probabilities: the margin is a difference of log-ratios.": (
        _pair(margin=lambda w, x, rw, rx: (w - rw).exp() - (x - rx).exp())
    ),
}


#: Said of a loss that is right where its sigmoid is not 0.
NOT_STABLE = "But at -200 the sigmoid is 0 in float32, and its logarithm -inf: torch has logsigmoid."

#: Wrong, or not stable, where the margin is large.
FAR: dict[str, Mistake] = {
    NOT_STABLE: _pair(how=lambda m, b: -torch.sigmoid(b * m).log()),
    "You cut the margin or the sigmoid off: the loss of a pair that is wrong by far is as large as its "
    "margin.": (
        *(
            _pair(how=lambda m, b, e=e: -torch.sigmoid(b * m).clamp(min=e).log())
            for e in (1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12)
        ),
        *(
            _pair(how=lambda m, b, e=e: -(torch.sigmoid(b * m) + e).log())
            for e in (1e-7, 1e-8, 1e-9, 1e-10, 1e-12)
        ),
        *(
            _pair(how=lambda m, b, most=most: -F.logsigmoid((b * m).clamp(-most, most)))
            for most in (10.0, 20.0, 30.0, 50.0, 100.0)
        ),
    ),
}


def group_loss(log_p: Tensor, ids: Tensor, rewards: Tensor, prompt_length: int, eos_id: int) -> Tensor:
    """Return the loss of a policy gradient: minus the mean of advantage times log-probability."""
    mask = completion_mask(ids, prompt_length=prompt_length, eos_id=eos_id)
    return -(group_advantages(rewards[None])[0] * log_p.where(mask, 0).sum(dim=1)).mean()


def _advantages(r: Tensor) -> Tensor:
    return group_advantages(r[None])[0]


def _after_prompt(ids: Tensor, prompt_length: int) -> Tensor:
    return (torch.arange(ids.size(1)) >= prompt_length).expand(ids.shape)


def _before_end(ids: Tensor, prompt_length: int, eos_id: int) -> Tensor:
    """Mark the tokens after the prompt and before the end token, without it."""
    mask = completion_mask(ids, prompt_length=prompt_length, eos_id=eos_id)
    return mask & (ids != eos_id)


def _group(
    mask: Callable[..., Tensor] = lambda ids, n, eos: completion_mask(ids, prompt_length=n, eos_id=eos),
    advantages: Callable[[Tensor], Tensor] = _advantages,
    join: Callable[..., Tensor] = lambda a, p, m: -(a * (p * m).sum(dim=1)).mean(),
) -> Callable[..., Tensor]:
    """Make a mistake of the mask, of the advantages, or of how they are joined with log-probabilities."""
    return lambda p, ids, r, n, eos: join(advantages(r), p, mask(ids, n, eos))


#: Wrong ways to compute the loss of a policy gradient.
GROUP: dict[str, Mistake] = {
    "You count the padding: what follows the end token was not chosen by the model.": _group(
        mask=lambda ids, n, eos: _after_prompt(ids, n)
    ),
    "You count the prompt: the model did not choose its tokens.": _group(
        mask=lambda ids, n, eos: completion_mask(ids, prompt_length=n, eos_id=eos) | ~_after_prompt(ids, n)
    ),
    "You count prompt and padding: the tokens from the prompt's end to the end token count.": _group(
        mask=lambda ids, n, eos: torch.ones_like(ids, dtype=torch.bool)
    ),
    "You leave the end token out: it was chosen, too, and a model must learn to stop.": _group(
        mask=_before_end
    ),
    "An end token in the prompt ends your text: look for the first one after the prompt.": (
        _group(
            mask=lambda ids, n, eos: completion_mask(ids, prompt_length=0, eos_id=eos) & _after_prompt(ids, n)
        ),
        _group(mask=lambda ids, n, eos: completion_mask(ids, prompt_length=0, eos_id=eos)),
    ),
    "Your mask is off by one: the first token after the prompt counts.": (
        _group(
            mask=lambda ids, n, eos: (
                completion_mask(ids, prompt_length=n, eos_id=eos) & _after_prompt(ids, n + 1)
            )
        ),
        _group(mask=lambda ids, n, eos: completion_mask(ids, prompt_length=n + 1, eos_id=eos)),
    ),
    "Your mask begins one token early: the last token of the prompt was given.": (
        _group(mask=lambda ids, n, eos: completion_mask(ids, prompt_length=n - 1, eos_id=eos)),
        _group(
            mask=lambda ids, n, eos: (
                completion_mask(ids, prompt_length=n, eos_id=eos)
                | (_after_prompt(ids, n - 1) & ~_after_prompt(ids, n))
            )
        ),
    ),
    "In a group whose rewards are all the same you divide 0 by 0: its advantages are 0.": _group(
        advantages=lambda r: (r - r.mean()) / r.std()
    ),
    "You do not subtract the mean: an advantage compares a reward with those of its group.": (
        _group(advantages=lambda r: r),
        _group(advantages=lambda r: r / r.std() if r.std() > 0 else r),
        _group(advantages=lambda r: r / r.std()),
    ),
    "You do not divide by the standard deviation.": _group(advantages=lambda r: r - r.mean()),
    "You divide by the variance: divide by its root.": _group(
        advantages=lambda r: (r - r.mean()) / r.var() if r.var() > 0 else torch.zeros_like(r)
    ),
    "You divide by 1 at least: rewards of 0 and 1 have a smaller deviation, and count as much.": (
        _group(advantages=lambda r: (r - r.mean()) / r.std().clamp(min=1)),
    ),
    "You cut off large advantages: one good text among many may have more than 2.": tuple(
        _group(advantages=lambda r, most=most: _advantages(r).clamp(-most, most)) for most in (1.0, 2.0)
    ),
    "Your standard deviation divides by n: divide by n - 1, as torch.std does.": (
        _group(
            advantages=lambda r: (r - r.mean()) / r.std(correction=0) if r.std() > 0 else torch.zeros_like(r)
        ),
        _group(advantages=lambda r: (r - r.mean()) / r.std(correction=0)),
    ),
    "The sign is turned: a step against the gradient of the loss must raise what was rewarded.": _group(
        join=lambda a, p, m: (a * (p * m).sum(dim=1)).mean()
    ),
    "You add over the texts: take their mean.": _group(join=lambda a, p, m: -(a * (p * m).sum(dim=1)).sum()),
    "You average over the tokens of each text: its log-probability is their sum.": _group(
        join=lambda a, p, m: -(a * (p * m).sum(dim=1) / m.sum(dim=1)).mean()
    ),
    "You divide by the number of all tokens: divide by the number of texts.": (
        _group(join=lambda a, p, m: -(a * (p * m).sum(dim=1)).sum() / m.sum()),
        _group(join=lambda a, p, m: -(a * (p * m).sum(dim=1)).sum() / m.numel()),
    ),
    "You use probabilities: the loss has their logarithms.": _group(
        join=lambda a, p, m: -(a * (p * m).sum(dim=1).exp()).mean()
    ),
}

#: A wrong way that only rounding shows.
ROUNDED_GROUP: dict[str, Mistake] = {
    "Equal rewards of 0.1 get advantages that are not 0: mean and deviation round, so compare the rewards.": (
        _group(advantages=lambda r: torch.nan_to_num((r - r.mean()) / r.std()))
    ),
}
