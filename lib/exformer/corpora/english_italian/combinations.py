"""Combinations of words that are held out of training, and the noun to which "it" refers."""

from dataclasses import dataclass

from exformer.corpora.english_italian.grammar import Sentence
from exformer.corpora.english_italian.lexicon import ADJECTIVES, ANIMALS, PLACES
from exformer.corpora.english_italian.parser import parse

_PAIRS, _TRIPLES = 6, 5  # one noun-adjective pair in 6 is held out, and one triple in 5
_RANK = {noun.singular: rank for nouns in (ANIMALS, PLACES) for rank, noun in enumerate(nouns)}
_RANK |= {adjective.english: rank for rank, adjective in enumerate(ADJECTIVES)}


@dataclass(frozen=True, slots=True)
class PronounFacts:
    """The facts of a sentence with "it".

    Args:
        antecedent: The English noun to which "it" refers.
        other: The other noun.
        right: The Italian adjective in the gender of the antecedent.
        wrong: The same adjective in the other gender.
        decisive: Whether agreement with ``other`` would give another form, so that a wrong reference shows.
    """

    antecedent: str
    other: str
    right: str
    wrong: str
    decisive: bool


def facts(tree: Sentence) -> PronounFacts:
    """Return the facts of a tree of the pronoun construction."""
    antecedent, nouns = tree.described, (tree.subject.noun, tree.object.noun)
    other = nouns[antecedent is nouns[0]]
    form = {gender: tree.adjective.italian(gender, plural=False) for gender in "mf"}
    right, wrong = form[antecedent.gender], form["f" if antecedent.gender == "m" else "m"]
    return PronounFacts(antecedent.singular, other.singular, right, wrong, right != form[other.gender])


def pronoun_facts(english: str) -> PronounFacts:
    """Return the noun to which "it" refers, and the Italian adjective that follows from it.

    Args:
        english: A sentence of the pronoun construction.

    Raises:
        ValueError: If the sentence is outside the grammar, or has no "it".

    >>> pronoun_facts("the animal didn't cross the street because it was too wide").right
    'larga'
    """
    tree = parse(english)
    if tree.construction != "pronoun":
        raise ValueError(f"expected a sentence with 'because it was', got {english!r} ({tree.construction})")
    return facts(tree)


def is_held_out(tree: Sentence) -> bool:
    """Return whether a tree has a combination that is held out of training."""
    phrases = (tree.subject, tree.object, tree.place)
    pairs = [(phrase.noun, phrase.adjective) for phrase in phrases if phrase and phrase.adjective]
    if tree.adjective:
        pairs.append((tree.described, tree.adjective))
    if any((_RANK[noun.singular] + _RANK[adjective.english]) % _PAIRS == 0 for noun, adjective in pairs):
        return True
    if tree.construction != "pronoun":
        return False
    subject, place = _RANK[tree.subject.noun.singular], _RANK[tree.object.noun.singular]
    return (subject + 2 * place + 3 * _RANK[tree.adjective.english]) % _TRIPLES == 0


def held_out(english: str) -> bool:
    """Return whether a sentence has a combination that is in no training set of ``split``.

    Combinations are a noun with an adjective that agrees with it, anywhere in the sentence, and the subject,
    object and adjective of a sentence with "it". The held-out combinations never change.

    Args:
        english: A sentence of the grammar.

    Returns:
        True where something in it is new to every model trained on a ``split``.

    Raises:
        ValueError: If the sentence is outside the grammar.
    """
    return is_held_out(parse(english))
