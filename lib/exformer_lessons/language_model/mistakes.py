"""Known mistakes, each with its hint: the probability of a sentence, perplexity, excess over the entropy."""

import math
from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from exformer_lessons.exercises.grading import Mistake

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
        words = beginning.split()
        if beginning != " ".join(words):
            raise ValueError(
                f"next_words takes words with one space between them and none at the ends, got {beginning!r}"
            )
        if unknown := [word for word in words if word not in (*_WORDS, "<s>")]:
            raise ValueError(f"there is no word {unknown[0]!r}: put a space between the words of a beginning")
        key = sum((position + 3) * sum(map(ord, word)) for position, word in enumerate(words))
        logits = torch.sin(torch.arange(1.0, len(_WORDS) + 1).double() * (key + salt) / 7)
        return dict(zip(_WORDS, (2 * logits).softmax(dim=-1).tolist(), strict=True))

    return next_words


def _steps(
    next_words: NextWords, words: list[str], beginning: Callable[[list[str], int], list[str]] | None = None
) -> list[float]:
    before = beginning or (lambda words, position: words[:position])
    return [next_words(" ".join(before(words, position)))[word] for position, word in enumerate(words)]


def _all_steps(next_words: NextWords, sentence: str, **how: Callable[[list[str], int], list[str]]) -> list:
    return _steps(next_words, [*sentence.split(), END], **how)


def log_probability(next_words: NextWords, sentence: str) -> float:
    """Add the logarithms of all steps, that of the end too."""
    return sum(map(math.log, _all_steps(next_words, sentence)))


def _from(begin: Callable[[list[str], int], list[str]]) -> Callable[[NextWords, str], float]:
    return lambda f, s: sum(map(math.log, _all_steps(f, s, beginning=begin)))


#: Wrong ways to give the log-probability of a sentence.
LOG_PROBABILITY: dict[str, Mistake] = {
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
    "The sign is wrong: the logarithm of a probability is negative. Yours is the negative log-likelihood.": (
        lambda f, s: -log_probability(f, s)
    ),
    "You take the mean over the tokens: the logarithm of a product is a sum.": (
        lambda f, s: log_probability(f, s) / (len(s.split()) + 1),
        lambda f, s: log_probability(f, s) / len(s.split()),
    ),
    "That is the logarithm of the last step alone: add those of all steps.": (
        lambda f, s: math.log(_all_steps(f, s)[-1])
    ),
    "You take the logarithm to base 2, so these are bits: return nats.": (
        lambda f, s: log_probability(f, s) / math.log(2)
    ),
    "You take the logarithm to base 10: return nats, math.log.": (
        lambda f, s: log_probability(f, s) / math.log(10)
    ),
    "Your beginning is the word before alone: give next_words all words so far.": _from(
        lambda words, position: words[max(position - 1, 0) : position]
    ),
    "Your beginning holds the word that is to be predicted: stop before it.": _from(
        lambda words, position: words[: position + 1]
    ),
    "Your beginning holds the word that is to be predicted, and the end token is missing.": (
        lambda f, s: sum(map(math.log, _steps(f, s.split(), beginning=lambda words, n: words[: n + 1])))
    ),
    "You take the most probable word at each position: take the one that is there.": (
        lambda f, s: sum(
            math.log(max(f(" ".join(s.split()[:n])).values())) for n in range(len(s.split()) + 1)
        )
    ),
    "Your beginning is always empty: give next_words the words so far.": _from(lambda words, position: []),
    "You put <s> in front of the beginning: next_words starts with the empty text.": _from(
        lambda words, position: ["<s>", *words[:position]]
    ),
}


def _nats(logits: Tensor, targets: Tensor, *, axis: int = -1) -> Tensor:
    return -logits.log_softmax(dim=axis).gather(-1, targets[..., None])[..., 0]  # (batch, position)


def mean_nats(logits: Tensor, targets: Tensor, pad_id: int) -> Tensor:
    """Average the negative log-likelihood over all tokens, padding left out."""
    return _nats(logits, targets)[targets != pad_id].mean()


def _by_sentence(logits: Tensor, targets: Tensor, pad_id: int) -> Tensor:
    real = targets != pad_id
    return (_nats(logits, targets) * real).sum(dim=1) / real.sum(dim=1)


