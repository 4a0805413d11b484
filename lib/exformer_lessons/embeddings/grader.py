"""Graders: the gradient of a table, the nearest rows of a table."""

from collections.abc import Callable
from typing import Any

import torch

from exformer_lessons.embeddings import mistakes as known
from exformer_lessons.exercises.grading import Verdict, grade, takes_functions
from exformer_lessons.exercises.results import UnfitError


@takes_functions
def grade_table_gradient(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_table_gradient(ids, ahead, vocab_size)``.

    Args:
        answer: Takes ids (position,), the gradient of the loss by each of their vectors (position, d_model),
            and the number of rows; returns the gradient by the table (vocab_size, d_model).
    """
    rng = torch.Generator().manual_seed(8)
    cases = []
    for ids, vocab_size, width in (([4, 1, 4, 4, 0], 7, 3), ([2, 2], 5, 4), ([10, 3, 6], 11, 2)):
        ahead = torch.randn((len(ids), width), generator=rng)
        cases.append((torch.tensor(ids), ahead, vocab_size))
    return grade(
        answer,
        right=known.table_gradient,
        mistakes=known.TABLE_GRADIENT,
        cases=cases,
        praise="Each row gets the sum of its uses' gradients, all others get nothing.",
    )


@takes_functions
def grade_neighbors(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_neighbors(table, i, n)``.

    Args:
        answer: Takes a table (token, d), an id and a number; returns the ids of the n other rows with the
            largest cosine with that of the id, the nearest first.

    Examples:
        >>> grade_neighbors(lambda table, i, n: (table @ table[i]).topk(n).indices)
        Not yet. You rank by the dot product, which favors long rows: divide each row by its length first.
    """
    rng = torch.Generator().manual_seed(9)
    cases = []
    for n_rows, width, i, n in ((12, 3, 4, 3), (9, 5, 0, 1), (15, 4, 14, 6), (7, 2, 3, 6), (20, 3, 11, 4)):
        rows = torch.randn((n_rows, width), generator=rng)
        rows *= torch.rand((n_rows, 1), generator=rng).mul(3).exp()  # long rows and short ones
        cases.append((rows, i, n))
    for i, other in ((4, 1), (2, 5)):  # another row has the direction of row i, exactly
        rows = torch.randn((8, 3), generator=rng)
        rows[i], rows[other] = torch.tensor([[0.0, 2.0, 0.0], [0.0, 6.0, 0.0]])
        cases.append((rows, i, 3))
    return grade(
        answer,
        right=known.neighbors,
        mistakes=known.NEIGHBORS,
        cases=cases,
        praise="Lengths do not count, and no word is its own neighbor.",
        frame=_ids,
    )


def _ids(given: Any, *case: object) -> object:
    if isinstance(given, tuple | list) and len(given) == 2 and isinstance(given[1], torch.Tensor):
        raise UnfitError("Return the ids alone, without their cosines.")
    return given
