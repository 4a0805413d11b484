"""A directory of facts, frequent and rare: how many does a model learn by heart, with experts or without?"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from exformer import DecoderLM, DecoderLMConfig, train
from exformer.nn.eval_mode import evaluating
from exformer.nn.mixture_of_experts import add_balance_loss, record_routing
from exformer.training.optimizers import adamw
from exformer.training.schedules import linear_schedule

N_SYMBOLS = 32
N_FACTS = N_SYMBOLS**3
STEPS, BATCH, WIDTH = 800, 512, 96


class Facts:
    """Keys of three symbols, each with a value; fact k occurs with a probability proportional to k^-1.5.

    Nothing follows from anything else: a value must be learned by heart, and the lowest loss is 0.
    """

    def __init__(self, *, seed: int = 0) -> None:
        rng = torch.Generator().manual_seed(seed)
        keys = torch.randperm(N_FACTS, generator=rng)  # the most frequent first
        self.keys = torch.stack(
            [keys // N_SYMBOLS**2, keys // N_SYMBOLS % N_SYMBOLS, keys % N_SYMBOLS], dim=1
        )
        self.values = torch.randint(N_SYMBOLS, (N_FACTS,), generator=rng)
        p = torch.arange(1, N_FACTS + 1).double() ** -1.5
        self.p = p / p.sum()

    def batches(self, n: int, *, size: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield n batches of keys and values."""
        rng = torch.Generator().manual_seed(seed)
        for _ in range(n):
            u = torch.rand(size, generator=rng, dtype=torch.float64)
            drawn = torch.searchsorted(self.p.cumsum(0), u).clamp(max=N_FACTS - 1)
            yield self.keys[drawn], self.values[drawn]


def memory(d_ff: int = WIDTH, **settings: Any) -> DecoderLMConfig:
    """Return a model of one layer of today's block, which reads a key."""
    return DecoderLMConfig(
        N_SYMBOLS,
        d_model=32,
        n_layers=1,
        n_heads=4,
        d_ff=d_ff,
        max_len=3,
        norm="rms",
        activation="swiglu",
        positions="rotary",
        bias=False,
        dropout=0.0,
        pad_id=None,
        **settings,
    )


def value_loss(model: DecoderLM, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the loss of the values, and in training the balance loss of the experts that find them."""
    keys, values = batch
    with record_routing() as routing:
        logits = model(keys)[:, -1]
    loss = cross_entropy(logits, values)
    return add_balance_loss(loss, model, logits=[each[:, -1] for each in routing], counts=[None])


@torch.no_grad()
def excess(model: DecoderLM, facts: Facts) -> tuple[float, list[float]]:
    """Return the expected loss over all facts, and the expected part of the tokens that each expert reads."""
    with evaluating(model), record_routing() as routing:
        logits = model(facts.keys)[:, -1]
    nats = cross_entropy(logits, facts.values, reduction="none")
    loads = []
    for each in routing:
        chosen = each[:, -1].topk(model.config.experts_per_token, dim=-1).indices
        used = torch.zeros_like(each[:, -1]).scatter(-1, chosen, 1.0)
        loads = (facts.p @ used.double() / model.config.experts_per_token).tolist()
    return (facts.p * nats).sum().item(), loads


def learn(config: DecoderLMConfig, *, rate: float, seed: int, steps: int = STEPS) -> DecoderLM:
    """Train a model on facts as they occur."""
    torch.manual_seed(seed)
    model = DecoderLM(config)
    schedule = partial(linear_schedule, peak=rate, warmup=steps // 20, total=steps)
    train(
        model,
        list(Facts().batches(steps, size=BATCH, seed=seed)),
        loss_fn=value_loss,
        optimizer=adamw(model.parameters()),
        schedule=schedule,
        clip_norm=1.0,
    )
    return model