#: Wrong ways to compute the perplexity of a batch.
PERPLEXITY: dict[str, Mistake] = {
    "That is the mean loss in nats: the perplexity is its exponential.": mean_nats,
    "You count the padding: leave out each position whose target is pad_id.": (
        lambda z, y, pad: _nats(z, y).mean().exp()
    ),
    "You take 0 for the padding token: use pad_id, which may be another.": (
        lambda z, y, pad: mean_nats(z, y, 0).exp()
    ),
    "You invert the mean probability: average the nats, then take the exponential.": (
        lambda z, y, pad: 1 / (-_nats(z, y)[y != pad]).exp().mean()
    ),
    "You add the nats of all tokens: a perplexity is of one token, so take their mean.": (
        lambda z, y, pad: _nats(z, y)[y != pad].sum().exp()
    ),
    "You set the padding to zero and still divide by its positions: divide by the real tokens.": (
        lambda z, y, pad: (_nats(z, y) * (y != pad)).mean().exp()
    ),
    "You average the perplexities of the sentences: average the nats of all tokens, then exp.": (
        lambda z, y, pad: _by_sentence(z, y, pad).exp().mean()
    ),
    "You average over the sentences: short ones then count as much as long ones. Average over tokens.": (
        lambda z, y, pad: _by_sentence(z, y, pad).mean().exp()
    ),
    "You average the probabilities' inverses: average the nats, then take the exponential.": (
        lambda z, y, pad: _nats(z, y)[y != pad].exp().mean()
    ),
    "You take exp of all nats of a sentence: a perplexity is of one token, so divide by their number.": (
        lambda z, y, pad: ((_nats(z, y) * (y != pad)).sum() / len(y)).exp()
    ),
    "The sign is wrong: a perplexity is at least 1. Yours is one over it.": (
        lambda z, y, pad: (-mean_nats(z, y, pad)).exp()
    ),
    "Your nats are raised to base 2: use exp, or take the logarithm to base 2 as well.": (
        lambda z, y, pad: 2 ** mean_nats(z, y, pad)
    ),
    "Your exponent is in bits and your base e: exp belongs to nats.": (
        lambda z, y, pad: (mean_nats(z, y, pad) / math.log(2)).exp()
    ),
    "Your softmax runs over the positions: it belongs on the last axis, over the vocabulary.": (
        lambda z, y, pad: _nats(z, y, axis=1)[y != pad].mean().exp()
    ),
    "You average logits: a log_softmax must first make log-probabilities of them.": (
        lambda z, y, pad: (-z.gather(-1, y[..., None])[..., 0][y != pad].mean()).exp()
    ),
    "You take the softmax twice: log_softmax and cross_entropy want logits.": (
        lambda z, y, pad: mean_nats(z.softmax(-1), y, pad).exp()
    ),
    "You average probabilities, and no logarithms: nll_loss wants log_softmax.": (
        lambda z, y, pad: F.nll_loss(z.softmax(-1).flatten(0, 1), y.flatten(), ignore_index=pad).exp()
    ),
    "You are one position off: the targets are already shifted.": (
        lambda z, y, pad: mean_nats(z[:, :-1], y[:, 1:], pad).exp()
    ),
}


def excess(model_nats: Tensor, true_nats: Tensor, n_tokens: Tensor) -> Tensor:
    """Divide what the model has too much by all tokens."""
    return (model_nats - true_nats).sum() / n_tokens.sum()


#: Wrong ways to compute the excess of a model.
EXCESS: dict[str, Mistake] = {
    "That is the model's loss: subtract what the truth has on the same sentences.": (
        lambda m, t, n: m.sum() / n.sum()
    ),
    "The sign is wrong: the model's nats minus the true ones.": lambda m, t, n: -excess(m, t, n),
    "You average over the sentences: short ones then count as much as long ones. Divide all by all tokens.": (
        lambda m, t, n: ((m - t) / n).mean()
    ),
    "That is nats per sentence: divide by the number of tokens, not of sentences.": (
        lambda m, t, n: (m - t).mean()
    ),
    "You do not divide: return nats per token.": lambda m, t, n: (m - t).sum(),
    "You take absolute differences: by chance the model may have less than the truth, and that counts.": (
        lambda m, t, n: (m - t).abs().sum() / n.sum()
    ),
    "You take the absolute value of the excess: by chance it may be negative, so keep its sign.": (
        lambda m, t, n: excess(m, t, n).abs()
    ),
    "You cut off what is negative: by chance the model may have less than the truth, and that counts.": (
        lambda m, t, n: (m - t).clamp(min=0).sum() / n.sum(),
        lambda m, t, n: excess(m, t, n).clamp(min=0),
    ),
    "You count in bits: return nats, so leave the factor out.": (
        lambda m, t, n: excess(m, t, n) / math.log(2)
    ),
    "You leave the end tokens out of the count: n_tokens counts them, and a model predicts them too.": (
        lambda m, t, n: (m - t).sum() / (n - 1).sum()
    ),
    "You divide by the true nats: divide by the number of tokens.": lambda m, t, n: (m - t).sum() / t.sum(),
    "That is a ratio of losses: take their difference.": lambda m, t, n: m.sum() / t.sum(),
    "That is a ratio of perplexities: take the difference of the losses, in nats.": (
        lambda m, t, n: excess(m, t, n).exp()
    ),
    "That is a difference of perplexities: take the difference of the losses, in nats.": (
        lambda m, t, n: (m.sum() / n.sum()).exp() - (t.sum() / n.sum()).exp()
    ),
    "You divide by the square of the number of tokens: once is enough.": (
        lambda m, t, n: excess(m, t, n) / n.sum()
    ),
}


