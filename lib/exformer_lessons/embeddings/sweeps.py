"""What the lesson says of ten trainings of skip-gram."""

import random

from exformer_lessons.trials import sweep


@sweep("A08")
def ten_trainings(SYNONYMS, english, learn, window_pairs):  # noqa: N803
    """Return the cosines of synonyms and of opposites in ten trainings.

    A coin decides where a synonym replaces its word, so both are half as frequent as other adjectives. In the
    control, coins replace *narrow*, *sunny* and *shady* as well, each by a new word.
    """
    rng = random.Random(2)
    others = ("narrow", "sunny", "shady")
    halved = [[rng.choice((word, f"{word} too")) if word in others else word for word in s] for s in english]
    compared = [*SYNONYMS.items(), ("wide", "narrow"), ("sunny", "shady")]
    found = {}
    for name, text in {"as it is": english, "opposites halved": halved}.items():
        tables = [learn(window_pairs(text), seed=seed) for seed in range(10)]
        found[name] = {f"{a}, {b}": [(rows[a] @ rows[b]).item() for rows in tables] for a, b in compared}
    return found
