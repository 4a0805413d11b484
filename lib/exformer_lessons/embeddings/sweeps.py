"""Cosines and nearest words in the lesson's tables: ten trainings of skip-gram, and three tasks."""

import random
from collections import Counter
from itertools import combinations
from statistics import mean

import torch

from exformer.corpora.english_italian.lexicon import ADJECTIVES, ANIMALS, PLACES, VERBS
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
def three_tasks(SYNONYMS, E_skip, E_translated, E_beside):  # noqa: N803
    """Return the cosines of two words in three tables: their mean, the least and the most.

    Synonyms, opposites and other pairs are adjectives for one kind of noun.
    """
    synonyms = {frozenset(names) for names in SYNONYMS.items()}
    opposites = {frozenset(names) for names in (("wide", "narrow"), ("sunny", "shady"))}
    class_of, found = classes(SYNONYMS), {}
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


@sweep("A08")
def nearest_words(SYNONYMS, english, learn, window_pairs, translations, beside):  # noqa: N803
    """Return how many words have one of their class, their synonym or their gender nearest, in ten trainings.

    The nearest is sought among the words with a class, among all words, and among the singular nouns.
    """
    class_of = classes(SYNONYMS)
    gender_of = {noun.singular: noun.gender for noun in ANIMALS + PLACES}
    synonym_of = SYNONYMS | {other: word for word, other in SYNONYMS.items()}
    tasks = {
        "neighbors": window_pairs(english),
        "translation": translations,
        "neighbors of the translation": beside,
    }
    found = {}
    for task, pairs in tasks.items():
        tables = [learn(pairs, seed=seed) for seed in range(10)]
        found[task] = {
            "class": [alike(rows, class_of) for rows in tables],
            "synonym": [
                sum(nearest[word] == other for word, other in synonym_of.items())
                for nearest in (nearest_in(rows, list(rows)) for rows in tables)
            ],
            "gender": [alike(rows, gender_of) for rows in tables],
        }
    return {
        "tasks": found,
        "candidates": {"class": len(class_of), "synonym": len(tables[0]), "gender": len(gender_of)},
        "words": {"class": len(class_of), "synonym": len(synonym_of), "gender": len(gender_of)},
        "classes": len(set(class_of.values())),
        "by chance": {
            "class": by_chance(class_of),
            "synonym": len(synonym_of) / (len(tables[0]) - 1),
            "gender": by_chance(gender_of),
        },
    }


def classes(synonyms):
    """Return the class of each noun, adjective and verb: the words that the grammar may put in its place."""
    kind_of = {each.english: f"{each.kind} adjective" for each in ADJECTIVES}
    return (
        kind_of
        | {other: kind_of[word] for word, other in synonyms.items()}
        | {each.singular: each.kind for each in ANIMALS + PLACES}
        | {each.plural: f"{each.kind}s" for each in ANIMALS + PLACES}
        | {each.base: f"base, {each.takes}" for each in VERBS}
        | {each.past: f"past, {each.takes}" for each in VERBS}
    )


def nearest_in(rows_of, words):
    """Return the nearest other word of each."""
    rows = torch.stack([rows_of[word] for word in words])
    nearest = (rows @ rows.T).fill_diagonal_(-2).argmax(dim=1)
    return {word: words[i] for word, i in zip(words, nearest, strict=True)}


def alike(rows_of, label_of):
    """Return how many words have a label equal to that of the nearest word with a label."""
    return sum(label_of[w] == label_of[near] for w, near in nearest_in(rows_of, list(label_of)).items())


def by_chance(label_of):
    """Return how many would be equal if each other word were as likely to be the nearest."""
    sizes = Counter(label_of.values()).values()
    return sum(size * (size - 1) for size in sizes) / (len(label_of) - 1)