def error(nats: Tensor, n_tokens: Tensor) -> Tensor:
    """Say how far all nats by all tokens may lie from their mean over other samples: one standard error."""
    beyond = nats - nats.sum() / n_tokens.sum() * n_tokens
    return beyond.square().sum().sqrt() / n_tokens.sum()


def excess_and_error(model_nats: Tensor, true_nats: Tensor, n_tokens: Tensor) -> Tensor:
    """Give the excess and its standard error as one vector."""
    gaps = model_nats - true_nats
    return torch.stack((gaps.sum() / n_tokens.sum(), error(gaps, n_tokens)))


def _scatter(nats: Tensor, n_tokens: Tensor) -> Tensor:
    return error(nats, n_tokens) * math.sqrt(len(nats))


def _corrected(nats: Tensor) -> float:
    """Give the factor of a standard deviation that divides by n - 1, for n sentences."""
    return math.sqrt(len(nats) / (len(nats) - 1))


#: Wrong ways to compute the standard error of an excess that is right.
ERROR: dict[str, Mistake] = {
    "The standard error is that of the model's loss: take it of the differences.": (
        lambda m, t, n: error(m, n)
    ),
    "You add both errors as if the sample were not the same: take that of the differences.": (
        lambda m, t, n: (error(m, n) ** 2 + error(t, n) ** 2).sqrt()
    ),
    "You subtract the errors of both losses: take the error of the differences.": (
        lambda m, t, n: error(m, n) - error(t, n)
    ),
    "Your second number is the square of the standard error: take its root.": (
        lambda m, t, n: error(m - t, n) ** 2
    ),
    "The standard error is in nats: divide it by the number of tokens, too.": (
        lambda m, t, n: error(m - t, n) * n.sum()
    ),
    "Subtract from each sentence its share of the mean first: the excess times its tokens.": (
        lambda m, t, n: (m - t).square().sum().sqrt() / n.sum()
    ),
    "You subtract the same from each sentence: a long one has more nats because it is long.": (
        lambda m, t, n: (m - t - (m - t).mean()).square().sum().sqrt() / n.sum(),
        lambda m, t, n: (m - t - (m - t).mean()).square().sum().sqrt() / n.sum() * _corrected(m),
    ),
    "You divide by n - 1 sentences, the lesson by n: your standard error is √(n / (n - 1)) times larger.": (
        lambda m, t, n: error(m - t, n) * _corrected(m)
    ),
    "You take the error of a mean of ratios, in which short sentences count as much as long ones.": (
        lambda m, t, n: ((m - t) / n).std() / math.sqrt(len(m)),
        lambda m, t, n: ((m - t) / n).std(correction=0) / math.sqrt(len(m)),
    ),
    "That is how far single sentences scatter: the mean of n of them varies √n times less.": (
        lambda m, t, n: _scatter(m - t, n),
        lambda m, t, n: _scatter(m - t, n) * _corrected(m),
    ),
    "You subtract the mean per token from a whole sentence: take it times the sentence's tokens.": (
        lambda m, t, n: (m - t - excess(m, t, n)).square().sum().sqrt() / n.sum()
    ),
    "That is the standard error in nats per sentence: divide by tokens, not by sentences.": (
        lambda m, t, n: error(m - t, n) * n.sum() / len(n)
    ),
}
