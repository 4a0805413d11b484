"""Graders: masking as BERT does, a gap filled by scoring."""

from collections.abc import Callable

import torch

from exformer_lessons.exercises.grading import Verdict, and_also, grade, takes_functions
from exformer_lessons.exercises.results import UnfitError, in_float32
from exformer_lessons.masked_language_model import mistakes as known

_TOKENS = 11


@takes_functions
def grade_show(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_show(ids, chosen, chance, drawn, mask_id)``.

    Args:
        answer: Takes ids, which of them are chosen, a random number from 0 to 1 and a random word for
            each position, all (batch, position); returns what the model is shown.

    Examples:
        >>> grade_show(lambda ids, chosen, chance, drawn, mask_id: ids.masked_fill(chosen, mask_id))
        Not yet. Every chosen word is masked: 10 % should be another word, and 10 % stay.
    """
    rng = torch.Generator().manual_seed(11)
    cases = []
    for shape, mask_id in (((7, 13), 11), ((3, 29), 17)):
        ids = torch.randint(_TOKENS, shape, generator=rng)
        chosen = torch.rand(shape, generator=rng) < 0.5
        chance = torch.rand(shape, generator=rng, dtype=torch.float64)
        chance[:, ::5] = 0.8 + 0.2 * chance[:, ::5]  # enough of the rare cases
        chance[:, 1], chance[:, 2] = 0.8, 0.9
        cases.append((ids, chosen, chance, (ids + 3) % _TOKENS, mask_id))

    def shown(*case: object) -> object:
        try:
            return answer(*case)
        except NotImplementedError as error:  # what PyTorch says of ``chosen & chance``
            if "bitwise" not in str(error):
                raise
            raise TypeError("& is done before <: write chosen & (chance < 0.8), with brackets") from error

    praise = "Mask below 0.8, another word below 0.9, else the word itself; and only where chosen."
    options = {"right": known.show, "mistakes": known.SHOW, "praise": praise}
    verdict = grade(shown, cases=cases, **options)  # type: ignore[arg-type]
    # 0.8 in float32 is not 0.8 in float64: an answer whose limits are in float32 is right as well
    single = verdict or grade(shown, cases=in_float32(cases), **options)  # type: ignore[arg-type]
    return single if single else verdict


@takes_functions
def grade_fill(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_fill(log_p, words, place, candidates)``.

    Args:
        answer: Takes a function that gives the log-probability of a list of words, such a list, the position
            of the gap in it, and the words that may fill it; returns one probability per candidate.
    """
    rng = torch.Generator().manual_seed(13)
    table = torch.randn((_TOKENS, _TOKENS), generator=rng, dtype=torch.float64).log_softmax(dim=-1)

    def log_p(words: object) -> float:
        places = torch.as_tensor(words).flatten().long()
        pairs = zip(places[:-1].tolist(), places[1:].tolist(), strict=True)
        return sum((table[pair] for pair in pairs), table[0, int(places[0])]).item()

    cases = [
        (log_p, [1, 4, 7, 2, 9], 2, [3, 5, 6, 8]),
        (log_p, [5, 2, 8, 2], 1, [1, 4, 10]),  # the word of the gap stands elsewhere, too
        (log_p, [6, 1, 3, 9, 4, 2], 4, [7, 2, 5, 8, 1]),
    ]
    long = [(lambda words: log_p(words) - 1000, *cases[0][1:])]
    praise = "Each candidate is read with the words on both sides, and the probabilities sum to 1."
    usual, improbable = (
        grade(
            answer,
            right=known.fill,
            mistakes=hints,
            cases=some,
            praise=praise,
            tolerance=tolerance,
            frame=_alone,
        )
        for some, hints, tolerance in ((cases, known.FILL, 1e-5), (long, {}, 1e-3))  # -1000 in float32
    )
    return and_also(usual, improbable, "With sentences as long as a page, log-probabilities near -1000")


def _alone(given: object, *case: object) -> object:
    if isinstance(given, dict):
        raise UnfitError("Return the probabilities alone, in the order of the candidates.")
    return given
