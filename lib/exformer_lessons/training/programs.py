"""Programs that train the same small language model, each sick in one way or in none."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import torch
from torch import Tensor

from exformer import DecoderLM, DecoderLMConfig, WordTokenizer, generate, pad
from exformer.corpora import english
from exformer.nn.eval_mode import evaluating
from exformer.nn.loss import nll
from exformer.training.gradient_clipping import clip_gradients
from exformer.training.muon import Muon
from exformer.training.optimizers import adamw, split_parameters
from exformer.training.schedules import linear_schedule

Rows = Sequence[list[int]]
Optimizers = Sequence[tuple[torch.optim.Optimizer, float]]  # each with its largest learning rate
EVERY = 20  # steps between two points of a curve


@dataclass(frozen=True)
class Program:
    """How a program trains, and how it computes the loss that it reports.

    Args:
        causal: Whether a position sees only itself and the earlier ones.
        shift: How many positions ahead the target is.
        average: Over "tokens", over "positions" (the padding too), or first within "sentences".
        noisy: Whether dropout stays on in evaluation.
        copies: Whether the validation sentences are copies of training sentences.
        blind: Whether every token that the model reads is replaced by ``<s>``.
        n_texts: Number of different training sentences.
        peak: Largest learning rate.
        warmup: Steps in which the learning rate rises.
        clip: Largest norm of the gradient; None for no limit.
        dropout: Probability with which a number is set to zero.
        decay: Weight decay.
        optimizer: "adamw", or "muon" for the matrices of the layers and AdamW for the rest.
        muon_peak: Largest learning rate of Muon.
        d_model: Width of the model; its feed-forward networks are four times as wide.
        n_layers: Number of layers.
        batch: Sentences per step.
        steps: Number of steps.
    """

    causal: bool = True
    shift: int = 1
    average: str = "tokens"
    noisy: bool = False
    copies: bool = False
    blind: bool = False
    n_texts: int = 24_000
    peak: float = 1e-2
    warmup: int = 40
    clip: float | None = 1.0
    dropout: float = 0.0
    decay: float = 0.0
    optimizer: str = "adamw"
    muon_peak: float = 2e-2
    d_model: int = 48
    n_layers: int = 2
    batch: int = 32
    steps: int = 300


#: The dozen of the lesson: one is well, one is sick and does not show it.
DOZEN = {
    "healthy": Program(),
    "no causal mask": Program(causal=False),
    "targets not shifted": Program(shift=0),
    "targets shifted twice": Program(shift=2),
    "padding counted": Program(average="positions"),
    "mean of means": Program(average="sentences"),
    "dropout in evaluation": Program(dropout=0.2, noisy=True),
    "learning rate too high": Program(peak=0.3),
    "learning rate too low": Program(peak=3e-4),
    "no warm-up, no clipping": Program(warmup=1, clip=None),
    "overfitting": Program(n_texts=300),
    "leaking split": Program(n_texts=300, copies=True),
}

#: The programs of the lesson, from A to L.
LETTERED = (
    "learning rate too low",
    "no causal mask",
    "dropout in evaluation",
    "overfitting",
    "padding counted",
    "healthy",
    "targets shifted twice",
    "leaking split",
    "mean of means",
    "no warm-up, no clipping",
    "targets not shifted",
    "learning rate too high",
)

#: The cause of each patient of the exercise.
CAUSES = {
    "P": "learning rate too low",
    "Q": "padding counted",
    "R": "leaking split",
    "S": "no causal mask",
    "T": "dropout in evaluation",
    "U": "targets shifted twice",
    "V": "targets not shifted",
    "W": "learning rate too high",
}


@cache
def tokenizer() -> WordTokenizer:
    """Return the tokenizer of the small English."""
    return WordTokenizer.from_texts(english.WORDS)


def encode(sentences: Sequence[str]) -> list[list[int]]:
    """Return the token ids of sentences, with start and end token."""
    tok = tokenizer()
    return [[tok.bos_id, *tok.encode(sentence), tok.eos_id] for sentence in sentences]


@cache
def training_rows(n: int, seed: int) -> list[list[int]]:
    """Return the training sentences."""
    return encode(english.sample(n, seed=seed))


@cache
def fresh_rows() -> list[list[int]]:
    """Return 500 new sentences, which no program trains on."""
    return encode(english.sample(500, seed=10_000))


def new_model(program: Program, *, seed: int) -> DecoderLM:
    """Return the model before training."""
    torch.manual_seed(seed)
    sizes = {"d_model": program.d_model, "d_ff": 4 * program.d_model, "n_heads": 4}
    return DecoderLM(
        DecoderLMConfig(
            tokenizer().vocab_size,
            **sizes,
            n_layers=program.n_layers,
            positions="rotary",
            dropout=program.dropout,
        )
    )


def logits_of(model: DecoderLM, ids: Tensor, program: Program) -> Tensor:
    """Return the logits (batch, position, vocab_size), with the causal mask or without."""
    if program.causal:
        return model(ids)
    x = model.embedding(ids)
    for layer in model.layers:
        x = layer(x, mask=(ids != tokenizer().pad_id)[:, None])
    return model.logits(model.norm(x))


def inputs_and_targets(ids: Tensor, program: Program) -> tuple[Tensor, Tensor]:
    """Return what the model of a program reads at each position, and what it should predict there."""
    shift = program.shift
    inputs, targets = ids[:, : ids.size(1) - shift], ids[:, shift:]
    return torch.full_like(inputs, tokenizer().bos_id) if program.blind else inputs, targets


def loss_of(model: DecoderLM, ids: Tensor, program: Program) -> Tensor:
    """Return the loss of a batch as a program computes it."""
    inputs, targets = inputs_and_targets(ids, program)
    nats = nll(logits_of(model, inputs, program), targets)  # (batch, position)
    real = targets != tokenizer().pad_id
    if program.average == "positions":
        return nats.mean()
    if program.average == "sentences":
        return ((nats * real).sum(dim=1) / real.sum(dim=1)).mean()
    return nats[real].mean()


@torch.no_grad()
def reported_loss(model: DecoderLM, rows: Rows, program: Program) -> float:
    """Return the loss on sentences as a program reports it."""
    return loss_of(model, pad(rows, pad_id=tokenizer().pad_id), program).item()


def right_loss(model: DecoderLM) -> float:
    """Return the mean loss over all tokens of new sentences, with the mask and without dropout."""
    with evaluating(model):
        return reported_loss(model, fresh_rows(), Program())


def validation_rows(program: Program, *, seed: int) -> list[list[int]]:
    """Return the sentences on which a program reports its loss."""
    if program.copies:
        return Random(seed).choices(training_rows(program.n_texts, 0), k=500)
    return fresh_rows()


def take_step(model: DecoderLM, ids: Tensor, program: Program, optimizers: Optimizers, step: int) -> float:
    """Take one step of a program on a batch; return the loss before it."""
    for optimizer, peak in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = linear_schedule(step, peak=peak, warmup=program.warmup, total=program.steps)
        optimizer.zero_grad()
    loss = loss_of(model.train(), ids, program)
    loss.backward()
    if program.clip is not None:
        clip_gradients(model.parameters(), max_norm=program.clip)
    for optimizer, _ in optimizers:
        optimizer.step()
    return loss.item()


def train(program: Program, *, seed: int, curves: bool = True) -> tuple[DecoderLM, dict[str, Any]]:
    """Train a model as a program does.

    Args:
        program: What it does.
        seed: Of the initialization and of the order of the sentences.
        curves: Whether to measure the curves.

    Returns:
        The model and what was measured: its curves of training and validation, a point each 20 steps; what
        it reports at last, the same reported once more, and the loss measured correctly.
    """
    model, rng = new_model(program, seed=seed), Random(seed)
    texts, validation = training_rows(program.n_texts, 0), validation_rows(program, seed=seed)
    optimizers = make_optimizers(model, program)
    found: dict[str, Any] = {"training": [], "validation": []} if curves else {}
    recent: list[float] = []
    for step in range(1, program.steps + 1):
        ids = pad(rng.choices(texts, k=program.batch), pad_id=tokenizer().pad_id)
        recent.append(take_step(model, ids, program, optimizers, step))
        if curves and (step == 1 or step % EVERY == 0):
            found["training"].append(sum(recent) / len(recent))
            found["validation"].append(reported_loss(model.train(program.noisy), validation, program))
            recent = []
    model.train(program.noisy)
    twice = [reported_loss(model, validation, program) for _ in range(2)]
    measured = {"reported": twice[0], "again": twice[1], "right": right_loss(model.eval())}
    return model, found | measured


def write(model: DecoderLM, *, n: int, seed: int = 0) -> list[str]:
    """Return how a model continues *the small dog*."""
    return [*generate(model.eval(), tokenizer(), ["the small dog"] * n, max_new_tokens=10, seed=seed)]


def make_optimizers(model: DecoderLM, program: Program) -> list[tuple[torch.optim.Optimizer, float]]:
    """Return the optimizers of a program, each with its largest learning rate."""
    if program.optimizer == "adamw":
        return [(adamw(model.parameters(), weight_decay=program.decay), program.peak)]
    matrices, rest = split_parameters(model)
    return [(Muon(matrices), program.muon_peak), (adamw(rest), program.peak)]
