"""A directory of facts, frequent and rare: how many does a model learn by heart, with experts or without?"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from exformer import DecoderLM, DecoderLMConfig
from exformer.nn.eval_mode import evaluating
from exformer.nn.mixture_of_experts import add_balance_loss, record_routing
from exformer_lessons.facts import N_SYMBOLS, Facts
from exformer_lessons.measured import train_clipped
from exformer_lessons.todays_block.blocks import todays

STEPS, BATCH, WIDTH = 800, 512, 96


def memory(d_ff: int = WIDTH, **settings: Any) -> DecoderLMConfig:
    """Return a model of one layer of today's block, which reads a key."""
    return todays(N_SYMBOLS, n_layers=1, n_heads=4, d_ff=d_ff, max_len=3, **settings)


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
    model, batches = DecoderLM(config), list(Facts().batches(steps, size=BATCH, seed=seed))
    train_clipped(model, batches, value_loss, rate=rate, warmup=steps // 20, total=steps)
    return model
