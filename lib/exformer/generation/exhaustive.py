"""Every text there is, with its probability: what a search for the best one is to be measured by."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from exformer.generation.autoregressive import check_start
from exformer.training.loss import log_probabilities

_MOST_TEXTS = 1_000_000
_LARGEST_BEAM = 10_000  # rows of the model a prompt: more fills the memory
_LARGEST_ALPHA = 10.0  # far beyond what prefers long texts; a length to a power without bound is no number


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Hold a text that a search has found.

    Args:
        ids: The new symbols, without prompt and end symbol.
        log_probability: Of these symbols, given the prompt, in nats; that of the end symbol included.
        ended: Whether the end symbol has come, or the text was cut at the largest length.
    """

    ids: list[int]
    log_probability: float
    ended: bool

    def score(self, *, alpha: float) -> float:
        """Give what texts are compared by, see :func:`length_normalized`; the end symbol counts.

        Args:
            alpha: How much length is made up for.

        Returns:
            The score.
        """
        n_symbols = len(self.ids) + self.ended
        return length_normalized(self.log_probability, n_symbols=n_symbols, alpha=alpha)


def length_normalized(log_probability: float, *, n_symbols: int, alpha: float) -> float:
    r"""Divide a text's log-probability by a power of its length.

    .. math:: s(y) = \frac{\log p(y)}{|y|^\alpha}

    Each further symbol makes a text less probable, so without a remedy a search prefers short ones.

    Args:
        log_probability: Of the whole text.
        n_symbols: :math:`|y|`, the end symbol included.
        alpha: 0 compares the probabilities themselves, 1 the mean log-probability of a symbol.

    Returns:
        The score; the larger the better.

    Source:
        Wu et al. 2016, section 7; the :math:`(5 + |y|) / 6` that they end with is here :math:`|y|`.
    """
    return log_probability / n_symbols**alpha


def exhaustive_search(
    next_logits: Callable[[Int64[Tensor, "batch time"]], Float[Tensor, "batch vocab_size"]],
    prompts: Int64[Tensor, "batch time"],
    *,
    eos_id: int,
    max_new_tokens: int,
    alpha: float = 1.0,
) -> list[list[Hypothesis]]:
    """Find every text there is, with its probability: possible where the language is tiny.

    Args:
        next_logits: Scores of the next symbol, given all symbols so far; asked for one row a beginning, for
            one prompt after the other.
        prompts: How each sequence begins, at least one symbol each.
        eos_id: The symbol that ends a sequence.
        max_new_tokens: How many symbols are appended at most; what is cut there counts as a text.
        alpha: See :func:`length_normalized`; the texts are sorted by this score.

    Returns:
        For each prompt all texts that are possible, the best first. Their probabilities sum to 1.

    Raises:
        ValueError: If the prompts are empty, a number is out of its range, there are too many texts, or the
            scores give no distribution.
    """
    check_start(prompts, max_new_tokens=max_new_tokens)
    check_numbers(beam=1, alpha=alpha)
    options = {"eos_id": eos_id, "max_new_tokens": max_new_tokens}
    found = [_all_texts(next_logits, prompt[None], **options) for prompt in prompts]
    return [sorted(texts, key=lambda text: -text.score(alpha=alpha)) for texts in found]


def check_numbers(*, beam: int, alpha: float) -> None:
    """Refuse a beam or an exponent that no search can work with.

    Args:
        beam: How many beginnings are kept.
        alpha: See :func:`length_normalized`.

    Raises:
        ValueError: If the beam is outside 1 to 10,000, or alpha outside 0 to 10.
    """
    if not 1 <= beam <= _LARGEST_BEAM:
        raise ValueError(f"beam must lie from 1 to {_LARGEST_BEAM:,}, got {beam}: a beam of 1 is greedy")
    if not 0.0 <= alpha <= _LARGEST_ALPHA:
        raise ValueError(
            f"alpha must lie from 0 to {_LARGEST_ALPHA:g}, got {alpha}: "
            "0 leaves the length alone, 1 takes the mean"
        )


def check_log_probabilities(scores: Tensor) -> None:
    """Refuse what is no log-probability; a row of logits without a distribution gives nothing else.

    Args:
        scores: Of any shape; minus infinity is what can't come.

    Raises:
        ValueError: If some are not numbers.
    """
    if scores.isnan().any():
        raise ValueError("the logits must give a distribution: some are not numbers, or no symbol is left")


def hypothesis(new: list[int], log_probability: float, *, eos_id: int) -> Hypothesis:
    """Make a hypothesis of the symbols that were appended.

    Args:
        new: The new symbols, with the end symbol if it has come.
        log_probability: Of these symbols.
        eos_id: The end symbol.

    Returns:
        The hypothesis.
    """
    ended = new[-1] == eos_id
    return Hypothesis(new[:-1] if ended else new, log_probability, ended)


def _all_texts(next_logits: Callable, ids: Tensor, *, eos_id: int, max_new_tokens: int) -> list[Hypothesis]:
    start, found = ids.size(1), []
    log_probability = torch.zeros(1, device=ids.device)
    for n_symbols in range(1, max_new_tokens + 1):
        logits = next_logits(ids)
        if logits.size(-1) ** max_new_tokens > _MOST_TEXTS:
            raise ValueError(
                f"{logits.size(-1)} symbols give {logits.size(-1)}^{max_new_tokens} texts, too many to try "
                f"them all (at most {_MOST_TEXTS:,}): take fewer symbols, or beam_search"
            )
        total = log_probability[:, None] + log_probabilities(logits)  # (batch, vocab_size)
        check_log_probabilities(total)
        rows, symbols = total.isfinite().nonzero(as_tuple=True)
        ids, log_probability = torch.cat((ids[rows], symbols[:, None]), dim=1), total[rows, symbols]
        ended = symbols == eos_id
        complete = ended if n_symbols < max_new_tokens else torch.ones_like(ended)
        for new, value in zip(
            ids[complete, start:].tolist(), log_probability[complete].tolist(), strict=True
        ):
            found.append(hypothesis(new, value, eos_id=eos_id))
        ids, log_probability = ids[~ended], log_probability[~ended]
        if not len(ids):
            break
    return found
