"""What goes wrong in the probability of a sentence: each hint beside a function that makes the mistake."""

import math
from collections.abc import Callable, Mapping

import torch

END = "</s>"
#: What gives the probability of each next word, and of the end, after the beginning of a sentence.
NextWords = Callable[[str], Mapping[str, float]]

_WORDS = ("a", "dog", "sees", "no", "bird", END)


def language(salt: int) -> NextWords:
    """Make a small language: after every beginning each word may come, with probabilities of its own."""

    def next_words(beginning: object) -> dict[str, float]:
        if not isinstance(beginning, str):
            raise TypeError(
                f"next_words takes the beginning as a text, got a {type(beginning).__name__}: "
                'join the words, " ".join(words[:n])'
            )
        key = sum((place + 3) * sum(map(ord, word)) for place, word in enumerate(beginning.split()))
        logits = torch.sin(torch.arange(1.0, len(_WORDS) + 1).double() * (key + salt) / 7)
        return dict(zip(_WORDS, (2 * logits).softmax(dim=-1).tolist(), strict=True))

    return next_words


def _steps(
    next_words: NextWords, words: list[str], beginning: Callable[[list[str], int], list[str]] | None = None
) -> list[float]:
    before = beginning or (lambda words, place: words[:place])
    return [next_words(" ".join(before(words, place)))[word] for place, word in enumerate(words)]


def _all_steps(next_words: NextWords, sentence: str, **how: Callable[[list[str], int], list[str]]) -> list:
    return _steps(next_words, [*sentence.split(), END], **how)


def log_probability(next_words: NextWords, sentence: str) -> float:
    """Add the logarithms of all steps, that of the end too."""
    return sum(map(math.log, _all_steps(next_words, sentence)))


def _from(begin: Callable[[list[str], int], list[str]]) -> Callable[[NextWords, str], float]:
    return lambda f, s: sum(map(math.log, _all_steps(f, s, beginning=begin)))


#: Wrong ways to give the log-probability of a sentence.
LOG_PROBABILITY: dict[str, Callable[[NextWords, str], float]] = {
    "You leave the end token out: a sentence also has to stop.": (
        lambda f, s: sum(map(math.log, _steps(f, s.split())))
    ),
    "You leave the first word out: it is predicted too, after the empty beginning.": (
        lambda f, s: sum(map(math.log, _all_steps(f, s)[1:]))
    ),
    "You leave out the first word and the end token: both are predicted.": (
        lambda f, s: sum(map(math.log, _steps(f, s.split())[1:]))
    ),
    "That is the probability itself: take its logarithm, or add logarithms from the start.": (
        lambda f, s: math.prod(_all_steps(f, s))
    ),
    "You add probabilities: they are multiplied, so add their logarithms.": (
        lambda f, s: sum(_all_steps(f, s))
    ),
    "The sign is wrong: the logarithm of a probability is negative. Yours is the surprise.": (
        lambda f, s: -log_probability(f, s)
    ),
    "You take the mean over the tokens: the logarithm of a product is a sum.": (
        lambda f, s: log_probability(f, s) / (len(s.split()) + 1)
    ),
    "You take the logarithm to base 2, so these are bits: nats are wanted.": (
        lambda f, s: log_probability(f, s) / math.log(2)
    ),
    "You take the logarithm to base 10: nats are wanted, math.log.": (
        lambda f, s: log_probability(f, s) / math.log(10)
    ),
    "Your beginning is the word before alone: give next_words all words so far.": _from(
        lambda words, place: words[max(place - 1, 0) : place]
    ),
    "Your beginning holds the word that is to be predicted: stop before it.": _from(
        lambda words, place: words[: place + 1]
    ),
    "Your beginning holds the word that is to be predicted, and the end token is missing.": (
        lambda f, s: sum(map(math.log, _steps(f, s.split(), beginning=lambda words, n: words[: n + 1])))
    ),
    "You take the most probable word at each place: take the one that stands there.": (
        lambda f, s: sum(
            math.log(max(f(" ".join(s.split()[:n])).values())) for n in range(len(s.split()) + 1)
        )
    ),
    "Your beginning is always empty: give next_words the words so far.": _from(lambda words, place: []),
    "You put <s> in front of the beginning: next_words starts with the empty text.": _from(
        lambda words, place: ["<s>", *words[:place]]
    ),
}
