"""A text that a search has found, its score, and the checks that all searches share."""

from dataclasses import dataclass

from exformer.checks import whole_number

_LARGEST_BEAM = 10_000  # rows of the model per prompt: more fills the memory
_LARGEST_ALPHA = 10.0  # far beyond what prefers long texts; a length to a power without bound is no number


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Hold a text that a search has found.

    Args:
        ids: The new tokens, without prompt and end token.
        log_probability: Of these tokens, given the prompt, in nats; that of the end token included.
        ended: Whether the end token has come, or the text was cut at the largest length.
    """

    ids: list[int]
    log_probability: float
    ended: bool

    def score(self, *, alpha: float) -> float:
        """Give what texts are compared by, see :func:`length_normalized`; the end token counts.

        Args:
            alpha: How much length is made up for.

        Returns:
            The score.
        """
        n_tokens = len(self.ids) + self.ended
        return length_normalized(self.log_probability, n_tokens=n_tokens, alpha=alpha)


def length_normalized(log_probability: float, *, n_tokens: int, alpha: float) -> float:
    r"""Divide a text's log-probability by a power of its length.

    .. math:: s(y) = \frac{\log p(y)}{|y|^\alpha}

    Each further token makes a text less probable, so without a remedy a search prefers short ones.

    Args:
        log_probability: Of the whole text.
        n_tokens: :math:`|y|`, the end token included.
        alpha: 0 compares the probabilities themselves, 1 the mean log-probability of a token.

    Returns:
        The score; the larger the better.

    Source:
        Wu et al. 2016, section 7; the :math:`(5 + |y|) / 6` that they end with is here :math:`|y|`.
    """
    return log_probability / n_tokens**alpha


def check_numbers(*, beam: int, alpha: float) -> None:
    """Refuse a beam or an exponent that no search can work with.

    Args:
        beam: How many beginnings are kept.
        alpha: See :func:`length_normalized`.

    Raises:
        ValueError: If the beam is outside 1 to 10,000, or alpha outside 0 to 10.
    """
    whole_number("beam", beam, least=1, most=_LARGEST_BEAM)
    if not 0.0 <= alpha <= _LARGEST_ALPHA:
        raise ValueError(
            f"alpha must lie from 0 to {_LARGEST_ALPHA:g}, got {alpha}: "
            "0 leaves the length alone, 1 takes the mean"
        )


def hypothesis(new: list[int], log_probability: float, *, eos_id: int) -> Hypothesis:
    """Make a hypothesis of the tokens that were appended.

    Args:
        new: The new tokens, with the end token if it has come.
        log_probability: Of these tokens.
        eos_id: The end token.

    Returns:
        The hypothesis.
    """
    ended = new[-1] == eos_id
    return Hypothesis(new[:-1] if ended else new, log_probability, ended)
