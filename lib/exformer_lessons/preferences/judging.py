"""A small language model, judges of its texts, and the ways in which it learns from them."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache
from math import exp
from random import Random
from typing import Any

import torch
from torch import Tensor

from exformer import DecoderLM, pad
from exformer.corpora import english
from exformer.nn.eval_mode import evaluating
from exformer.training.gradient_clipping import clip_gradients
from exformer.training.optimizers import adamw
from exformer.training.preferences import (
    completion_log_probabilities,
    completion_mask,
    dpo_loss,
    group_advantages,
)
from exformer_lessons.training.programs import Program, encode, right_loss, tokenizer, train

#: A judge: from a text, None where it did not end, to its reward.
Judge = Callable[[str | None], float]

LONGEST = 24  #: Most tokens of a text, its end among them.
JUDGED = 7_680  #: How many texts are judged, by every way of learning.
GROUP = 128  #: Texts of a step of the policy gradient.


def base_model(*, seed: int) -> DecoderLM:
    """Train the language model that is to be judged: 60 steps, so that most of its texts are wrong."""
    return train(Program(steps=60, d_model=64), seed=seed, curves=False)[0].eval()


@torch.no_grad()
def sample_ids(model: DecoderLM, n: int, *, rng: torch.Generator, temperature: float = 1.0) -> Tensor:
    """Sample texts from the start token on; (text, position), with padding after the end token."""
    tok = tokenizer()
    ids = last = torch.full((n, 1), tok.bos_id)
    ended = torch.zeros(n, dtype=torch.bool)
    with evaluating(model):
        cache = model.new_cache()
        while ids.size(1) <= LONGEST and not ended.all():
            p = (model(last, cache=cache)[:, -1] / temperature).softmax(dim=-1)
            last = torch.multinomial(p, 1, generator=rng).masked_fill(ended[:, None], tok.pad_id)
            ids = torch.cat([ids, last], dim=1)
            ended |= last[:, 0] == tok.eos_id
    return ids


def texts_of(ids: Tensor) -> list[str | None]:
    """Return the texts, None for one that did not end."""
    tok = tokenizer()
    rows = [row[1:] for row in ids.tolist()]
    return [tok.decode(row[: row.index(tok.eos_id)]) if tok.eos_id in row else None for row in rows]


def sample_texts(model: DecoderLM, n: int, *, seed: int, temperature: float = 1.0) -> list[str | None]:
    """Sample texts; None for one that did not end."""
    rng = torch.Generator().manual_seed(seed)
    return texts_of(sample_ids(model, n, rng=rng, temperature=temperature))


@cache
def is_right(text: str | None) -> bool:
    """Judge a text: it ends, and the grammar can generate it."""
    if not text or not set(text.split()) <= set(english.WORDS):  # a special token is no word
        return False
    return english.is_grammatical(text)


def words_of(text: str | None) -> int:
    """Count the words of a text; of one that did not end, all that were generated."""
    return LONGEST if text is None else len(text.split())


def words_if_right(text: str | None) -> int:
    """Count the words of a right text; 0 for a wrong one."""
    return words_of(text) if is_right(text) else 0


def log_p(model: DecoderLM, ids: Tensor) -> Tensor:
    """Return the log-probability of each text, up to its end token."""
    mask = completion_mask(ids, prompt_length=1, eos_id=tokenizer().eos_id)
    return completion_log_probabilities(model(ids), ids, mask=mask)


def new_optimizer(model: DecoderLM, *, rate: float) -> torch.optim.Optimizer:
    """Make the optimizer of every way of learning."""
    optimizer = adamw(model.parameters())
    set_rate(optimizer, rate)
    return optimizer


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def step(model: DecoderLM, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """Take a step of training, with clipping."""
    optimizer.zero_grad()
    loss.backward()
    clip_gradients(model.parameters(), max_norm=1.0)
    optimizer.step()


def policy_gradient(
    base: DecoderLM,
    judge: Judge,
    *,
    rate: float,
    seed: int,
    kl: float = 0.0,
    plain: bool = False,
    times: int = 1,
    watch: Callable[[int, DecoderLM], None] = lambda step, model: None,
) -> DecoderLM:
    """Reinforce what a judge rewards, with group advantages; ``kl`` is the price of a nat away from the base.

    Args:
        base: The model to begin with, and to stay near to.
        judge: Gives the reward of a text.
        rate: Learning rate.
        seed: Of the texts.
        kl: Coefficient of the log-ratio that is subtracted from the reward.
        plain: Whether to descend along the gradient itself, instead of with Adam.
        times: How many times as many texts are judged.
        watch: Called after every step.
    """
    model, rng = deepcopy(base), torch.Generator().manual_seed(seed)
    make = torch.optim.SGD if plain else adamw
    optimizer = make(model.parameters())
    set_rate(optimizer, rate)
    for number in range(1, times * JUDGED // GROUP + 1):
        ids = sample_ids(model, GROUP, rng=rng)
        rewards = torch.tensor([float(judge(text)) for text in texts_of(ids)])
        log_model = log_p(model, ids)
        if kl:
            with torch.no_grad():
                rewards = rewards - kl * (log_model - log_p(base, ids))
        advantages = group_advantages(rewards[None])[0]
        step(model, optimizer, -(advantages * log_model).mean())
        watch(number, model)
    return model


def fine_tune(model: DecoderLM, texts: Sequence[str], *, rate: float, steps: int, seed: int) -> DecoderLM:
    """Train on texts with the usual loss per token, 64 texts a step; the learning rate falls to 0."""
    model, rows, rng, tok = deepcopy(model), encode(texts), Random(seed), tokenizer()
    optimizer = new_optimizer(model, rate=rate)
    for number in range(steps):
        set_rate(optimizer, rate * (1 - number / steps))
        step(model, optimizer, model.loss(pad(rng.choices(rows, k=64), pad_id=tok.pad_id)))
    return model


def accepted(base: DecoderLM, *, rate: float, seed: int, rounds: int = 1, steps: int = 240) -> DecoderLM:
    """Fine-tune on the model's own texts that the grammar accepts; in each round it samples anew."""
    model, rng = base, torch.Generator().manual_seed(seed)
    for number in range(rounds):
        texts = texts_of(sample_ids(model, JUDGED // rounds, rng=rng))
        kept = [text for text in texts if text and is_right(text)]
        if kept:
            model = fine_tune(model, kept, rate=rate, steps=steps // rounds, seed=100 * seed + number)
    return model


Pairs = tuple[list[list[int]], list[list[int]]]  #: Token ids of the preferred texts, and of the others.


def own_pairs(base: DecoderLM, *, n: int, seed: int) -> Pairs:
    """Return right and wrong texts of the model itself; any two are a pair."""
    texts = [text for text in sample_texts(base, n, seed=seed) if text]
    return encode([t for t in texts if is_right(t)]), encode([t for t in texts if not is_right(t)])


def verb_pairs(n: int, *, seed: int) -> Pairs:
    """Return beginnings of sentences up to the verb, once with its right form and once with the wrong one."""
    items = english.agreement_items(n, attractors=1, seed=seed)
    both = ([f"{i.prefix} {i.right}" for i in items], [f"{i.prefix} {i.wrong}" for i in items])
    right, wrong = ([row[:-1] for row in encode(texts)] for texts in both)  # the sentence goes on
    return right, wrong


def pair_log_p(model: DecoderLM, rows: Sequence[Sequence[int]]) -> Tensor:
    """Return the log-probability of each row of a list; a row may stop before its end token."""
    ids = pad(rows, pad_id=tokenizer().pad_id)
    mask = ids != tokenizer().pad_id
    mask[:, 0] = False
    return completion_log_probabilities(model(ids), ids, mask=mask)


def dpo(
    base: DecoderLM,
    pairs: Pairs,
    *,
    rate: float,
    seed: int,
    matched: bool,
    beta: float = 0.1,
    watch: Callable[[int, DecoderLM], None] = lambda step, model: None,
) -> DecoderLM:
    """Train on pairs by direct preference optimization, 120 steps of 64 pairs.

    Args:
        base: The model to begin with, and the reference.
        pairs: Preferred and rejected texts.
        rate: Learning rate.
        seed: Of the choice of pairs.
        matched: Whether the texts with the same number belong together.
        beta: How strongly the model is held to the reference.
        watch: Called after every step.
    """
    model, rng = deepcopy(base), Random(seed)
    optimizer = new_optimizer(model, rate=rate)
    for number in range(1, 121):
        ours = rng.choices(range(len(pairs[0])), k=64)
        theirs = ours if matched else rng.choices(range(len(pairs[1])), k=64)
        batch = [pairs[0][i] for i in ours], [pairs[1][i] for i in theirs]
        with torch.no_grad():
            before = [pair_log_p(base, rows) for rows in batch]
        now = [pair_log_p(model, rows) for rows in batch]
        loss = dpo_loss(*now, reference_chosen=before[0], reference_rejected=before[1], beta=beta)
        step(model, optimizer, loss)
        watch(number, model)
    return model


def fine_tune_last(
    base: DecoderLM,
    rows: Sequence[Sequence[int]],
    *,
    rate: float,
    seed: int,
    watch: Callable[[int, DecoderLM], None] = lambda step, model: None,
) -> DecoderLM:
    """Train on the last token of rows, with as many steps and rows a step as :func:`dpo`."""
    model, rng, tok = deepcopy(base), Random(seed), tokenizer()
    optimizer = new_optimizer(model, rate=rate)
    for number in range(1, 121):
        batch = rng.choices(rows, k=64)
        ids = pad(batch, pad_id=tok.pad_id)
        last = torch.tensor([len(row) - 1 for row in batch])
        mask = torch.arange(ids.size(1)) == last[:, None]
        step(model, optimizer, -completion_log_probabilities(model(ids), ids, mask=mask).mean())
        watch(number, model)
    return model


@torch.no_grad()
def pairs_won(model: DecoderLM, base: DecoderLM, pairs: Pairs, *, beta: float = 0.1) -> dict[str, float]:
    """Measure a model on pairs: how many it wins, the loss, and how far both sides moved, in nats."""
    n = min(map(len, pairs))
    now, before = ([pair_log_p(m, rows[:n]) for rows in pairs] for m in (model, base))
    loss = dpo_loss(*now, reference_chosen=before[0], reference_rejected=before[1], beta=beta)
    return {
        "won": (now[0] > now[1]).float().mean().item(),
        "loss": loss.item(),
        "chosen": (now[0] - before[0]).mean().item(),
        "rejected": (now[1] - before[1]).mean().item(),
    }


def measure(model: DecoderLM, *, temperature: float = 1.0) -> dict[str, Any]:
    """Measure what a model generates, and what it still knows of the language.

    Returns:
        What :func:`counts` returns, and *different*: of 1,000 right texts, how many are different.
    """
    right, _ = ask(model, temperature=temperature)
    return counts(model, temperature=temperature) | {"different": len(set(right))}


def counts(model: DecoderLM, *, temperature: float = 1.0) -> dict[str, Any]:
    """Return how many of 1,000 texts are right, their mean number of words, and the excess in nats per token.

    The excess is the loss on new sentences above that of the grammar, at temperature 1.
    """
    texts = sample_texts(model, 1_000, seed=10_000, temperature=temperature)
    return of_texts(texts) | {"excess": right_loss(model) - floor()}


def of_texts(texts: Sequence[str | None]) -> dict[str, Any]:
    """Count the right texts, and average the words of all."""
    return {"right": sum(map(is_right, texts)), "words": sum(map(words_of, texts)) / len(texts)}


def ask(
    model: DecoderLM, n: int = 1_000, *, price: float = 0.0, temperature: float = 1.0
) -> tuple[list[str | None], float]:
    """Sample from the distribution that maximizes the reward of right texts minus a price of distance.

    It is that of the model, with wrong texts exp(-1 / price) times as probable beside right ones; without a
    price, they are asked for until one is right.

    Returns:
        The texts, and how many the model generated for each.
    """
    keep = exp(-1 / price) if price else 0.0
    kept: list[str | None] = []
    generated, rng = 0, Random(0)
    while len(kept) < n:
        if generated >= 50 * n:
            raise ValueError(
                f"of {generated:,} texts, only {len(kept)} are kept; the model must be right more often"
            )
        texts = sample_texts(model, 2 * n, seed=20_000 + generated, temperature=temperature)
        kept += [text for text in texts if is_right(text) or rng.random() < keep]
        generated += len(texts)
    return kept[:n], generated / len(kept)


@torch.no_grad()
def distance(model: DecoderLM, base: DecoderLM) -> float:
    """Return the Kullback-Leibler divergence of a model from another one, by 1,000 of its texts."""
    ids = sample_ids(model, 1_000, rng=torch.Generator().manual_seed(10_000))
    return (log_p(model, ids) - log_p(base, ids)).mean().item()


@cache
def floor() -> float:
    """Return the loss of the grammar itself on the new sentences."""
    return english.nats_per_token(english.sample(500, seed=10_000))
