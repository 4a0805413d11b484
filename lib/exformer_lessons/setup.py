"""What every lesson starts with: seeds, one thread, the book's style."""

import torch

from exformer.training.loop import set_seed
from exformer_lessons.figures import use_book_style


def start(*, seed: int = 0) -> None:
    """Make a lesson give the same numbers each time, in the book's style: seeds, one thread, exact kernels.

    Args:
        seed: Seed of the random numbers of Python, numpy and torch.
    """
    set_seed(seed)
    torch.set_num_threads(1)
    torch.set_deterministic_debug_mode("error")  # use_deterministic_algorithms imports a compiler, for 1 s
    torch.set_printoptions(precision=3, sci_mode=False)
    use_book_style()
