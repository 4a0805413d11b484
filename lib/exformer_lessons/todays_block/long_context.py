"""Recall of the last digit among letters, in texts eight times as long as those of the training."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from exformer import DecoderLM, DecoderLMConfig
from exformer.nn.eval_mode import evaluating
from exformer.nn.positions.rotary import RopeScaling
from exformer_lessons.measured import train_clipped
from exformer_lessons.todays_block.blocks import todays

N_LETTERS, N_DIGITS = 16, 10
SHOWN = 3  # digits in a text, of which the last is asked for
QUESTION = N_LETTERS + N_DIGITS  # the last token of each text
SHORTEST, LONGEST, TEST = 8, 64, 512  # tokens of a text in training, and in the test
RATE, STEPS, BATCH = 0.005, 600, 64
#: How far before the question the last digit is in the test.
DISTANCES = (1, 2, 4, 8, 12, 16, 20, 24, 28, 30, 31, 36, 44, 54, 61, 80, 96, 112, 128, 160)
DISTANCES += (192, 224, 256, 288, 320, 352, 384, 416, 448, 480, 509)


def reader(**settings: Any) -> DecoderLMConfig:
    """Return a small model of today's block with two layers."""
    return todays(QUESTION + 1, n_layers=2, n_heads=2, d_ff=64, max_len=TEST, **settings)


def texts(length: int, *, distances: Sequence[int], rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Make a text for each distance: letters, three different digits, and the question at the end.

    Args:
        length: Tokens of each text.
        distances: How far before the question the last digit of each text is; the other two are anywhere
            before it.
        rng: Its generator.

    Returns:
        The texts (text, length), and their last digits (text), counted from 0.

    Raises:
        ValueError: If a text has no room for its digits.

    >>> ids, digits = texts(5, distances=[1, 2], rng=torch.Generator().manual_seed(0))
    >>> ids >= N_LETTERS  # digits and the question
    tensor([[ True,  True, False,  True,  True],
            [ True,  True,  True, False,  True]])
    """
    furthest = length - SHOWN
    if not all(1 <= distance <= furthest for distance in distances):
        raise ValueError(f"distances must be from 1 to {furthest} in texts of {length}, got {distances}")
    n, last = len(distances), length - 1 - torch.tensor(distances)
    ids = torch.randint(N_LETTERS, (n, length), generator=rng)
    ids[:, -1] = QUESTION
    digits = torch.rand(n, N_DIGITS, generator=rng).topk(SHOWN, dim=1).indices
    before = torch.arange(length) < last[:, None]
    others = (torch.rand(n, length, generator=rng) * before).topk(SHOWN - 1, dim=1).indices
    ids.scatter_(1, torch.cat([last[:, None], others], dim=1), N_LETTERS + digits)
    return ids, digits[:, 0]


def learn(config: DecoderLMConfig, *, seed: int) -> DecoderLM:
    """Train a model on short texts, with the last digit anywhere in them."""
    torch.manual_seed(seed)
    model, rng = DecoderLM(config), torch.Generator().manual_seed(seed)

    def batch() -> tuple[Tensor, Tensor]:
        length = int(torch.randint(SHORTEST, LONGEST + 1, (1,), generator=rng))
        distances = torch.randint(1, length - SHOWN + 1, (BATCH,), generator=rng)
        return texts(length, distances=distances.tolist(), rng=rng)

    batches = (batch() for _ in range(STEPS))
    train_clipped(model, batches, _loss, rate=RATE, warmup=STEPS // 10, total=STEPS + 1)
    return model


def _loss(model: DecoderLM, batch: tuple[Tensor, Tensor]) -> Tensor:
    ids, digits = batch
    return cross_entropy(model(ids)[:, -1], digits)


def slowed(model: DecoderLM, factor: float) -> DecoderLM:
    """Return the same weights with all rotations slowed down, untrained at that speed (infinity: stopped)."""
    slow = DecoderLM(replace(model.config, rope_scaling=RopeScaling(factor)))
    slow.load_state_dict(model.state_dict())
    return slow


@torch.no_grad()
def accuracy(model: DecoderLM, distance: int, *, length: int = TEST, n_texts: int = 50) -> float:
    """Return the fraction of texts whose last digit a model names, at a distance; guesses get one in ten."""
    rng = torch.Generator().manual_seed(10_000 + distance)
    ids, digits = texts(length, distances=[distance] * n_texts, rng=rng)
    with evaluating(model):
        return (model(ids)[:, -1].argmax(dim=-1) == digits).double().mean().item()
