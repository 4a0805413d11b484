"""Graders: a leak of the future, perplexity with padding."""

from collections.abc import Callable

import torch

from exformer_lessons.exercises.grading import Verdict, grade, takes_functions
from exformer_lessons.language_model import mistakes as known


@takes_functions
def grade_leak(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``finds_leak(model, ids)``.

    Args:
        answer: Takes a model, which gives logits (batch, position, vocab_size) of ids (batch, position), and
            the ids of one text; says whether an output depends on a later token.

    Examples:
        >>> grade_leak(lambda model, ids: None)
        Not yet. Your function returns nothing.
    """
    everywhere, first, last_but_one = torch.ones(9, 9), torch.zeros(9, 9), torch.zeros(9, 9)
    first[0] = last_but_one[3] = 1.0
    leaks = [
        (0.0 * everywhere, [1, 4, 2, 0]),
        (0.0 * everywhere, [3, 2, 4, 1, 5]),
        (everywhere, [2, 5, 1, 3, 0]),
        (everywhere, [2, 0, 1, 3, 5]),
        (everywhere.tril(1), [4, 2, 0, 5, 1]),
        (0.002 * everywhere, [1, 3, 5, 4, 0]),
        (0.4 * first, [0, 4, 1, 2, 3]),
        (last_but_one, [5, 2, 0, 1, 3]),
        (everywhere, [4, 0, 3, 2]),
        (everywhere, [1, 5, 2, 3, 0, 4]),
        (everywhere, [3, 0, 5, 1, 3]),  # the last token is the first
    ]
    cases = [
        (known.model_with_leak(leak, salt=salt, centered=salt != 3, by_length=salt == 0), torch.tensor([ids]))
        for salt, (leak, ids) in enumerate(leaks)
    ]
    return grade(
        answer,
        right=known.finds_leak,
        mistakes=known.LEAK,
        cases=cases,
        praise="What comes before the change may not notice it.",
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
