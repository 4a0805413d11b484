"""Cosines of adjectives in the lesson's tables: ten trainings of skip-gram, and three tasks."""

import random
from itertools import combinations
from statistics import mean

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


@sweep("A08")
def three_tasks(SYNONYMS, class_of, E_skip, E_translated, E_beside):  # noqa: N803
    """Return the cosines of two words in three tables: their mean, the least and the most.

    Synonyms, opposites and other pairs are adjectives for one kind of noun.
    """
    synonyms = {frozenset(names) for names in SYNONYMS.items()}
    opposites = {frozenset(names) for names in (("wide", "narrow"), ("sunny", "shady"))}
    found = {}
    tables = {"neighbors": E_skip, "translation": E_translated, "neighbors of the translation": E_beside}
    for task, rows in tables.items():
        cosines = {"planted synonyms": [], "opposites": [], "other pairs": [], "all words": []}
        for a, b in combinations(rows, 2):
            cosine = (rows[a] @ rows[b]).item()
            cosines["all words"].append(cosine)
            name = class_of.get(a, "")
            if name.endswith("adjective") and name == class_of.get(b):
                names = {a, b}
                kind = (
                    "planted synonyms"
                    if names in synonyms
                    else "opposites"
                    if names in opposites
                    else "other pairs"
                )
                cosines[kind].append(cosine)
        found[task] = {kind: [mean(each), min(each), max(each)] for kind, each in cosines.items()}
    return found
