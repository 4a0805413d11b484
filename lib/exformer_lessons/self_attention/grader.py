"""Graders: masked attention, two suspects to convict."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from exformer_lessons.exercises.grading import (
    Verdict,
    first_of,
    grade,
    takes_functions,
    with_large_scores,
)
from exformer_lessons.self_attention import mistakes as known

#: What may be wrong with a suspect, and the experiment that would refute it.
CHARGES = {
    "no scaling": "Make q and k wide: are its weights sharper than those of true attention, or flatter?",
    "divides by d_k": "Make q and k wide: are its weights sharper than those of true attention, or flatter?",
    "softmax over queries": "Give it one query only. A softmax over one query makes every weight 1: does it?",
    "keys used as values": "Leave q and k as they are and change v: does the output stay where it was?",
    "softmax left out": "Set every value to 1, so that the output is the sum of the weights, and double q.",
}
_GUILTY = {"a": "divides by d_k", "b": "softmax over queries"}


@takes_functions
def grade_masked_attention(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_masked_attention(q, k, v, mask)``, which returns the output.

    Args:
        answer: Takes queries (query, d_k), keys (key, d_k), values (key, d_v) and a boolean mask
            (query, key), True = may attend; returns (query, d_v).

    Examples:
        >>> grade_masked_attention(lambda q, k, v, mask: (q @ k.T / q.shape[-1] ** 0.5).softmax(dim=-1) @ v)
        Not yet. Your mask changes nothing.
    """
    rng = torch.Generator().manual_seed(3)
    place = torch.arange(7)
    square = (place[:, None] + 3 * place) % 5 > 0  # each row hides something and shows something
    oblong = torch.tensor([[True, False, True, True, False], [False] * 5, [False, True, False, False, False]])
    # In the square cases a mistake has the right shape, and can be named.
    equal = [_case(rng, (7, 7, 7, 7), square) for _ in range(2)]
    first, second, far = (
        grade(
            answer,
            right=known.attention,
            mistakes=hints,
            cases=cases,
            praise="What is masked has no weight at all, and a query that may see nothing gets zeros.",
            tolerance=tolerance,
            frame=first_of(2),
        )
        for cases, hints, tolerance in (
            (equal, known.MASK, 1e-5),
            ([_case(rng, (3, 5, 11, 2), oblong)], known.EMPTY_ROW, 1e-5),
            ([_far(square)], known.FAR, 1e-2),  # large scores differ by their rounding
        )
    )
    usual, unnamed = first and second, "The shape is right, the numbers are not"
    if first.says.startswith(unnamed) and not second and not second.says.startswith(unnamed):
        usual = Verdict(False, f"With 3 queries, 5 keys of width 11 and values of width 2: {second.says}")
    return with_large_scores(usual, far)


def _case(rng: torch.Generator, sizes: tuple[int, ...], mask: Tensor) -> tuple[Tensor, ...]:
    query, key, d_k, d_v = sizes
    return *(torch.randn(shape, generator=rng) for shape in ((query, d_k), (key, d_k), (key, d_v))), mask


def _far(mask: Tensor) -> tuple[Tensor, ...]:
    """Make scores near -16,384, exact in float32 as all numbers are whole."""
    rng = torch.Generator().manual_seed(3)
    q, k = (torch.randint(-1, 2, (7, 4), generator=rng).float() for _ in range(2))
    q[:, 0], k[:, 0] = -256.0, 128.0
    return q, k, torch.eye(7), mask


def suspect_a(
    q: Float[Tensor, "query d_k"], k: Float[Tensor, "key d_k"], v: Float[Tensor, "key d_v"]
) -> Float[Tensor, "query d_v"]:
    """Attend, with one mistake: find it by experiment. Takes and returns what attention does."""
    return known.by_d_k(q, k, v)


def suspect_b(
    q: Float[Tensor, "query d_k"], k: Float[Tensor, "key d_k"], v: Float[Tensor, "key d_v"]
) -> Float[Tensor, "query d_v"]:
    """Attend, with one mistake: find it by experiment. Takes and returns what attention does."""
    return known.over_queries(q, k, v)


def grade_diagnosis(*given: object, a: object = None, b: object = None, **others: object) -> Verdict:
    """Grade what a reader says is wrong with the two suspects.

    Args:
        given: Nothing; a dictionary needs two stars.
        a: The mistake of :func:`suspect_a`, one of :data:`CHARGES`.
        b: The mistake of :func:`suspect_b`.
        others: Nothing; there are two suspects.

    Returns:
        The verdict; a wrong diagnosis is answered with an experiment that would refute it.
    """
    if given:
        return Verdict(False, "Call grade_diagnosis(**diagnosis): two stars give a and b by their names.")
    if others:
        return Verdict(False, f"There is no suspect {min(others)}: they are a and b.")
    for name, said in (("a", a), ("b", b)):
        charge = said.strip(" .").lower() if isinstance(said, str) else said
        if charge is None or charge is Ellipsis:
            return Verdict(False, f"You have not said yet what is wrong with suspect {name}.")
        if not isinstance(charge, str) or charge not in CHARGES:
            return Verdict(False, f"{said!r} is not on the list. Choose one of: {', '.join(CHARGES)}.")
        if charge != _GUILTY[name]:
            return Verdict(False, f"Suspect {name} is innocent of that. {CHARGES[charge]}")
    return Verdict(True, "Both convicted: a is too flat when vectors are wide, b shares keys among queries.")
