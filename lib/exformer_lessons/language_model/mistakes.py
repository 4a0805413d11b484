"""Known mistakes, each with its hint: a leak of the future, perplexity."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from exformer_lessons.exercises.grading import Mistake

#: What gives the logits (batch, position, vocab_size) of ids (batch, position).
Model = Callable[[Tensor], Tensor]


def model_with_leak(
    leak: Tensor, *, salt: int, centered: bool = True, by_length: bool = False, vocab_size: int = 6
) -> Model:
    """Make a small language model: each position sums what its own and the earlier tokens say.

    Args:
        leak: How much each position (query) also reads of later positions (key); zero is no leak.
        salt: Another one, another model.
        centered: Whether a leak moves the logits, but not their sum.
        by_length: Whether all outputs depend on the number of tokens, which is no leak.
        vocab_size: Number of tokens.
    """
    rng = torch.Generator().manual_seed(salt)
    says = torch.randn((vocab_size, vocab_size), generator=rng).double()
    says -= centered * says.mean(dim=-1, keepdim=True)
    apart = torch.arange(len(leak))[:, None] - torch.arange(len(leak))
    reads = (0.5 ** apart.clamp(min=0).double()).tril() + leak.double().triu(1)

    def model(ids: Tensor) -> Tensor:
        n = ids.size(-1)
        return reads[:n, :n] @ says[ids] * (n if by_length else 1)

    return model


def _moves(model: Model, ids: Tensor, at: int = -1) -> Tensor:
    """Say how far each logit moves if the token of a position becomes the next one of the vocabulary."""
    before, other = model(ids), ids.clone()
    other[:, at] = (ids[:, at] + 1) % before.size(-1)
    return model(other) - before


def finds_leak(model: Model, ids: Tensor) -> bool:
    """Tell whether an output before the last moves with the last token."""
    return bool((_moves(model, ids)[:, :-1].abs() > 1e-9).any())


def _set_to(token: int) -> Callable[[Model, Tensor], bool]:
    def answer(model: Model, ids: Tensor) -> bool:
        other = ids.clone()
        other[:, -1] = token
        return bool((model(other) - model(ids))[:, :-1].any())

    return answer


def _copied(model: Model, ids: Tensor) -> bool:
    """Take the first token as the new last one."""
    return bool((model(torch.cat([ids[:, :-1], ids[:, :1]], dim=1)) - model(ids))[:, :-1].any())


def _cut(model: Model, ids: Tensor) -> bool:
    return bool((model(ids)[:, :-1] - model(ids[:, :-1])).abs().max() > 1e-9)


def _lengthened(model: Model, ids: Tensor) -> bool:
    return bool((model(torch.cat([ids, ids[:, :1]], dim=1))[:, :-1] - model(ids)).abs().max() > 1e-9)


def _beyond(tolerance: float) -> Callable[[Model, Tensor], bool]:
    return lambda model, ids: bool((_moves(model, ids)[:, :-1].abs() > tolerance).any())


def _most_probable(model: Model, ids: Tensor) -> bool:
    before = model(ids)
    return bool(((before + _moves(model, ids)).argmax(dim=-1) != before.argmax(dim=-1))[:, :-1].any())


#: Wrong ways to find out whether a model sees later tokens.
LEAK: dict[str, Mistake] = {
    "You say True where there is no leak, and False where there is one.": lambda f, x: not finds_leak(f, x),
    "You find a leak in every model, even without one: compare only the outputs before the changed token.": (
        lambda f, x: True
    ),
    "You find no leak in any model: are both of your texts the same? Copy ids before you change them.": (
        lambda f, x: False
    ),
    "Your new last token may be the old one: choose one that differs.": (*map(_set_to, range(6)), _copied),
    "You leave a token out, or add one: outputs may depend on the length. Change the last token instead.": (
        _cut,
        _lengthened,
        lambda f, x: _cut(f, x) or _lengthened(f, x),
    ),
    "You look at the output just before the last alone: a leak may be at any earlier position.": (
        lambda f, x: bool(_moves(f, x)[:, -2].any())
    ),
    "You look at the first output alone: a leak may be at any position before the last.": (
        lambda f, x: bool(_moves(f, x)[:, 0].any())
    ),
    "You compare the most probable tokens: a small leak moves the logits alone.": _most_probable,
    "Your differences cancel in a sum or mean: take their absolute values first.": (
        lambda f, x: bool(_moves(f, x)[:, :-1].sum().abs() > 1e-6)
    ),
    "Your tolerance is too large: a small leak is a leak, too.": tuple(map(_beyond, (0.01, 0.03, 0.1, 0.3))),
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
    "You reshape after a transpose, and logits are mixed: flatten (batch, position) as they are.": (
        lambda z, y, pad: mean_nats(z.mT.reshape(z.shape), y, pad).exp()
    ),
    "You are one position off: the targets are already shifted.": (
        lambda z, y, pad: mean_nats(z[:, :-1], y[:, 1:], pad).exp()
    ),
}
