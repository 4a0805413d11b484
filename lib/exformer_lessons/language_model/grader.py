"""Graders: the probability of a sentence, perplexity with padding, the excess over the truth."""

from collections.abc import Callable

import torch

from exformer_lessons.exercises.grading import Mistake, Verdict, grade, single_numbers, takes_functions
from exformer_lessons.language_model import mistakes as known


@takes_functions
def grade_log_probability(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_log_probability(next_words, sentence)``.

    Args:
        answer: Takes a function from the beginning of a sentence to the probabilities of its next word, and a
            sentence; returns the logarithm of the sentence's probability, in nats.

    Examples:
        >>> grade_log_probability(lambda next_words, sentence: None)
        Not yet. Your function returns nothing yet.
    """
    texts = ("a dog sees no bird", "bird", "no dog sees a dog sees no dog", "sees a bird")
    return grade(
        answer,
        right=known.log_probability,
        mistakes=known.LOG_PROBABILITY,
        cases=[(known.language(salt), text) for salt, text in enumerate(texts, start=2)],
        praise="Every word is predicted from all before it, and so is the end.",
    )


@takes_functions
def grade_perplexity(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_perplexity(logits, targets, pad_id)``.

    Args:
        answer: Takes logits (batch, position, vocab_size) and targets (batch, position); returns one number.
    """
    rng = torch.Generator().manual_seed(9)
    cases = []
    for lengths, vocab_size, pad_id in (((7, 4, 2), 11, 0), ((1, 5), 7, 3)):
        longest = max(lengths)
        logits = 2 * torch.randn((len(lengths), longest, vocab_size), generator=rng)
        targets = torch.randint(vocab_size - 1, (len(lengths), longest), generator=rng)
        targets += targets >= pad_id  # none of the words is the padding token
        targets[0, 0] = 0 if pad_id else 1  # 0 is a word like others where it is not the padding
        targets[torch.arange(longest) >= torch.tensor(lengths)[:, None]] = pad_id
        cases.append((logits, targets, pad_id))
    return grade(
        answer,
        right=lambda *case: known.mean_nats(*case).exp(),
        mistakes=known.PERPLEXITY,
        cases=cases,
        praise="The mean runs over the tokens of all sentences, the padding left out, and then comes exp.",
    )


@takes_functions
def grade_excess(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_excess(model_nats, true_nats, n_tokens)``.

    Args:
        answer: Takes, of each sentence, the model's negative log-likelihood, the true one and the number of
            tokens; returns two numbers in nats per token: the excess, and its standard error.

    Returns:
        The verdict; a known mistake is named, first those of the excess.
    """
    cases = [
        (torch.tensor([23.0, 9.5, 41.0]), torch.tensor([21.5, 9.75, 38.0]), torch.tensor([11, 4, 19])),
        (torch.tensor([8.0, 60.0, 17.5]), torch.tensor([8.5, 51.0, 16.0]), torch.tensor([5, 23, 8])),
        (torch.tensor([18.5, 37.0, 12.0]), torch.tensor([21.0, 36.5, 14.5]), torch.tensor([9, 17, 6])),
    ]  # the excess of the last is negative
    swapped = "The excess comes first, then its standard error."
    verdict = grade(
        answer,
        right=known.excess_and_error,
        mistakes={
            **{hint: _with_excess(mistake) for hint, mistake in known.ERROR.items()},
            swapped: lambda *case: known.excess_and_error(*case).flip(0),
        },
        cases=cases,
        praise="All excess nats by all tokens, and what chance both share cancels in the difference.",
        frame=single_numbers,
    )
    if "the numbers are not" not in verdict.says:
        return verdict
    first = grade(
        lambda *case: answer(*case)[0], right=known.excess, mistakes=known.EXCESS, cases=cases, praise=""
    )
    if not first:
        named = first.says in known.EXCESS
        return first if named else Verdict(False, f"The first number, the excess, is wrong. {first.says}")
    return Verdict(False, f"The excess is right, its standard error is not. {verdict.says}")


def _with_excess(mistake: Mistake) -> Mistake:
    def of_one(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        return lambda *case: torch.stack((known.excess(*case), function(*case)))

    return tuple(map(of_one, mistake)) if isinstance(mistake, tuple) else of_one(mistake)
