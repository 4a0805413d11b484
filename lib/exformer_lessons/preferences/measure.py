"""Train what the lesson on preferences and rewards shows, with five seeds each.

    python -m exformer_lessons.preferences.measure [PART ...]

writes ``runs.json`` beside this file: all parts, or those that are named. All take twenty minutes on one
thread.
"""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from exformer import DecoderLM
from exformer.corpora import english
from exformer_lessons.measured import measure_parts, read_runs
from exformer_lessons.preferences import judging
from exformer_lessons.preferences.free_logits import different, reinforce_free_logits, texts_as_logits
from exformer_lessons.preferences.judging import base_model, is_right, measure, policy_gradient
from exformer_lessons.training.programs import encode, tokenizer

FILE = Path(__file__).with_name("runs.json")
SEEDS = range(5)
EVERY = 6  # steps between two measurements of a policy gradient
PRICES = (0.01, 0.03, 0.1, 0.3)  # of a nat away from the model before
TIMES = (1, 2, 5, 10)  # as many verdicts as the other trainings have
VOTES = (1, 3, 5, 9, 15, 25, 51, 101)

_base = cache(lambda seed: base_model(seed=seed))


def runs(part: str) -> dict[str, Any]:
    """Return what was measured of a part, by the name of its function.

    >>> len(runs("base")["base"])
    5
    """
    return read_runs(FILE)[part]


def base() -> dict[str, Any]:
    """Measure the model before it is judged, at several temperatures, and the grammar."""
    found = {"base": _five(_base)}
    for temperature in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3):
        found[f"temperature {temperature}"] = [
            measure(_base(seed), temperature=temperature) for seed in SEEDS
        ]
    texts = english.sample(1_000, seed=20_000)
    return found | {"grammar": judging.of_texts(texts) | {"different": len(set(texts))}}


def optimum() -> dict[str, Any]:
    """Sample from the distribution at which each price has its maximum, without any training."""
    found: dict[str, Any] = {}
    for price in (0.0, *PRICES):
        for seed in SEEDS:
            texts, each = judging.ask(_base(seed), price=price)
            found.setdefault(f"{price:g}", []).append(judging.of_texts(texts) | {"each": each})
    return found


def samples() -> dict[str, Any]:
    """Return texts of a model before and after a policy gradient, and after DPO on pairs of verbs."""
    by_judge = policy_gradient(_base(0), is_right, rate=3e-3, seed=0)
    by_pairs = judging.dpo(_base(0), judging.verb_pairs(400, seed=1), rate=1e-3, seed=0, matched=True)
    return {
        name: [text or "(does not end)" for text in judging.sample_texts(each, 6, seed=1)]
        for name, each in (("before", _base(0)), ("after", by_judge), ("pairs of verbs", by_pairs))
    }


def policy() -> dict[str, Any]:
    """Train by the policy gradient at four learning rates, at the highest with measurements on the way."""
    found = {f"{rate:g}": _judged(policy_gradient, is_right, rate=rate) for rate in (1e-4, 3e-4, 1e-3)}
    return found | {"0.003": [_course(seed) for seed in SEEDS]}


def winners() -> dict[str, Any]:
    """Find the text that wins, with Adam and by plain gradient descent, and its rank before the training."""
    found: dict[str, Any] = {}
    for name, plain, rate in (("adam", False, 3e-3), ("plain", True, 0.1)):
        for seed in SEEDS:
            model, won = _won(seed, rate=rate, seed=seed, plain=plain)
            found.setdefault(name, []).append(measure(model) | won)
    return found


def again() -> dict[str, Any]:
    """Find the text that wins when the first model is trained on other samples."""
    return {"other samples": [_won(0, rate=3e-3, seed=seed)[1] for seed in SEEDS]}


def _won(of: int, **settings: Any) -> tuple[DecoderLM, dict[str, Any]]:
    """Train by the policy gradient, and find the right text that then wins, and its rank before."""
    model = policy_gradient(_base(of), is_right, **settings)
    texts = judging.sample_texts(model, 1_000, seed=10_000)
    right = [text for text in texts if text and is_right(text)]
    winner = max(set(right), key=right.count)
    return model, {"winner": winner, "rank": _rank(_base(of), winner, seed=of)}


