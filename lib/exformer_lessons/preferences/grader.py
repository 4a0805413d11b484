"""Graders: DPO's loss of a pair, and the loss of a policy gradient over a group."""

from collections.abc import Callable
from typing import Any

import torch

from exformer_lessons.exercises.grading import Verdict, and_also, grade, takes_functions
from exformer_lessons.preferences import mistakes as known


def _pairs() -> list[tuple[Any, ...]]:
    rng = torch.Generator().manual_seed(16)

    def log_p(n: int) -> torch.Tensor:
        return -3 * torch.rand(n, generator=rng, dtype=torch.float64) - 0.1

    return [
        (log_p(n), log_p(m), log_p(n), log_p(m), beta)
        for n, m, beta in ((3, 5, 0.1), (6, 2, 0.5), (1, 4, 2.0))
    ]


#: Pairs in float32, as models give them, of which the model prefers the wrong text by far.
_FAR = [
    (*(torch.tensor(part) for part in ([-60.0, -30.0], [-4.0], [-5.0, -5.0], [-4.0])), 0.5),
    (*(torch.tensor(part) for part in ([-90.0, -30.0], [-2.0, -2.0], [-5.0, -5.0], [-80.0, -14.0])), 1.0),
]


@takes_functions
def grade_dpo(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_dpo_loss(chosen, rejected, reference_chosen, reference_rejected, beta)``.

    Args:
        answer: Takes the log-probabilities of the tokens of both texts, by the model and by the reference;
            returns the loss of this pair.
    """
    usual, far = (
        grade(
            answer,
            right=known.pair_loss,
            mistakes=mistakes,
            cases=cases,
            praise="Sums over tokens, two log-ratios, beta inside the sigmoid.",
        )
        for mistakes, cases in ((known.DPO, _pairs()), (known.FAR, _FAR))
    )
    if usual and far.says == known.NOT_STABLE:
        return Verdict(True, f"{usual.says} {far.says}")
    return and_also(usual, far, "Where beta times the margin is -40 or -200")


#: Groups of texts: the length of the prompt, the rows, and their rewards.
_GROUPS: list[tuple[int, list[list[int]], list[float]]] = [
    (2, [[1, 5, 6, 7, 2], [1, 5, 8, 2], [1, 5, 3, 4, 9, 7, 3], [1, 5, 2]], [4.0, 0.0, 1.0, 0.0]),
    (3, [[1, 2, 5, 6, 2], [1, 2, 5, 8, 7, 4, 2], [1, 2, 5, 2]], [0.0, 3.0, 5.0]),
    (1, [[1, 5, 6, 2], [1, 2], [1, 7, 7, 7, 8, 2]], [1.0, 1.0, 1.0]),
    (1, [[1, 5, 2], [1, 2], [1, 7, 8, 2], [1, 6, 6, 2]], [1.0, 0.0, 1.0, 0.0]),  # a deviation below 1
    (1, [[1, 5 + n % 3, 2] for n in range(8)], [0.0] * 7 + [9.0]),  # an advantage above 2
]
#: A group of equal rewards whose mean rounds, so that the standard deviation is not exactly 0.
_ROUNDED = [(1, [[1, 5, 6, 2], [1, 2], [1, 7, 7, 7, 8, 2]], [0.1, 0.1, 0.1])]


def _groups(rows: list[tuple[int, list[list[int]], list[float]]]) -> list[tuple[Any, ...]]:
    rng = torch.Generator().manual_seed(16)
    eos_id, pad_id = 2, 0
    cases = []
    for prompt_length, texts, rewards in rows:
        longest = max(map(len, texts))  # a text without an end token has no padding
        ids = torch.tensor([[*text, *[pad_id] * (longest - len(text))] for text in texts])
        log_p = -3 * torch.rand(ids.shape, generator=rng, dtype=torch.float64) - 0.1
        cases.append((log_p, ids, torch.tensor(rewards, dtype=torch.float64), prompt_length, eos_id))
    return cases


@takes_functions
def grade_group(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_loss(log_p, ids, rewards, prompt_length, eos_id)``.

    Args:
        answer: Takes the log-probability of each token of ``ids``, the ids, a reward for each text, the
            number of tokens of the prompt and the end token; returns the loss.
    """
    verdict = Verdict(False, "")
    for mistakes, rows in ((known.GROUP, _GROUPS), (known.ROUNDED_GROUP, _ROUNDED)):
        verdict = grade(
            answer,
            right=known.group_loss,
            mistakes=mistakes,
            cases=_groups(rows),
            praise="The model's own tokens count, up to the end, and each text is compared with its group.",
            tolerance=3e-4,  # many add 1e-4 to the standard deviation
        )
        if not verdict:
            break
    return verdict
