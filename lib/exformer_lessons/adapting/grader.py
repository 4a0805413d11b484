"""Graders: the row of a prompt and its answer, and LoRA by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from exformer import BPETokenizer
from exformer_lessons.adapting import mistakes as known
from exformer_lessons.exercises.grading import Verdict, grade, takes_functions
from exformer_lessons.exercises.results import UnfitError, as_numbers

_TEXT = "the man will be here and the man will not be undone: to be or not to be, to undo or not to undo"


class _Shared(BPETokenizer):
    """A tokenizer that is not copied: its cache grows, which is no change that an answer makes."""

    def __deepcopy__(self, memo: object) -> object:
        return self


def _rows() -> list[tuple[str, str, BPETokenizer]]:
    tokenizer = _Shared.from_texts([_TEXT] * 3, n_merges=40)
    plain = _Shared([])
    return [
        ("to be or not to ", "be", tokenizer),  # a merge carries the space across
        ("to un", "do or not", tokenizer),  # a merge within a word
        ("to be, or not to be:", " to undo", tokenizer),
        ("the man", " will be here", tokenizer),
        ("a b ", "c", plain),  # no merge
    ]


def _flat(given: Any, *case: Any) -> np.ndarray:
    """Turn ids and marks into one row of numbers."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise UnfitError("Return two things: the ids, and for each of them whether it is a target.")
    ids, counted = (as_numbers(part).astype(float) for part in given)
    if ids.ndim != 1 or ids.shape != counted.shape:
        raise UnfitError(
            f"Give one True or False for each id: there are {ids.size} ids and {counted.size} marks."
        )
    if not np.isin(counted, (0, 1)).all():
        raise UnfitError("The second list says True or False for each id; the loss makes targets of them.")
    return np.concatenate([ids, counted])


@takes_functions
def grade_row(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_row(prompt, answer, tokenizer)``.

    Args:
        answer: Takes two texts and a tokenizer with ``encode`` and ``eos_id``; returns the ids of the whole
            text and, for each id, whether it is a target of the loss.
    """
    return grade(
        answer,
        right=known.answer_row,
        mistakes=known.ROW,
        cases=_rows(),
        praise="The answer and its end are targets, and the prompt is what the model reads at generation.",
        frame=_flat,
    )


def _cases() -> list[tuple[Tensor, Tensor, Tensor, Tensor, float]]:
    rng = torch.Generator().manual_seed(15)
    cases = []
    for d_out, d_in, rank, alpha in ((5, 3, 2, 6.0), (4, 4, 3, 2.0), (2, 7, 1, 3.0)):
        x, w, a, b = (
            torch.randn(shape, generator=rng, dtype=torch.float64)
            for shape in ((6, d_in), (d_out, d_in), (rank, d_in), (d_out, rank))
        )
        cases.append((x, w, a, b, alpha))
    return cases


def _begin(begin: Callable[..., Any]) -> str:
    """Return what is wrong with the matrices before training; nothing if they are right."""
    for d_out, d_in, rank in ((5, 3, 2), (4, 4, 3), (2, 7, 1)):
        w = torch.ones(d_out, d_in)
        try:
            given = begin(w, rank)
        except Exception as error:  # whatever a reader's code raises is shown to the reader
            return f"Your function raised {type(error).__name__}: {error}"
        if given is None or given is Ellipsis:
            return "Your first function returns nothing."
        if not isinstance(given, tuple | list) or len(given) != 2:
            return "The first function must return two matrices, A and B."
        try:
            a, b = (torch.as_tensor(as_numbers(part)) for part in given)
        except (TypeError, ValueError, RuntimeError, UnfitError):
            return "The first function must return two matrices of numbers, A and B."
        if (a.shape, b.shape) == ((d_out, rank), (rank, d_in)) != ((rank, d_in), (d_out, rank)):
            return "Return A first and then B: A reads the input, so it has as many columns as W."
        if a.shape != (rank, d_in) or b.shape != (d_out, rank):
            return (
                f"For a W of {d_out} × {d_in} and rank {rank}, A must be {rank} × {d_in} and B {d_out} × "
                f"{rank}; "
                f"yours are {' × '.join(map(str, a.shape))} and {' × '.join(map(str, b.shape))}."
            )
        if not (a.isfinite().all() and b.isfinite().all()):
            return "Your matrices hold numbers that are not finite: torch.empty does not fill them."
        if a.count_nonzero() == 0 and b.count_nonzero() == 0:
            return (
                "Both are zero, so both gradients are zero, and nothing is ever learned: A starts at random."
            )
        if a.count_nonzero() == 0:
            return "A is zero and B is not: that would train as well, but LoRA starts with B at zero."
        if b.count_nonzero():
            return "B is not zero: the model would begin as another one than it was."
        if rank > 1 and torch.linalg.matrix_rank(a) < min(rank, d_in):
            return "All rows of A are alike, so they learn the same, and the rank stays 1: start A at random."
        if not torch.equal(w, torch.ones(d_out, d_in)):
            return "You change W: it is frozen."
    return ""


@takes_functions
def grade_lora(
    begin: Callable[..., object], apply: Callable[..., object], merge: Callable[..., object]
) -> Verdict:
    """Grade a reader's LoRA by hand.

    Args:
        begin: ``my_start(w, rank)`` returns A and B before training.
        apply: ``my_lora(x, w, a, b, alpha)`` returns the outputs (row, output) of the rows of x.
        merge: ``my_merge(w, a, b, alpha)`` returns one weight that gives the same outputs.
    """
    if says := _begin(begin):
        return Verdict(False, says)
    cases = _cases()
    praise = "B starts at zero, A at random, and merged the layer gives the same outputs."
    outputs = grade(apply, right=known.apply, mistakes=known.APPLY, cases=cases, praise=praise)
    if not outputs:
        return Verdict(False, f"Outputs: {outputs.says}")

    def twice(*case: Any) -> Any:
        """Merge the same matrices again, as a caller may."""
        merge(*case)
        return merge(*case)

    rest = [case[1:] for case in cases]
    weights = grade(merge, right=known.merged, mistakes=known.MERGED, cases=rest, praise=praise)
    if not weights:
        return Verdict(False, f"Merged: {weights.says}")
    if not grade(twice, right=known.merged, mistakes={}, cases=rest, praise=praise):
        return Verdict(False, "Merged: you change W itself, so merging twice adds the product twice.")
    return weights
