"""Speculative decoding: a cheap draft proposes some tokens, the model checks them all in one pass."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from exformer.check_settings import check_integer
from exformer.generation.next_token import Continuation, next_logits_of
from exformer.generation.sampling import Sampling, best_token, check_distribution
from exformer.models.decoder_lm import DecoderLM
from exformer.models.kinds import can_generate
from exformer.models.unwrap import unwrap
from exformer.nn.eval_mode import evaluating

_MOST_DRAFTS = 1_000

#: Scores of the next token, given all tokens so far: (1, position) -> (1, vocab_size).
Draft = Callable[[Tensor], Tensor]


def speculative_step(
    ids: Sequence[int],
    *,
    target: Callable[[list[int], int], Float[Tensor, "tgt vocab_size"]],
    draft: Callable[[list[int]], Float[Tensor, " vocab_size"]],
    n_drafts: int,
    draw: Callable[[Float[Tensor, " tgt"]], int],
) -> list[int]:
    r"""Sample between 1 and ``n_drafts + 1`` tokens from the target's distribution, with one pass of it.

    The draft proposes tokens :math:`x \sim q`. Each is accepted with probability

    .. math:: \min\left(1, \frac{p(x)}{q(x)}\right),

    and at the first rejection a token is sampled in its place from the residual distribution

    .. math:: r(x) = \frac{\max(0, p(x) - q(x))}{\sum_y \max(0, p(y) - q(y))}.

    Then each token has the probability :math:`\min(p, q) + \max(0, p - q) = p`, whatever the draft. If all
    are accepted, one more is sampled from p. A proposal is accepted with probability
    :math:`\sum_x \min(p(x), q(x))`, which is 1 minus the total variation distance of p and q.

    Args:
        ids: The text so far.
        target: :math:`p`: the distributions of the next token after each of the last n positions of a text.
        draft: :math:`q`: the distribution that the proposals are sampled from; not one before a temperature
            or a cut.
        n_drafts: How many tokens to propose; 0 samples one token from p.
        draw: Samples an index with probabilities in proportion to given weights. All randomness is in it.

    Returns:
        The new tokens.

    Source:
        Leviathan, Kalman and Matias 2023, algorithm 1; Chen et al. 2023, algorithm 2.

    >>> p, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.5, 0.3])
    >>> rng = torch.Generator().manual_seed(0)
    >>> speculative_step(
    ...     [],
    ...     target=lambda ids, n: p.expand(n, 3),
    ...     draft=lambda ids: q,
    ...     n_drafts=2,
    ...     draw=lambda weights: torch.multinomial(weights, 1, generator=rng).item(),
    ... )
    [0]
    """
    text, proposed = list(ids), []
    for _ in range(n_drafts):
        proposed.append(draft(text))  # q
        text.append(draw(proposed[-1]))
    accepted = text[len(ids) :]
    wanted = target(text, n_drafts + 1)  # p, of all positions in one pass
    for i, (token, q, p) in enumerate(zip(accepted, proposed, wanted, strict=False)):
        keep = (p[token] / q[token]).clamp(max=1.0)
        if draw(torch.stack((1 - keep, keep))) == 0:
            return [*accepted[:i], draw(_residual(p, q))]
    return [*accepted, draw(wanted[-1])]


def _residual(p: Tensor, q: Tensor) -> Tensor:
    """Return what p has above q; p itself where rounding alone has led to a rejection."""
    above = (p - q).clamp(min=0)
    return above if above.any() else p


def speculate(
    model: DecoderLM,
    ids: Sequence[int],
    *,
    draft: Draft | nn.Module,
    n_drafts: int,
    max_new_tokens: int,
    sampling: Sampling,
    uniform: Iterator[Tensor],
) -> Iterator[list[int]]:
    """Continue a text with a language model and a draft: what ``generate(..., draft=draft)`` does.

    Args:
        model: The target, in evaluation mode.
        ids: The text, at least one token.
        draft: A language model with the same vocabulary, or a function from ids (1, position) to the scores
            of the next token (1, vocab_size). If it has a method ``truncate``, as
            :class:`~exformer.generation.next_token.Continuation` has, it is told how many tokens stay.
        n_drafts: How many tokens are proposed at once.
        max_new_tokens: Largest number of new tokens.
        sampling: Settings, of the model and of the draft.
        uniform: Random numbers from 0 up to but not including 1, at most ``2 · n_drafts + 1`` per pass; none
            at a temperature of 0.

    Yields:
        The tokens of one pass, at least one.

    Raises:
        ValueError: If ``n_drafts`` is outside 1 to 1,000, the model or the draft attends within a window, or
            the draft does not score the model's tokens.
    """
    check_integer("n_drafts", n_drafts, least=1, most=_MOST_DRAFTS)
    if model.config.window is not None:
        raise ValueError(
            "a draft needs a model that attends to all positions: the cache of this one, with a window of "
            f"{model.config.window}, can't go back after a rejection; leave out the draft"
        )
    scorer, propose = Continuation(model), _proposer(draft)

    def distribution(logits: Tensor, text: list[int]) -> Tensor:
        """Return the probabilities from which the token after a text is sampled."""
        logits = sampling.transform(logits, torch.tensor([text], device=logits.device))
        if sampling.temperature == 0:
            return torch.zeros_like(logits[0]).index_fill(0, best_token(logits), 1.0)
        return logits[0].double().softmax(dim=-1)

    def target(text: list[int], n: int) -> Tensor:
        logits = scorer.score_last(_batch(text, model), n)[0]
        ends = range(len(text) - n + 1, len(text) + 1)
        return torch.stack([distribution(z[None], text[:end]) for z, end in zip(logits, ends, strict=True)])

    def proposal(text: list[int]) -> Tensor:
        logits = propose(_batch(text, model))
        if logits.shape != (1, model.config.vocab_size):
            raise ValueError(
                f"the draft must score the model's {model.config.vocab_size} tokens, as a tensor "
                f"(1, {model.config.vocab_size}), got {tuple(logits.shape)}"
            )
        return distribution(logits, text)

    def draw(weights: Tensor) -> int:
        if sampling.temperature == 0:
            return int(weights.argmax())
        cumulative = weights.cpu().cumsum(dim=-1)
        check_distribution(cumulative[-1])
        return int(torch.searchsorted(cumulative, cumulative[-1] * next(uniform), right=True))

    text, limit = list(ids), len(ids) + max_new_tokens
    while len(text) < limit:
        # As without a draft, no context is longer than max_len.
        n = min(n_drafts, limit - len(text) - 1, scorer.room_after(len(text)))
        with evaluating(model):  # for this pass only
            new = speculative_step(text, target=target, draft=proposal, n_drafts=n, draw=draw)
        text += new
        for each in (scorer, propose):
            if hasattr(each, "truncate"):
                each.truncate(len(text) - 1)  # the newest token has not been read yet
        yield new


def _batch(text: list[int], model: DecoderLM) -> Int64[Tensor, "1 position"]:
    return torch.tensor([text], device=model.embedding.weight.device)


def _proposer(draft: Any) -> Draft:
    """Make a function of a draft that is a model."""
    if isinstance(draft, nn.Module):
        draft = unwrap(draft)
        if not can_generate(draft):
            return next_logits_of(draft)
        if (window := getattr(draft.config, "window", None)) is not None:
            raise ValueError(
                f"expected a draft that attends to all positions, got one with a window of {window}, whose "
                "cache can't go back: give exformer.generation.next_token.next_logits_of(draft), without one"
            )
        return Continuation(draft)
    if not callable(draft):
        raise ValueError(
            f"draft must be a language model, or a function from ids to scores, got {type(draft).__name__}"
        )
    return draft
