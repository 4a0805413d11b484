"""Beam search: several candidates side by side, for a text more probable than the greedy one."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from exformer.generation.autoregressive import check_start
from exformer.generation.hypothesis import (
    Hypothesis,
    check_log_probabilities,
    check_numbers,
    hypothesis,
    length_normalized,
)
from exformer.training.loss import log_probabilities

_BLOCK = 64  # columns; a row is searched block by block


def beam_search(
    next_logits: Callable[[Int64[Tensor, "batch time"]], Float[Tensor, "batch vocab_size"]],
    prompts: Int64[Tensor, "batch time"],
    *,
    eos_id: int,
    max_new_tokens: int,
    beam: int,
    alpha: float = 1.0,
) -> list[Hypothesis]:
    r"""Keep the most probable beginnings at each step, and return the best text that was completed.

    .. math:: \mathcal{B}_t = \text{the } b \text{ most probable of } \{ y w : y \in \mathcal{B}_{t-1} \}

    A text that ends leaves the beam, and its place stays empty; so a beam of 1 is greedy (of
    equals it may take another). What is cut at the largest length counts as complete. A search ends early
    where nothing that goes on can still win.

    Args:
        next_logits: Scores of the next symbol, given all symbols so far. It is asked for ``beam`` rows a
            prompt: rows i · beam to (i + 1) · beam - 1 continue prompt i; rows of empty places are asked for
            too, and do not count. If it has a method ``reorder``, as
            :class:`~exformer.generation.cached.CachedLM` has, that is told from which row each row goes on.
        prompts: How each sequence begins, at least one symbol each.
        eos_id: The symbol that ends a sequence.
        max_new_tokens: How many symbols are appended at most.
        beam: :math:`b`, how many beginnings are kept for each prompt.
        alpha: See :func:`~exformer.generation.hypothesis.length_normalized`; complete texts are compared by
            this score.

    Returns:
        The best text found for each prompt.

    Raises:
        ValueError: If the prompts are empty, a number is too small, or the scores give no distribution.

    Source:
        Sutskever, Vinyals and Le 2014, section 3.2.
    """
    check_start(prompts, max_new_tokens=max_new_tokens)
    check_numbers(beam=beam, alpha=alpha)
    ids = prompts.repeat_interleave(beam, dim=0)
    first_rows = torch.arange(len(prompts), device=ids.device)[:, None] * beam  # (batch, 1)
    live = torch.zeros(len(prompts), beam, device=ids.device)  # log-probabilities; -inf is an empty place
    live[:, 1:] = -torch.inf
    places = torch.full_like(first_rows, beam)
    best: list[Hypothesis | None] = [None] * len(prompts)
    for n_symbols in range(1, max_new_tokens + 1):
        live, parents, symbols = _extend(live, next_logits(ids), places=places)
        rows = (first_rows + parents).flatten()
        ids = torch.cat((ids[rows], symbols.flatten()[:, None]), dim=1)
        ended = (symbols == eos_id) & live.isfinite()  # (batch, beam)
        complete = ended if n_symbols < max_new_tokens else live.isfinite()
        for i, place in complete.nonzero().tolist():
            new = ids[i * beam + place, prompts.size(1) :].tolist()
            best[i] = _better(best[i], hypothesis(new, live[i, place].item(), eos_id=eos_id), alpha=alpha)
        places = places - ended.sum(dim=1, keepdim=True)
        live = live.masked_fill(ended, -torch.inf)
        live = live.masked_fill(_decided(live, best, longest=max_new_tokens, alpha=alpha), -torch.inf)
        if not live.isfinite().any():
            break
        if hasattr(next_logits, "reorder"):
            next_logits.reorder(rows)
    return best


def _extend(live: Tensor, logits: Tensor, *, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Keep the most probable continuations: log-probabilities, parents and symbols, each (batch, beam)."""
    beam = live.size(1)
    # No row can have more than b of the b best: first each row's own, so that little is added and compared.
    further, symbols = _largest(log_probabilities(logits), min(beam, logits.size(-1)))
    total = live[..., None] + further.unflatten(0, live.shape)  # (batch, beam, candidates)
    total = total.masked_fill(live.isneginf()[..., None], -torch.inf)  # whatever such a row was given
    check_log_probabilities(total)
    total, index = total.flatten(start_dim=1).topk(beam)
    symbols = symbols.unflatten(0, live.shape).flatten(start_dim=1).gather(1, index)
    over = torch.arange(beam, device=live.device) >= places
    return total.masked_fill(over, -torch.inf), index // further.size(-1), symbols


def _largest(scores: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Find the n largest of each row, and where they are, as ``topk`` does, in less time for many columns."""
    blocks = scores.size(-1) // _BLOCK
    if blocks <= 2 * n:
        return scores.topk(n)
    # None of the n largest can lie outside the n blocks with the largest maxima, or the columns behind them.
    cut = scores[:, : blocks * _BLOCK].unflatten(1, (blocks, _BLOCK))  # (row, block, column)
    chosen = cut.amax(dim=-1).topk(n).indices  # (row, n)
    columns = (chosen[..., None] * _BLOCK + torch.arange(_BLOCK, device=scores.device)).flatten(start_dim=1)
    behind = torch.arange(blocks * _BLOCK, scores.size(-1), device=scores.device).expand(len(scores), -1)
    columns = torch.cat((columns, behind), dim=1)
    found, index = scores.gather(1, columns).topk(n)
    return found, columns.gather(1, index)


def _decided(live: Tensor, best: list, *, longest: int, alpha: float) -> Tensor:
    """Say where nothing can win any more: (batch, 1)."""
    # What goes on can at best lose no probability and grow to the largest length.
    hopes = [length_normalized(hope, n_symbols=longest, alpha=alpha) for hope in live.amax(dim=1).tolist()]
    found = [
        text is not None and text.score(alpha=alpha) >= hope for text, hope in zip(best, hopes, strict=True)
    ]
    return torch.tensor(found, device=live.device)[:, None]


def _better(best: Hypothesis | None, other: Hypothesis, *, alpha: float) -> Hypothesis:
    return other if best is None or other.score(alpha=alpha) > best.score(alpha=alpha) else best
