"""Learning from judgments: log-probabilities of completions, advantages in a group, and DPO's loss."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from exformer.nn.loss import nll


def completion_mask(
    ids: Int64[Tensor, "batch position"], *, prompt_length: int | Int64[Tensor, " batch"], eos_id: int
) -> Bool[Tensor, "batch position"]:
    """Mark what a model generated: the tokens after the prompt, up to its first end token, with that token.

    Args:
        ids: Prompts and completions; what follows an end token is padding.
        prompt_length: Number of tokens of the prompt, the start token among them; one for all rows, or one
            for each. An end token within the prompt ends nothing.
        eos_id: The end token.

    Returns:
        True where a token counts.

    Raises:
        ValueError: If a prompt is longer than its row, or has a negative length.

    >>> import torch
    >>> ids = torch.tensor([[1, 5, 6, 2, 0, 0], [1, 5, 7, 8, 9, 2]])
    >>> completion_mask(ids, prompt_length=2, eos_id=2).int()
    tensor([[0, 0, 1, 1, 0, 0],
            [0, 0, 1, 1, 1, 1]], dtype=torch.int32)
    """
    lengths = torch.as_tensor(prompt_length, device=ids.device).expand(ids.size(0))  # (batch)
    if ids.numel() and not (lengths.min() >= 0 and lengths.max() <= ids.size(1)):
        raise ValueError(
            f"prompt_length must lie from 0 to {ids.size(1)}, the length of the rows, "
            f"got {lengths.min().item()} to {lengths.max().item()}"
        )
    generated = torch.arange(ids.size(1), device=ids.device) >= lengths[:, None]  # (batch, position)
    ends = (ids == eos_id) & generated
    ended_before = ends.cumsum(dim=1) - ends.long() > 0
    return generated & ~ended_before


def completion_log_probabilities(
    logits: Float[Tensor, "batch position vocab_size"],
    ids: Int64[Tensor, "batch position"],
    *,
    mask: Bool[Tensor, "batch position"],
) -> Float[Tensor, " batch"]:
    r"""Add up the log-probabilities of the tokens that count.

    .. math:: \log \pi(y \mid x) = \sum_{t \in \text{completion}} \log \pi(y_t \mid x, y_{<t})

    Args:
        logits: What a language model gives for ``ids``: at position t, the scores of the token at t + 1.
        ids: Prompts and completions.
        mask: Tokens that count, as of :func:`completion_mask`. The first token has no probability.

    Returns:
        One number per row, in nats; the sum and not the mean, as DPO and policy gradients need it.

    Raises:
        ValueError: If logits do not fit the ids, or the first token counts.
    """
    if mask[:, 0].any():
        raise ValueError("the first token has no probability: mask it, or begin with a start token")
    log_p = -nll(logits[:, :-1], ids[:, 1:])  # (batch, position - 1)
    return log_p.where(mask[:, 1:], 0).sum(dim=1)


def group_advantages(
    rewards: Float[Tensor, "batch sample"], *, scale: bool = True
) -> Float[Tensor, "batch sample"]:
    r"""Compare each reward with the others of its group.

    .. math:: A_i = \frac{r_i - \bar r}{s}, \qquad \bar r = \frac1n \sum_j r_j, \qquad
        s^2 = \frac{1}{n - 1} \sum_j (r_j - \bar r)^2

    Args:
        rewards: A row for each prompt: the rewards of its completions.
        scale: Divide by s; without it, prompts whose rewards differ little count less.

    Returns:
        The advantages; 0 in a group whose rewards are all the same, which teaches nothing.

    Raises:
        ValueError: If a group has fewer than two rewards.

    Source:
        Shao et al. 2024, section 4.1; without the division, Liu et al. 2025, section 3.

    >>> import torch
    >>> group_advantages(torch.tensor([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]))
    tensor([[ 1.5000, -0.5000, -0.5000, -0.5000],
            [ 0.0000,  0.0000,  0.0000,  0.0000]])
    """
    if rewards.size(1) < 2:
        raise ValueError(f"a group needs at least two rewards to compare, got {rewards.size(1)}")
    centered = rewards - rewards.mean(dim=1, keepdim=True)
    constant = (rewards == rewards[:, :1]).all(dim=1, keepdim=True)  # a mean may round
    if not scale:
        return centered.masked_fill(constant, 0)
    s = rewards.std(dim=1, keepdim=True)
    return (centered / s.masked_fill(constant, 1)).masked_fill(constant, 0)


def dpo_loss(
    chosen: Float[Tensor, " batch"],
    rejected: Float[Tensor, " batch"],
    *,
    reference_chosen: Float[Tensor, " batch"],
    reference_rejected: Float[Tensor, " batch"],
    beta: float = 0.1,
) -> Float[Tensor, ""]:
    r"""Compute the loss of direct preference optimization, averaged over pairs.

    .. math::
        L = -\log \sigma\left(\beta \left[
            \log \frac{\pi(y_w \mid x)}{\pi_\mathrm{ref}(y_w \mid x)}
            - \log \frac{\pi(y_l \mid x)}{\pi_\mathrm{ref}(y_l \mid x)} \right]\right)

    Args:
        chosen: Log-probabilities of the preferred completions, sums over their tokens.
        rejected: Those of the others.
        reference_chosen: The same of the preferred ones, by the model before this training.
        reference_rejected: Of the others.
        beta: How strongly the model is held to the reference.

    Raises:
        ValueError: If ``beta`` is not above 0, or there is no pair.

    Source:
        Rafailov et al. 2023, equation 7.

    >>> import torch
    >>> one, two = torch.tensor([-1.0]), torch.tensor([-2.0])
    >>> dpo_loss(one, two, reference_chosen=two, reference_rejected=two, beta=1.0)
    tensor(0.3133)
    """
    if not beta > 0:
        raise ValueError(f"beta must be above 0, got {beta}")
    if not chosen.numel():
        raise ValueError("there is no pair: the mean over none is not defined")
    margin = (chosen - reference_chosen) - (rejected - reference_rejected)
    return -F.logsigmoid(beta * margin).mean()
