"""A small training run with everything that has a state, to be cut and killed by a test."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import mse_loss

from exformer.training.checkpoint import find_checkpoints, load_checkpoint, save_checkpoint
from exformer.training.loop import set_seed

STEPS = 12


class Run:
    """Two optimizers, dropout, a buffer, and three generators of random numbers.

    Args:
        chance: Gives a number. Where types are checked at run time, the checker draws from ``random`` too:
            only a process without it may use ``random.random``.
    """

    def __init__(self, chance: Callable[[], float] = float) -> None:
        set_seed(0)
        self.chance = chance
        self.model = nn.Sequential(nn.Linear(3, 5), nn.Dropout(0.5), nn.BatchNorm1d(5), nn.Linear(5, 2))
        matrices = [p for p in self.model.parameters() if p.ndim == 2]
        rest = [p for p in self.model.parameters() if p.ndim != 2]
        self.optimizers = [
            torch.optim.SGD(matrices, lr=0.1, momentum=0.9),
            torch.optim.AdamW(rest, lr=0.01, betas=(0.8, 0.9)),
        ]

    def step(self) -> None:
        """Take a step on what chance gives."""
        scale = self.chance() + np.random.rand()
        loss = mse_loss(self.model(scale * torch.randn(7, 3)), torch.randn(7, 2))
        self.model.zero_grad()
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()

    def save(self, folder: Path, step: int, **options: object) -> Path:
        """Write a checkpoint."""
        return save_checkpoint(folder, step=step, model=self.model, optimizers=self.optimizers, **options)

    def load(self, path: Path) -> tuple[int, dict]:
        """Go back to a checkpoint."""
        return load_checkpoint(path, model=self.model, optimizers=self.optimizers)


def train_with_checkpoints(folder: Path) -> None:
    """Begin or go on, with a checkpoint after every step."""
    run, done = Run(random.random), 0
    if found := find_checkpoints(folder):
        done, _ = run.load(found[-1])
    while done < STEPS:
        run.step()
        time.sleep(0.01)
        done += 1
        run.save(folder, done)
