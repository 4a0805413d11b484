"""A policy without a network: one free logit for each text, trained on judged samples like the model."""

import torch
from jaxtyping import Float
from torch import Tensor

from exformer import DecoderLM, group_advantages
from exformer_lessons.preferences.judging import GROUP, JUDGED, is_right, sample_texts


def texts_as_logits(
    model: DecoderLM, n: int, *, seed: int
) -> tuple[Float[Tensor, " text"], Float[Tensor, " text"]]:
    """Count the texts that a model generates.

    Args:
        model: Generates the texts.
        n: How many texts, in thousands.
        seed: Of the samples.

    Returns:
        The logarithm of each different text's count, and its reward, 1 or 0.

    Raises:
        ValueError: If ``n`` is below 1.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, in thousands of texts, got {n}")
    counts: dict[str | None, int] = {}
    for part in range(n):
        for text in sample_texts(model, 1_000, seed=seed + part):
            counts[text] = counts.get(text, 0) + 1
    logits = torch.tensor([*counts.values()], dtype=torch.float64).log()
    return logits, torch.tensor([is_right(text) for text in counts], dtype=torch.float64)


def reinforce_free_logits(
    logits: Float[Tensor, " text"],
    rewards: Float[Tensor, " text"],
    *,
    rate: float,
    seed: int,
    scale: bool = True,
    plain: bool = False,
) -> Float[Tensor, " text"]:
    """Train free logits by the policy gradient, on as many groups of as many samples as the model.

    Args:
        logits: One per text; their softmax is the policy.
        rewards: Of each text.
        rate: Learning rate.
        seed: Of the samples.
        scale: Whether advantages are divided by the group's standard deviation.
        plain: Whether to descend along the gradient itself, instead of with Adam.

    Returns:
        The probability of each text afterwards.

    >>> p = reinforce_free_logits(torch.zeros(3), torch.tensor([1.0, 1.0, 0.0]), rate=0.3, seed=0)
    >>> bool(p[2] < 0.01)
    True
    """
    z = (logits - logits.logsumexp(dim=0)).clone().requires_grad_()
    optimizer = (torch.optim.SGD if plain else torch.optim.Adam)([z], lr=rate)
    rng = torch.Generator().manual_seed(seed)
    for _ in range(JUDGED // GROUP):
        log_p = z.log_softmax(dim=0)
        ids = torch.multinomial(log_p.detach().exp(), GROUP, replacement=True, generator=rng)
        advantages = group_advantages(rewards[ids][None], scale=scale)[0]
        optimizer.zero_grad()
        (-(advantages * log_p[ids]).mean()).backward()
        optimizer.step()
    return z.detach().softmax(dim=0)


def different(p: Float[Tensor, " text"], rewards: Float[Tensor, " text"], *, seed: int) -> int:
    """Return how many of 1,000 sampled right texts are different."""
    rng = torch.Generator().manual_seed(seed)
    return len(torch.multinomial(p * rewards, 1_000, replacement=True, generator=rng).unique())
