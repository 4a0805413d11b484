"""English words -> tree: the grammar read backwards, one word ahead at a time."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from exformer.corpora.english_italian.grammar import DEGREES, PREPOSITIONS, NounPhrase, Sentence, derive
from exformer.corpora.english_italian.lexicon import ADJECTIVES, ANIMALS, PLACES, VERBS

_DETERMINERS = {"the": "the", "a": "a", "an": "a", "many": "many"}
_COPULAS = {  # word: (plural, negative)
    "was": (False, False), "wasn't": (False, True), "were": (True, False), "weren't": (True, True),
}  # fmt: skip
_NOUNS = {
    noun.english(plural=plural): (noun, plural) for noun in ANIMALS + PLACES for plural in (False, True)
}
_ADJECTIVES = {adjective.english: adjective for adjective in ADJECTIVES}
_PAST = {verb.past: verb for verb in VERBS}
_BASE = {verb.base: verb for verb in VERBS}
_DEGREES = {degree: degree for degree in DEGREES if degree}
_PREPOSITIONS = {preposition: preposition for preposition in PREPOSITIONS}
_SMALL = ("didn't", "because", "it")

ENGLISH_WORDS = tuple(sorted({
    *_DETERMINERS, *_COPULAS, *_NOUNS, *_ADJECTIVES, *_PAST, *_BASE, *_DEGREES, *_PREPOSITIONS, *_SMALL,
}))  # fmt: skip
_KNOWN = frozenset(ENGLISH_WORDS)


class _Reader:
    """Read the words one by one; remember what could have come next."""

    def __init__(self, words: list[str]):
        self.words, self.position, self.wanted = words, 0, []

    def take(self, table: Mapping[str, Any]) -> Any:
        """Return the table's entry for the next word and move past it; None if it has none."""
        word = self.words[self.position] if self.position < len(self.words) else ""
        if word in table:
            self.position, self.wanted = self.position + 1, []
            return table[word]
        self.wanted += [*list(table)[:6], *(["…"] if len(table) > 6 else [])]
        return None

    def need(self, *tables: Mapping[str, Any]) -> Any:
        """Return the first entry that one of the tables has for the next word; raise if none has."""
        for table in tables:
            if (found := self.take(table)) is not None:
                return found
        raise self.refusal()

    def word(self, word: str) -> bool:
        return self.take({word: True}) is not None

    def refusal(self) -> ValueError:
        read = " ".join(self.words[: self.position])
        found = self.words[self.position :][:1]
        where = f"after {read!r}" if read else "at the start"
        return ValueError(
            f"this grammar breaks {where}: expected one of {', '.join(self.wanted)}; "
            f"got {found[0]!r}" if found else
            f"the sentence is not complete {where}: expected one of {', '.join(self.wanted)}"
        )  # fmt: skip


def _noun_phrase(reader: _Reader, *kinds: str) -> NounPhrase:
    determiner = reader.need(_DETERMINERS)
    plurals = {"the": (False, True), "a": (False,), "many": (True,)}[determiner]
    adjective = reader.take({word: entry for word, entry in _ADJECTIVES.items() if entry.kind in kinds})
    if adjective is not None:
        kinds = (adjective.kind,)
    nouns = {word: entry for word, entry in _NOUNS.items() if entry[0].kind in kinds and entry[1] in plurals}
    noun, plural = reader.need(nouns)
    return NounPhrase(determiner, noun, plural, adjective)


def _described(reader: _Reader, *kinds: str) -> dict[str, Any]:
    degree = reader.take(_DEGREES) or ""
    return {
        "degree": degree,
        "adjective": reader.need({word: entry for word, entry in _ADJECTIVES.items() if entry.kind in kinds}),
    }


def _sentence(reader: _Reader) -> Sentence:
    subject = _noun_phrase(reader, "animal", "place")
    copulas = {word: entry for word, entry in _COPULAS.items() if entry[0] == subject.plural}
    verb, negative = None, False
    if subject.noun.kind == "animal":
        negative = reader.word("didn't")
        verb = reader.need(_BASE) if negative else reader.take(_PAST)
    if verb is None:
        negative = reader.need(copulas)[1]
        return Sentence(subject, negative=negative, **_described(reader, subject.noun.kind))
    parts = {"subject": subject, "verb": verb, "negative": negative}
    if verb.takes != "nothing":
        parts["object"] = _noun_phrase(reader, verb.takes)
    if verb.takes != "place":
        preposition = reader.take(_PREPOSITIONS)
        if preposition is not None:
            parts |= {"preposition": preposition, "place": _noun_phrase(reader, "place")}
    elif not (subject.plural or parts["object"].plural) and reader.word("because"):
        for word in ("it", "was"):
            reader.need({word: True})
        parts |= _described(reader, "animal", "place")
    return Sentence(**parts)


def normalize(text: str) -> str:
    """Normalize typed text: lower case, straight apostrophes, no full stop.

    >>> normalize("The dog didn’t sleep.")
    "the dog didn't sleep"
    """
    return " ".join(text.lower().replace("’", "'").strip().removesuffix(".").split())


def parse(english: str) -> Sentence:
    """Read an English sentence of the grammar as its tree.

    Args:
        english: The sentence; capitals, curly apostrophes and a full stop are accepted.

    Raises:
        ValueError: If a word is unknown, or the words are in an order that the grammar does not have.
    """
    text = normalize(english)
    words = text.split()
    unknown = [word for word in dict.fromkeys(words) if word not in _KNOWN]
    if unknown:
        close = sorted({match for word in unknown for match in get_close_matches(word, ENGLISH_WORDS)})
        hint = f"; close: {', '.join(close)}" if close else ""
        raise ValueError(
            f"unknown words: {', '.join(map(repr, unknown))}{hint}; ENGLISH_WORDS lists those known"
        )
    reader = _Reader(words)
    sentence = _sentence(reader)
    if reader.position < len(words):
        reader.wanted.append("the end")
        raise reader.refusal()
    if (right := derive(sentence).source) != text:  # a and an are one word of the tree
        raise ValueError(f"expected {right!r}, got {text!r}: write 'an' before a vowel, 'a' elsewhere")
    return sentence


def translate(english: str) -> str:
    """Translate a sentence of the grammar without mistakes.

    Args:
        english: The sentence; capitals, curly apostrophes and a full stop are accepted.

    Returns:
        The Italian sentence; l', un' and all' are words of their own.

    Raises:
        ValueError: If the sentence is not one of the grammar.

    >>> translate("The animal didn't cross the street because it was too wide.")
    "l' animale non attraversò la strada perché era troppo larga"
    """
    return derive(parse(english)).target
