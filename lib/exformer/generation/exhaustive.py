"""Exhaustive search: every text of a tiny language with its probability, to measure other searches by."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from exformer.generation.beam_search import Hypothesis, check_beams
from exformer.generation.sampling import check_log_probabilities, check_prompts
from exformer.nn.loss import log_probabilities

_MOST_TEXTS = 1_000_000


def exhaustive_search(
    next_logits: Callable[[Int64[Tensor, "batch position"]], Float[Tensor, "batch vocab_size"]],
    prompts: Int64[Tensor, "batch position"],
    *,
    eos_id: int,
    max_new_tokens: int,
    length_penalty: float = 1.0,
) -> list[list[Hypothesis]]:
    """Find every possible text with its probability, which takes a tiny language.

    Args:
        next_logits: Scores of the next token, given all tokens so far; called with one row per partial
            text, for one prompt after the other.
        prompts: The beginning of each sequence, at least one token each.
        eos_id: The token that ends a sequence.
        max_new_tokens: Largest number of new tokens; a text that is cut there counts as complete.
        length_penalty: See :func:`~exformer.generation.beam_search.length_normalized`; the texts are sorted
            by this score.

    Returns:
        For each prompt all possible texts, the best first. Their probabilities sum to 1.

    Raises:
        ValueError: If the prompts are empty, a number is out of its range, there are too many texts, or the
            scores give no distribution.

    >>> p = torch.tensor([[0, 0.6, 0.4], [0.5, 0.25, 0.25], [1, 0, 0]])  # after token i; 0 is the end
    >>> [texts] = exhaustive_search(lambda ids: p[ids[:, -1]].log(), torch.tensor([[0]]), eos_id=0,
    ...                             max_new_tokens=2, length_penalty=0.0)
    >>> for text in texts:
    ...     print(text.ids, round(2.718281828**text.log_probability, 4))
    [2] 0.4
    [1] 0.3
    [1, 1] 0.15
    [1, 2] 0.15
    """
    check_prompts(prompts, max_new_tokens=max_new_tokens)
    check_beams(1, length_penalty=length_penalty)
    found = [
        _all_texts(next_logits, prompt[None], eos_id=eos_id, max_new_tokens=max_new_tokens)
        for prompt in prompts
    ]
    return [sorted(texts, key=lambda text: -text.score(length_penalty=length_penalty)) for texts in found]


def _all_texts(next_logits: Callable, ids: Tensor, *, eos_id: int, max_new_tokens: int) -> list[Hypothesis]:
    start, found = ids.size(1), []
    log_probability = torch.zeros(1, device=ids.device)
    for n_tokens in range(1, max_new_tokens + 1):
        logits = next_logits(ids)
        if logits.size(-1) ** max_new_tokens > _MOST_TEXTS:
            raise ValueError(
                f"{logits.size(-1)} tokens give {logits.size(-1)}^{max_new_tokens} texts, too many to try "
                f"them all (at most {_MOST_TEXTS:,}): take fewer tokens, or beam_search"
            )
        total = log_probability[:, None] + log_probabilities(logits)  # (batch, vocab_size)
        check_log_probabilities(total)
        rows, tokens = total.isfinite().nonzero(as_tuple=True)
        ids, log_probability = torch.cat((ids[rows], tokens[:, None]), dim=1), total[rows, tokens]
        ended = tokens == eos_id
        complete = ended if n_tokens < max_new_tokens else torch.ones_like(ended)
        for new, value in zip(
            ids[complete, start:].tolist(), log_probability[complete].tolist(), strict=True
        ):
            found.append(Hypothesis.of(new, value, eos_id=eos_id))
        ids, log_probability = ids[~ended], log_probability[~ended]
        if not len(ids):
            break
    return found
