"""A text that a search has found, its score, and the checks that all searches share."""

from dataclasses import dataclass

from torch import Tensor

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
