"""Seeds: the same random numbers again."""

import random

import numpy as np
import torch


def set_seed(seed: int) -> None:
    """Seed all random number generators, of Python, NumPy and PyTorch, with an integer from 0 to 2³² - 1."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
