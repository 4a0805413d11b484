"""Autoregressive decoding: the loop that greedy decoding and sampling share, token by token."""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from exformer.checks import whole_number


def token_steps(
    next_logits: Callable[[Int64[Tensor, "batch position"]], Float[Tensor, "batch vocab_size"]],
    prompts: Int64[Tensor, "batch position"],
    *,
    choose: Callable[[Float[Tensor, "batch vocab_size"], int], Int64[Tensor, " batch"]],
    eos_id: int,
    max_new_tokens: int,
) -> Iterator[Int64[Tensor, " batch"]]:
    r"""Choose one token for each sequence, append it, and go on until all have ended.

    .. math:: y_t = \mathrm{choose}\left(p(\cdot \mid y_{<t}),\, t\right)

    Args:
        next_logits: Scores of the next token, given all tokens so far.
        prompts: How each sequence begins, at least one token each; see
            :func:`~exformer.data.padding.pad_left` for unequal ones.
        choose: From the scores and the number of the step, counted from 0, to one token per sequence.
        eos_id: The token that ends a sequence; one that has ended gets nothing else.
        max_new_tokens: Most steps.

    Yields:
        The tokens of one step.

    Raises:
        ValueError: If the prompts are empty or nothing may be appended.
    """
    check_start(prompts, max_new_tokens=max_new_tokens)
    ids = prompts
    finished = torch.zeros(len(prompts), dtype=torch.bool, device=prompts.device)
    for step in range(max_new_tokens):
        chosen = choose(next_logits(ids), step)  # (batch,)
        chosen = chosen.masked_fill(finished, eos_id)
        yield chosen
        ids = torch.cat((ids, chosen[:, None]), dim=1)
        finished = finished | (chosen == eos_id)
        if finished.all():
            break


def append_tokens(
    next_logits: Callable[[Int64[Tensor, "batch position"]], Float[Tensor, "batch vocab_size"]],
    prompts: Int64[Tensor, "batch position"],
    *,
    choose: Callable[[Float[Tensor, "batch vocab_size"], int], Int64[Tensor, " batch"]],
    eos_id: int,
    max_new_tokens: int,
) -> list[list[int]]:
    """Run :func:`token_steps` to the end.

    Returns:
        For each prompt the new tokens, without prompt and end token.
    """
    steps = token_steps(next_logits, prompts, choose=choose, eos_id=eos_id, max_new_tokens=max_new_tokens)
    new = torch.stack(list(steps), dim=1).tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in new]


def greedy(
    next_logits: Callable[[Int64[Tensor, "batch position"]], Float[Tensor, "batch vocab_size"]],
    prompts: Int64[Tensor, "batch position"],
    *,
    eos_id: int,
    max_new_tokens: int,
) -> list[list[int]]:
    r"""Append the most probable token, again and again, until the end token.

    .. math:: y_t = \arg\max_w \; p(w \mid y_{<t})

    Args:
        next_logits: Scores of the next token, given all tokens so far.
        prompts: How each sequence begins, at least one token each.
        eos_id: The token that ends a sequence.
        max_new_tokens: How many tokens are appended at most.

    Returns:
        For each prompt the new tokens, without prompt and end token.

    Raises:
        ValueError: If the prompts are empty, nothing may be appended, or the scores give no distribution.

    Source:
        Sutskever, Vinyals and Le 2014, section 3.2, with a beam of 1.

    >>> following = torch.eye(4)[[1, 2, 3, 0]]  # after token 0 comes 1, after 1 comes 2, ...
    >>> greedy(lambda ids: following[ids[:, -1]], torch.tensor([[0], [2]]), eos_id=3, max_new_tokens=9)
    [[1, 2], []]
    """
    return append_tokens(
        next_logits,
        prompts,
        choose=lambda logits, _: best_token(logits),
        eos_id=eos_id,
        max_new_tokens=max_new_tokens,
    )


def best_token(logits: Float[Tensor, "batch vocab_size"]) -> Int64[Tensor, " batch"]:
    """Take the most probable token of each row; of equals the one with the lowest id.

    Raises:
        ValueError: If a row gives no distribution.
    """
    best, chosen = logits.max(dim=-1)
    check_distribution(best)
    return chosen


def check_distribution(of_rows: Tensor) -> None:
    """Refuse scores that give no distribution.

    Args:
        of_rows: Of each row a number that is finite if and only if it gives one: its largest score, or the
            sum of its probabilities.

    Raises:
        ValueError: If one is not.
    """
    if not of_rows.isfinite().all():
        raise ValueError("the logits must give a distribution: some are not numbers, or no token is left")


def check_log_probabilities(scores: Tensor) -> None:
    """Refuse what is no log-probability; a row of logits without a distribution gives nothing else.

    Args:
        scores: Of any shape; minus infinity is what can't come.

    Raises:
        ValueError: If some are not numbers.
    """
    if scores.isnan().any():
        raise ValueError("the logits must give a distribution: some are not numbers, or no token is left")


def check_start(prompts: Tensor, *, max_new_tokens: int) -> None:
    """Refuse what no text can be made from.

    Args:
        prompts: How each sequence begins (batch, position).
        max_new_tokens: How many tokens are appended at most.

    Raises:
        ValueError: If the prompts are not (batch, position) or empty, or nothing may be appended.
    """
    if prompts.dim() != 2 or prompts.numel() == 0:
        raise ValueError(
            "prompts must be (batch, position) with at least one token each, "
            f"got the shape {tuple(prompts.shape)}"
        )
    whole_number("max_new_tokens", max_new_tokens, least=1)
