"""Beam search: several candidates side by side, for a text more probable than the greedy one."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from exformer.check_settings import check_integer, check_real
from exformer.generation.limits import LARGEST_PENALTY, MOST_BEAMS
from exformer.generation.sampling import check_log_probabilities, check_prompts, end_tokens, first_end
from exformer.nn.loss import log_probabilities


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A text that a search has found.

    Args:
        ids: The new tokens, without prompt and end token.
        log_probability: Of these tokens and the end token, given the prompt, in nats.
        ended: Whether it has an end token; otherwise it was cut at the largest length.
    """

    ids: list[int]
    log_probability: float
    ended: bool

    def score(self, *, length_penalty: float) -> float:
        """Return the score that texts are compared by, see :func:`length_normalized`; the end token counts.

        Args:
            length_penalty: The exponent of the length.
        """
        n_tokens = len(self.ids) + self.ended
        return length_normalized(self.log_probability, n_tokens=n_tokens, length_penalty=length_penalty)

    @classmethod
    def of(cls, tokens: list[int], log_probability: float, *, eos_id: int) -> "Hypothesis":
        """Make a hypothesis of new tokens, which may end with the end token."""
        ended = tokens[-1] == eos_id
        return cls(tokens[:-1] if ended else tokens, log_probability, ended)


def length_normalized(log_probability: float, *, n_tokens: int, length_penalty: float) -> float:
    r"""Divide a text's log-probability by a power of its length.

    .. math:: s(y) = \frac{\log p(y)}{|y|^\alpha}

    Each further token makes a text less probable, so without a correction a search prefers short texts.

    Args:
        log_probability: Of the whole text.
        n_tokens: :math:`|y|`, the end token included.
        length_penalty: :math:`\alpha`: 0 compares the probabilities themselves, 1 the mean log-probability of
            a token.

    Returns:
        The score; the larger the better.

    Source:
        Wu et al. 2016, section 7; the :math:`(5 + |y|) / 6` that they end with is here :math:`|y|`.
    """
    return log_probability / n_tokens**length_penalty


@dataclass
class NBest:
    """The n best complete texts of a prompt so far, the best first.

    >>> best = NBest(1, length_penalty=1.0)
    >>> best.add(Hypothesis([5, 7, 9], -6.0, ended=True))
    >>> best.add(Hypothesis([8], -2.0, ended=True))
    >>> best.texts, best.is_decided(-3.5, max_new_tokens=3)  # -2 / 2 is better than -3.5 / 3
    ([Hypothesis(ids=[8], log_probability=-2.0, ended=True)], True)
    """

    n: int
    length_penalty: float
    texts: list[Hypothesis] = field(default_factory=list)

    def add(self, text: Hypothesis) -> None:
        """Add a complete text; of equal scores the earlier one is better."""
        self.texts.append(text)
        self.texts.sort(key=lambda text: text.score(length_penalty=self.length_penalty), reverse=True)
        del self.texts[self.n :]

    def is_decided(self, log_probability: float, *, max_new_tokens: int) -> bool:
        """Return whether no unfinished text can get into the list any more.

        Args:
            log_probability: Of the most probable unfinished text; minus infinity if there is none.
            max_new_tokens: Largest number of tokens.
        """
        # At best it loses no further probability and grows to the largest length.
        bound = length_normalized(
            log_probability, n_tokens=max_new_tokens, length_penalty=self.length_penalty
        )
        is_full = len(self.texts) == self.n
        is_beaten = is_full and self.texts[-1].score(length_penalty=self.length_penalty) >= bound
        return is_beaten or log_probability == -math.inf


@overload
def beam_search(
    next_logits: Callable[[Tensor], Tensor], prompts: Tensor, *, n_best: None = None, **options: Any
) -> list[Hypothesis]: ...


@overload
def beam_search(
    next_logits: Callable[[Tensor], Tensor], prompts: Tensor, *, n_best: int, **options: Any
) -> list[list[Hypothesis]]: ...


