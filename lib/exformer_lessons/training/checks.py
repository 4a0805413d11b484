"""Tests of a program before it trains for long, which need no entropy of the language, and what they find."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from exformer import DecoderLM, pad
from exformer.nn.eval_mode import evaluating
from exformer.nn.loss import nll
from exformer_lessons.tables import Table, table
from exformer_lessons.training.programs import (
    LETTERED,
    Program,
    Rows,
    inputs_and_targets,
    logits_of,
    make_optimizers,
    new_model,
    reported_loss,
    take_step,
    tokenizer,
    train,
    training_rows,
    validation_rows,
)

Run = Mapping[str, Any]


def targets_follow(rows: Rows, program: Program) -> bool:
    """Return whether each target is the token after the one that the model reads."""
    ids = pad(rows, pad_id=tokenizer().pad_id)
    inputs, targets = inputs_and_targets(ids, program)
    n = min(targets.size(1), ids.size(1) - 1)
    return bool((inputs[:, :n] == ids[:, :n]).all() and (targets[:, :n] == ids[:, 1 : n + 1]).all())


def copied(program: Program, *, seed: int) -> float:
    """Return the fraction of the validation sentences that are training sentences too."""
    known = {tuple(row) for row in training_rows(program.n_texts, 0)}
    rows = validation_rows(program, seed=seed)
    return sum(tuple(row) in known for row in rows) / len(rows)


def read_for_each_target(model: DecoderLM, row: list[int], program: Program) -> Tensor:
    """Return which tokens of a sentence the loss of each token depends on, by its gradient.

    Args:
        model: The model; it is evaluated without dropout.
        row: Token ids.
        program: How inputs and targets are made.

    Returns:
        Booleans (target, token read), all tokens of the sentence on both sides.
    """
    inputs, targets = inputs_and_targets(torch.tensor([row]), program)
    vectors: list[Tensor] = []

    def keep(module: object, given: object, out: Tensor) -> Tensor:
        vectors.append(out.detach().requires_grad_())
        return vectors[-1]

    found = torch.zeros(len(row), len(row), dtype=torch.bool)
    handle, training = model.embedding.register_forward_hook(keep), model.training
    nats = nll(logits_of(model.eval(), inputs, program), targets)[0]
    handle.remove()
    model.train(training)
    for position, loss in enumerate(nats):
        (gradient,) = torch.autograd.grad(loss, vectors[0], retain_graph=True)
        found[position + program.shift, : inputs.size(1)] = gradient[0].abs().amax(dim=-1) > 0
    return found


def reads_what_comes_before(model: DecoderLM, row: list[int], program: Program) -> bool:
    """Return whether the loss of each token depends on all tokens before it, and on no other."""
    n = len(row)
    return torch.equal(read_for_each_target(model, row, program), torch.ones(n, n).tril(-1).bool())


@torch.no_grad()
def loss_by_hand(model: DecoderLM, rows: Rows) -> float:
    """Return the loss per token of sentences, each token by itself, after nothing but those before it."""
    nats, n = 0.0, 0
    with evaluating(model):
        for row in rows:
            for t in range(1, len(row)):
                logits = model(torch.tensor([row[:t]]))[0, -1]
                nats -= logits.log_softmax(dim=-1)[row[t]].item()
                n += 1
    return nats / n


def entropy_of_batch(rows: Rows) -> float:
    """Return the entropy per token of a language that has these sentences, each as often as it occurs.

    >>> f"{entropy_of_batch([[1, 5, 2], [1, 6, 7, 8, 2]]):.4f}"  # log 2 over 3 tokens
    '0.2310'
    """
    counts = Counter(map(tuple, rows))
    nats = sum(math.log(len(rows) / counts[tuple(row)]) for row in rows)
    return nats / sum(len(row) - 1 for row in rows)


def learn_one_batch(program: Program, rows: Rows, *, seed: int) -> float:
    """Train on one batch and nothing else; return the loss on it that the program reports."""
    model = new_model(program, seed=seed)
    optimizers = make_optimizers(model, program)
    ids = pad(rows, pad_id=tokenizer().pad_id)
    for step in range(1, program.steps + 1):
        take_step(model, ids, program, optimizers, step)
    return reported_loss(model.train(program.noisy), rows, program)


def check(program: Program, *, seed: int) -> dict[str, Any]:
    """Return what the tests measure of a program."""
    model = new_model(program, seed=seed).train(program.noisy)
    validation = validation_rows(program, seed=seed)
    n, few = program.batch, validation[:30]
    batch = training_rows(program.n_texts, 0)[seed * n : (seed + 1) * n]
    return {
        "targets": targets_follow(batch, program),
        "copied": copied(program, seed=seed),
        "first": reported_loss(model, validation, program),
        "reads": reads_what_comes_before(model, validation[0], program),
        "few": reported_loss(model, few, program),
        "by hand": loss_by_hand(model, few),
        "batch": learn_one_batch(program, batch, seed=seed),
        "entropy": entropy_of_batch(batch),
        "blind": train(replace(program, blind=True), seed=seed, curves=False)[1]["reported"],
    }


#: Each test, what a sound program gives, and whether a run fails it.
CHECKS: dict[str, tuple[str, Callable[[Run], bool]]] = {
    "1. Print a batch as words, inputs above targets": (
        "each target is the next word",
        lambda run: not run["targets"],
    ),
    "2. Look up the validation texts in the training set": (
        "only a few short ones are there",
        lambda run: run["copied"] > 0.5,
    ),
    "3. Loss before the first step": (
        "log V or higher",
        lambda run: run["first"] < math.log(tokenizer().vocab_size) - 0.5,
    ),
    "4. Gradient of one token’s loss by each embedding that is read": (
        "zero from this token on, and not before it",
        lambda run: not run["reads"],
    ),
    "5. Score 30 texts by hand": (
        "what the program reports for them",
        lambda run: abs(run["few"] - run["by hand"]) > 1e-3,
    ),
    "6. Train on a single batch": (
        "ends within 1% of the batch’s entropy",
        lambda run: abs(run["batch"] / run["entropy"] - 1) > 0.01,
    ),
    "7. Train with all inputs replaced by one token": (
        "ends clearly higher",
        lambda run: run["blind"] - run["reported"] < 0.2,
    ),
}


def found(runs: Mapping[str, list[Run]]) -> dict[str, str]:
    """Return the letters of the programs that fail each test, whatever the seed.

    Args:
        runs: What the tests measured of each program, by its name, a run for each seed.

    Raises:
        ValueError: If a program fails a test with some of its seeds only.
    """
    letters: dict[str, str] = {}
    for name, (_, fails) in CHECKS.items():
        verdicts = [{fails(run) for run in runs[program]} for program in LETTERED]
        if any(len(verdict) > 1 for verdict in verdicts):
            raise ValueError(f"{name}: seeds disagree")
        pairs = zip("ABCDEFGHIJKL", verdicts, strict=True)
        letters[name] = ", ".join(letter for letter, verdict in pairs if verdict == {True})
    return letters


def checklist(runs: Mapping[str, list[Run]]) -> Table:
    """Return the tests as a table: what a sound program gives, and which of the lesson's programs fail."""
    rows = {name: [CHECKS[name][0], letters] for name, letters in found(runs).items()}
    return table(rows, columns=["a sound program", "fails"], corner="test")