def free() -> dict[str, Any]:
    """Train a free logit for each text, with both optimizers, with and without division; and *before*."""
    found: dict[str, Any] = {}
    grids = {"adam": (0.1, 0.15, 0.2, 0.3, 1.0), "plain": (3.0, 5.0, 10.0, 20.0, 40.0)}
    for seed in SEEDS:
        logits, rewards = texts_as_logits(_base(seed), 20, seed=70_000 + 1_000 * seed)
        before = logits.softmax(dim=0)
        settings = [("before", lambda p=before: p)]
        for name, rates in grids.items():
            for rate in rates:
                for scale in (True, False):
                    training = partial(reinforce_free_logits, logits, rewards, rate=rate, seed=seed)
                    label = f"{name} {rate:g} {'divided' if scale else 'not divided'}"
                    settings.append((label, partial(training, scale=scale, plain=name == "plain")))
        for label, train in settings:
            p = train()
            run = {"right": (p @ rewards).item(), "different": different(p, rewards, seed=seed)}
            found.setdefault(label, []).append(run)
    return found


@torch.no_grad()
def _rank(model: DecoderLM, text: str, *, seed: int) -> int:
    """Return the rank of a text by its probability, among the right ones of 6,000 samples."""
    others = {each for each in judging.sample_texts(model, 6_000, seed=50_000 + seed) if is_right(each)}
    p = judging.pair_log_p(model, encode([text, *sorted(map(str, others - {text}))]))
    return 1 + int((p[1:] > p[0]).sum())


def kl() -> dict[str, Any]:
    """Train with a price of distance: one price at four learning rates, all at the highest two."""
    settings = [(rate, 0.1) for rate in (1e-4, 3e-4)]
    settings += [(rate, price) for rate in (1e-3, 3e-3) for price in PRICES]
    return {
        f"{rate:g} {price:g}": _judged(policy_gradient, is_right, rate=rate, kl=price)
        for rate, price in settings
    }


def longer() -> dict[str, Any]:
    """Train on ten times as many verdicts, with a price of distance and without, and measure on the way."""
    return {f"0.001 {price:g}": [_longer(seed, price) for seed in SEEDS] for price in (0.1, 0.0)}


def _longer(seed: int, price: float) -> list[dict[str, Any]]:
    course: list[dict[str, Any]] = []

    def watch(number: int, model: DecoderLM) -> None:
        if number * judging.GROUP in [times * judging.JUDGED for times in TIMES]:
            course.append(measure(model) | {"kl": judging.distance(model, _base(seed))})

    policy_gradient(_base(seed), is_right, rate=1e-3, seed=seed, kl=price, times=TIMES[-1], watch=watch)
    return course


def accepted() -> dict[str, Any]:
    """Fine-tune on accepted texts, once or in twelve rounds."""
    return {
        f"{rounds} {rate:g}": _judged(judging.accepted, rate=rate, rounds=rounds)
        for rounds in (1, 12)
        for rate in (1e-3, 3e-3, 1e-2)
    }


def own() -> dict[str, Any]:
    """Train by preferences on the model's own texts."""
    found: dict[str, Any] = {}
    for rate in (1e-4, 3e-4, 1e-3):
        for seed in SEEDS:
            model = judging.dpo(_base(seed), _own(seed)[0], rate=rate, seed=seed, matched=False)
            found.setdefault(f"{rate:g}", []).append(_moved(model, seed))
    return found


def verbs() -> dict[str, Any]:
    """Train on pairs of verbs by DPO, and on their right verbs alone, with measurements on the way."""
    pairs = judging.verb_pairs(400, seed=1)
    found: dict[str, Any] = {}
    for rate in (3e-4, 1e-3):
        by_dpo = partial(judging.dpo, pairs=pairs, matched=True, rate=rate)
        by_verb = partial(judging.fine_tune_last, rows=pairs[0], rate=rate)
        found[f"DPO {rate:g}"] = [_course_of(by_dpo, seed) for seed in SEEDS]
        found[f"right verbs {rate:g}"] = [_course_of(by_verb, seed) for seed in SEEDS]
    return found


def _course_of(train: Callable[..., DecoderLM], seed: int) -> list[dict[str, Any]]:
    new = judging.verb_pairs(300, seed=2)

    def of(model: DecoderLM) -> dict[str, Any]:
        return _of_pairs(model, seed, new) | {"verb": probability_of_verb(model, new)}

    course = [of(_base(seed))]

    def watch(number: int, model: DecoderLM) -> None:
        if number % 20 == 0:
            course.append(of(model))

    train(_base(seed), seed=seed, watch=watch)
    return course


@torch.no_grad()
def probability_of_verb(model: DecoderLM, pairs: judging.Pairs) -> float:
    """Return the mean probability of the preferred verb, the last token of each preferred row."""
    whole = judging.pair_log_p(model, pairs[0])
    begun = judging.pair_log_p(model, [row[:-1] for row in pairs[0]])
    return (whole - begun).exp().mean().item()


