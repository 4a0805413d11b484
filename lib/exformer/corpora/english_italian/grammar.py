"""One derivation, two sentences: English and Italian from the same tree, word aligned with word."""

from dataclasses import dataclass

from exformer.corpora.english_italian.lexicon import Adjective, Noun, Verb, determiner
from exformer.corpora.examples import Pair

CONSTRUCTIONS = ("intransitive", "animal object", "place object", "copula", "pronoun")
DEGREES = {"": "", "too": "troppo", "very": "molto"}
PREPOSITIONS = {"near": "vicino", "behind": "dietro", "beyond": "oltre"}


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """A determiner ("the", "a", "many"), a noun, its number, and perhaps an adjective."""

    determiner: str
    noun: Noun
    plural: bool = False
    adjective: Adjective | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """The tree of a sentence; its parts determine the construction.

    Args:
        subject: Who acts, or is described.
        verb: What happens; None where something is described (the dog was tired).
        negative: Whether it is denied.
        object: The noun phrase after a verb that takes one.
        preposition: Near, behind or beyond; empty without ``place``.
        place: The noun phrase after the preposition.
        degree: Too, very or empty: the word before ``adjective``.
        adjective: What is said of the subject, or of "it" where there is a verb.
    """

    subject: NounPhrase
    verb: Verb | None = None
    negative: bool = False
    object: NounPhrase | None = None
    preposition: str = ""
    place: NounPhrase | None = None
    degree: str = ""
    adjective: Adjective | None = None

    @property
    def construction(self) -> str:
        """Return which of CONSTRUCTIONS this is."""
        if self.verb is None:
            return "copula"
        if self.adjective is not None:
            return "pronoun"
        return "intransitive" if self.object is None else f"{self.object.noun.kind} object"

    @property
    def described(self) -> Noun:
        """Return the noun that ``adjective`` describes: of the subject's kind or of the object's."""
        if self.object is None or self.adjective.kind == self.subject.noun.kind:
            return self.subject.noun
        return self.object.noun


# A part of a sentence: English words, Italian words, links between their indices.
_Part = tuple[list[str], list[str], list[tuple[int, int]]]


def _part(english: str, italian: str) -> _Part:
    source, target = english.split(), italian.split()
    return source, target, [(i, j) for i in range(len(source)) for j in range(len(target))]


def _join(parts: list[_Part]) -> _Part:
    source, target, links = [], [], []
    for english, italian, local in parts:
        links += [(i + len(source), j + len(target)) for i, j in local]
        source += english
        target += italian
    return source, target, links


def _noun_phrase(phrase: NounPhrase, *, after_near: bool = False) -> _Part:
    noun, plural, adjective = phrase.noun, phrase.plural, phrase.adjective
    words = [noun.english(plural=plural)]
    translated = [noun.italian(plural=plural)]
    links = [(1, 1)]
    if adjective is not None:  # English before the noun, Italian after it: the links cross
        words = [adjective.english, *words]
        translated = [*translated, adjective.italian(noun.gender, plural=plural)]
        links = [(1, 2), (2, 1)]
    article = "an" if phrase.determiner == "a" and words[0][0] in "aeiou" else phrase.determiner
    italian = determiner(phrase.determiner, noun, plural=plural, after_near=after_near)
    return [article, *words], [italian, *translated], [(0, 0), *links]


def _verb(sentence: Sentence) -> _Part:
    plural, verb = sentence.subject.plural, sentence.verb
    if verb is None:
        english, italian = ("were", "erano") if plural else ("was", "era")
        return _part(english + "n't", "non " + italian) if sentence.negative else _part(english, italian)
    italian = verb.plural if plural else verb.singular
    if sentence.negative:
        return _join([_part("didn't", "non"), _part(verb.base, italian)])
    return _part(verb.past, italian)


def _place(sentence: Sentence) -> _Part:
    phrase = _noun_phrase(sentence.place, after_near=sentence.preposition == "near")
    if sentence.preposition != "near":
        return _join([_part(sentence.preposition, PREPOSITIONS[sentence.preposition]), phrase])
    # "near" is "vicino a", and that "a" melts into a definite article: vicino al fiume, vicino a un fiume
    italian = ["vicino"] if sentence.place.determiner == "the" else ["vicino", "a"]
    return _join([(["near"], italian, [(0, 0), (0, 1)]), phrase])


def derive(sentence: Sentence) -> Pair:
    """Write a tree as English and as Italian, with the alignment of the words.

    Returns:
        The pair; ``antecedent`` is set where the construction is "pronoun".
    """
    parts = [_noun_phrase(sentence.subject), _verb(sentence)]
    if sentence.object is not None:
        parts.append(_noun_phrase(sentence.object))
    if sentence.place is not None:
        parts.append(_place(sentence))
    antecedent = ""
    if sentence.adjective is not None:
        gender, plural = sentence.described.gender, sentence.subject.plural
        if sentence.verb is not None:
            antecedent = sentence.described.singular
            parts += [_part("because", "perché"), _part("it was", "era")]
        parts.append(_part(sentence.degree, DEGREES[sentence.degree]))
        parts.append(_part(sentence.adjective.english, sentence.adjective.italian(gender, plural=plural)))
    source, target, links = _join(parts)
    return Pair(" ".join(source), " ".join(target), sentence.construction, antecedent, tuple(sorted(links)))