def beam_search(
    next_logits: Callable[[Int64[Tensor, "batch position"]], Float[Tensor, "batch vocab_size"]],
    prompts: Int64[Tensor, "batch position"],
    *,
    eos_id: int | Sequence[int],
    max_new_tokens: int,
    num_beams: int,
    length_penalty: float = 1.0,
    n_best: int | None = None,
) -> list[Hypothesis] | list[list[Hypothesis]]:
    r"""Keep the most probable partial texts at each step, and return the best complete ones.

    .. math:: \mathcal{B}_t = \text{the } b \text{ most probable of } \{ y w : y \in \mathcal{B}_{t-1} \}

    A text that ends leaves the beam, and its slot stays empty, so a beam of 1 is greedy decoding (ties may be
    broken differently). A text that reaches the largest length counts as complete. The search ends early
    when no unfinished text can still be among the best.

    Args:
        next_logits: Scores of the next token, given all tokens so far. It is called with ``num_beams`` rows
            per prompt: rows i · b to (i + 1) · b - 1 continue prompt i; the scores of empty slots do not
            count. If it has a method ``reorder``, as :class:`~exformer.generation.next_token.Continuation`
            has, it is told which row each row continues, and prompts whose search is over have no more rows.
        prompts: The beginning of each sequence, at least one token each.
        eos_id: The token that ends a sequence, or several.
        max_new_tokens: Largest number of new tokens.
        num_beams: :math:`b`, the number of partial texts kept for each prompt.
        length_penalty: The exponent of the length in the score that compares complete texts, see
            :func:`length_normalized`.
        n_best: How many texts to return for each prompt, at most ``num_beams``; None for the best one.

    Returns:
        The best text for each prompt; with ``n_best`` a list for each prompt, the best first. It is shorter
        where fewer texts were completed.

    Raises:
        ValueError: If the prompts are empty, a number is out of its range, or the scores give no
            distribution.

    Source:
        Sutskever, Vinyals and Le 2014, section 3.2.

    >>> import torch
    >>> p = torch.tensor([[0, 0.6, 0.4], [0.5, 0.25, 0.25], [1, 0, 0]])  # after token i; 0 is the end
    >>> [best] = beam_search(lambda ids: p[ids[:, -1]].log(), torch.tensor([[0]]), eos_id=0,
    ...                      max_new_tokens=3, num_beams=2, length_penalty=0.0)
    >>> best.ids, round(best.log_probability, 4)  # 0.4 · 1: greedy would take 1, and end with 0.6 · 0.5
    ([2], -0.9163)
    """
    check_prompts(prompts, max_new_tokens=max_new_tokens)
    check_beams(num_beams, length_penalty=length_penalty, n_best=n_best)
    ends = end_tokens(eos_id)
    ids = prompts.repeat_interleave(num_beams, dim=0)
    first_rows = torch.arange(len(prompts), device=ids.device)[:, None] * num_beams  # (batch, 1)
    live = torch.zeros(len(prompts), num_beams, device=ids.device)  # log-probabilities; -inf: an empty slot
    live[:, 1:] = -torch.inf
    slots = torch.full_like(first_rows, num_beams)
    best = [NBest(n_best or 1, length_penalty) for _ in prompts]
    searching = best  # those of the prompts whose search is not over
    for n_tokens in range(1, max_new_tokens + 1):
        live, parents, tokens = _extend(live, next_logits(ids), slots=slots)
        tokens = first_end(tokens, ends)
        rows = (first_rows[: len(live)] + parents).flatten()
        ids = torch.cat((ids[rows], tokens.flatten()[:, None]), dim=1)
        ended = (tokens == ends[0]) & live.isfinite()  # (batch, beam)
        complete = ended if n_tokens < max_new_tokens else live.isfinite()
        for i, slot in complete.nonzero().tolist():
            new = ids[i * num_beams + slot, prompts.size(1) :].tolist()
            searching[i].add(Hypothesis.of(new, live[i, slot].item(), eos_id=ends[0]))
        slots = slots - ended.sum(dim=1, keepdim=True)
        live = live.masked_fill(ended, -torch.inf)
        hopes = zip(searching, live.amax(dim=1).tolist(), strict=True)
        decided = [texts.is_decided(hope, max_new_tokens=max_new_tokens) for texts, hope in hopes]
        if all(decided):
            break
        is_open = ~torch.tensor(decided, device=ids.device)
        live = live.masked_fill(~is_open[:, None], -torch.inf)
        if hasattr(next_logits, "reorder"):
            if any(decided):
                rows, ids = (x.unflatten(0, live.shape)[is_open].flatten(end_dim=1) for x in (rows, ids))
                live, slots = live[is_open], slots[is_open]
                searching = [texts for texts, over in zip(searching, decided, strict=True) if not over]
            next_logits.reorder(rows)
    return [each.texts[0] for each in best] if n_best is None else [each.texts for each in best]


def check_beams(num_beams: int, *, length_penalty: float, n_best: int | None = None) -> None:
    """Check the settings of a search.

    Args:
        num_beams: The number of partial texts kept.
        length_penalty: See :func:`length_normalized`.
        n_best: The number of texts asked for.

    Raises:
        ValueError: If ``num_beams`` is outside 1 to 10,000, ``length_penalty`` outside 0 to 10, or ``n_best``
            outside 1 to ``num_beams``.
    """
    check_integer("num_beams", num_beams, least=1, most=MOST_BEAMS)
    if n_best is not None and not 1 <= check_integer("n_best", n_best, least=1) <= num_beams:
        raise ValueError(
            f"n_best must be at most num_beams ({num_beams}), got {n_best}: "
            "a beam completes one text per slot, so give num_beams too"
        )
    if not 0.0 <= check_real("length_penalty", length_penalty) <= LARGEST_PENALTY:
        raise ValueError(
            f"length_penalty must lie from 0 to {LARGEST_PENALTY:g}, got {length_penalty}: "
            "0 ignores the length, 1 takes the mean"
        )


def _extend(live: Tensor, logits: Tensor, *, slots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Keep the most probable continuations: log-probabilities, parents and tokens, each (batch, beam)."""
    num_beams = live.size(1)
    # No row can have more than b of the b best: first each row's own, so that little is added and compared.
    candidates, tokens = log_probabilities(logits).topk(min(num_beams, logits.size(-1)))
    total = live[..., None] + candidates.unflatten(0, live.shape)  # (batch, beam, candidates)
    total = total.masked_fill(live.isneginf()[..., None], -torch.inf)  # empty slots do not count
    check_log_probabilities(total)
    total, index = total.flatten(start_dim=1).topk(num_beams)
    tokens = tokens.unflatten(0, live.shape).flatten(start_dim=1).gather(1, index)
    is_closed = torch.arange(num_beams, device=live.device) >= slots
    return total.masked_fill(is_closed, -torch.inf), index // candidates.size(-1), tokens
