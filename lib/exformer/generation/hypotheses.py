"""The n best texts of a search: complete texts, the score that compares them, and the list of the best."""

import math
from dataclasses import dataclass, field

MOST_BEAMS = 10_000  # rows of the model per prompt: more would fill the memory
LARGEST_PENALTY = 10.0  # far beyond what prefers long texts; larger powers of a length overflow


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
