"""Beam search: several candidates side by side, for a text more probable than the greedy one."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from exformer.generation.decoding import check_log_probabilities, check_start
from exformer.generation.fast_top_k import largest
from exformer.generation.hypothesis import (
    Hypothesis,
    check_numbers,
    hypothesis,
    length_normalized,
)
from exformer.nn.loss import log_probabilities


def beam_search(
    next_logits: Callable[[Int64[Tensor, "batch position"]], Float[Tensor, "batch vocab_size"]],
    prompts: Int64[Tensor, "batch position"],
    *,
    eos_id: int,
    max_new_tokens: int,
    beam: int,
    alpha: float = 1.0,
) -> list[Hypothesis]:
    r"""Keep the most probable partial texts at each step, and return the best complete one.

    .. math:: \mathcal{B}_t = \text{the } b \text{ most probable of } \{ y w : y \in \mathcal{B}_{t-1} \}

    A text that ends leaves the beam, and its slot stays empty, so a beam of 1 is greedy decoding (ties may be
    broken differently). A text that reaches the largest length counts as complete. The search ends early
    when no unfinished text can still win.

    Args:
        next_logits: Scores of the next token, given all tokens so far. It is asked for ``beam`` rows per
            prompt: rows i · beam to (i + 1) · beam - 1 continue prompt i; rows of empty slots are asked for
            too, and do not count. If it has a method ``reorder``, as
            :class:`~exformer.generation.next_token.Continuation` has, it is told which row each row
            continues.
        prompts: How each sequence begins, at least one token each.
        eos_id: The token that ends a sequence.
        max_new_tokens: How many tokens are appended at most.
        beam: :math:`b`, how many partial texts are kept for each prompt.
        alpha: See :func:`~exformer.generation.hypothesis.length_normalized`; complete texts are compared by
            this score.

    Returns:
        The best text found for each prompt.

    Raises:
        ValueError: If the prompts are empty, a number is too small, or the scores give no distribution.

    Source:
        Sutskever, Vinyals and Le 2014, section 3.2.

    >>> import torch
    >>> p = torch.tensor([[0, 0.6, 0.4], [0.5, 0.25, 0.25], [1, 0, 0]])  # after token i; 0 is the end
    >>> [best] = beam_search(lambda ids: p[ids[:, -1]].log(), torch.tensor([[0]]), eos_id=0,
    ...                      max_new_tokens=3, beam=2, alpha=0.0)
    >>> best.ids, round(best.score(alpha=0.0), 4)  # 0.4 · 1: greedy would take 1, and end with 0.6 · 0.5
    ([2], -0.9163)
    """
    check_start(prompts, max_new_tokens=max_new_tokens)
    check_numbers(beam=beam, alpha=alpha)
    ids = prompts.repeat_interleave(beam, dim=0)
    first_rows = torch.arange(len(prompts), device=ids.device)[:, None] * beam  # (batch, 1)
    live = torch.zeros(len(prompts), beam, device=ids.device)  # log-probabilities; -inf is an empty slot
    live[:, 1:] = -torch.inf
    slots = torch.full_like(first_rows, beam)
    best: list[Hypothesis | None] = [None] * len(prompts)
    for n_tokens in range(1, max_new_tokens + 1):
        live, parents, tokens = _extend(live, next_logits(ids), slots=slots)
        rows = (first_rows + parents).flatten()
        ids = torch.cat((ids[rows], tokens.flatten()[:, None]), dim=1)
        ended = (tokens == eos_id) & live.isfinite()  # (batch, beam)
        complete = ended if n_tokens < max_new_tokens else live.isfinite()
        for i, slot in complete.nonzero().tolist():
            new = ids[i * beam + slot, prompts.size(1) :].tolist()
            best[i] = _better(best[i], hypothesis(new, live[i, slot].item(), eos_id=eos_id), alpha=alpha)
        slots = slots - ended.sum(dim=1, keepdim=True)
        live = live.masked_fill(ended, -torch.inf)
        live = live.masked_fill(_decided(live, best, longest=max_new_tokens, alpha=alpha), -torch.inf)
        if not live.isfinite().any():
            break
        if hasattr(next_logits, "reorder"):
            next_logits.reorder(rows)
    return best


def _extend(live: Tensor, logits: Tensor, *, slots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Keep the most probable continuations: log-probabilities, parents and tokens, each (batch, beam)."""
    beam = live.size(1)
    # No row can have more than b of the b best: first each row's own, so that little is added and compared.
    further, tokens = largest(log_probabilities(logits), min(beam, logits.size(-1)))
    total = live[..., None] + further.unflatten(0, live.shape)  # (batch, beam, candidates)
    total = total.masked_fill(live.isneginf()[..., None], -torch.inf)  # whatever such a row was given
    check_log_probabilities(total)
    total, index = total.flatten(start_dim=1).topk(beam)
    tokens = tokens.unflatten(0, live.shape).flatten(start_dim=1).gather(1, index)
    over = torch.arange(beam, device=live.device) >= slots
    return total.masked_fill(over, -torch.inf), index // further.size(-1), tokens


def _decided(live: Tensor, best: list, *, longest: int, alpha: float) -> Tensor:
    """Say where nothing can win any more: (batch, 1)."""
    # What goes on can at best lose no probability and grow to the largest length.
    hopes = [length_normalized(hope, n_tokens=longest, alpha=alpha) for hope in live.amax(dim=1).tolist()]
    found = [
        text is not None and text.score(alpha=alpha) >= hope for text, hope in zip(best, hopes, strict=True)
    ]
    return torch.tensor(found, device=live.device)[:, None]


def _better(best: Hypothesis | None, other: Hypothesis, *, alpha: float) -> Hypothesis:
    return other if best is None or other.score(alpha=alpha) > best.score(alpha=alpha) else best