@cache
def _own(seed: int) -> tuple[judging.Pairs, judging.Pairs]:
    """Return pairs of own texts: those judged for training, and others."""
    model = _base(seed)
    return (
        judging.own_pairs(model, n=judging.JUDGED, seed=30_000 + seed),
        judging.own_pairs(model, n=2_000, seed=40_000 + seed),
    )


def _of_pairs(model: DecoderLM, seed: int, pairs: judging.Pairs) -> dict[str, Any]:
    return judging.counts(model) | judging.pairs_won(model, _base(seed), pairs)


def _moved(model: DecoderLM, seed: int) -> dict[str, Any]:
    """Measure a model, its distance, and how far it moved new right and wrong texts of the model before."""
    moved = judging.pairs_won(model, _base(seed), _own(seed)[1])
    return measure(model) | moved | {"kl": judging.distance(model, _base(seed))}


def length() -> dict[str, Any]:
    """Train by the policy gradient with rewards for words; of those for all texts, none stays right."""
    found: dict[str, Any] = {}
    for reward, rate, of in (
        (judging.words_of, 1e-3, judging.counts),
        (judging.words_if_right, 1e-3, measure),
        (judging.words_if_right, 3e-3, measure),
    ):
        five = found[f"{reward.__name__} {rate:g}"] = []
        for seed in SEEDS:
            model = policy_gradient(_base(seed), reward, rate=rate, seed=seed)
            five.append(of(model) | {"texts": judging.sample_texts(model, 3, seed=5)})
    return found


def votes() -> dict[str, Any]:
    """Compute what a vote, and a checker, make of the number of a verb, exactly."""
    found: dict[str, Any] = {}
    for attractors in (0, 1):
        items = english.agreement_items(300, attractors=attractors, seed=3)
        for seed in SEEDS:
            p = right_number(_base(seed), items)
            found.setdefault(f"vote {attractors}", []).append([vote(p, n) for n in VOTES])
            found.setdefault(f"checker {attractors}", []).append(
                [(1 - (1 - p) ** n).mean().item() for n in VOTES]
            )
            found.setdefault(f"most {attractors}", []).append((p > 0.5).float().mean().item())
    return found


@torch.no_grad()
def right_number(model: DecoderLM, items: list[english.MinimalPair]) -> torch.Tensor:
    """Return, for each beginning, the probability of the right form among the right and the wrong one."""
    tok = tokenizer()
    sides = [
        torch.stack([_next_log_p(model, item.prefix, word(item), tok) for item in items])
        for word in (lambda item: item.right, lambda item: item.wrong)
    ]
    return (sides[0] - sides[1]).double().sigmoid()


def _next_log_p(model: DecoderLM, prefix: str, word: str, tok: Any) -> torch.Tensor:
    ids = torch.tensor([[tok.bos_id, *tok.encode(prefix)]])
    return model(ids)[0, -1].log_softmax(dim=-1)[tok.encode(word)[0]]


def vote(p: torch.Tensor, n: int) -> float:
    """Return how often a majority of n votes is right, each right with the probability p of its item."""
    counts = torch.arange(n // 2 + 1, n + 1, dtype=torch.float64)
    n_of = torch.tensor(float(n), dtype=torch.float64)
    choose = torch.lgamma(n_of + 1) - torch.lgamma(counts + 1) - torch.lgamma(n_of - counts + 1)
    logs = choose + counts * p[:, None].log() + (n - counts) * (1 - p[:, None]).log()
    return logs.exp().sum(dim=1).mean().item()


def _five(make: Callable[[int], DecoderLM]) -> list[dict[str, Any]]:
    return [measure(make(seed)) for seed in SEEDS]


def _judged(learn: Callable[..., DecoderLM], *judge: judging.Judge, **settings: Any) -> list[dict[str, Any]]:
    return [_moved(learn(_base(seed), *judge, seed=seed, **settings), seed) for seed in SEEDS]


def _course(seed: int) -> dict[str, Any]:
    """Train by the policy gradient, and measure on the way."""
    course: dict[str, list[int]] = {"right": [], "different": []}

    def watch(number: int, model: DecoderLM) -> None:
        if number % EVERY == 0:
            found = measure(model)
            for name, values in course.items():
                values.append(found[name])

    model = policy_gradient(_base(seed), is_right, rate=3e-3, seed=seed, watch=watch)
    return _moved(model, seed) | {"course": course}


if __name__ == "__main__":
    measure_parts(
        FILE,
        *(base, optimum, samples, policy, winners, again, free, kl, longer, accepted),
        *(own, verbs, length, votes),
    )
