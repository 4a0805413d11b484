"""Write the words of lesson 02's grammar as a script for its live figure: the library's forms, no others.

``python book/_tools/live_grammar.py`` writes ``book/live/english-italian-words.js``; a test holds it to it.
"""

import json
from pathlib import Path

from exformer.corpora.english_italian.grammar import PREPOSITIONS
from exformer.corpora.english_italian.lexicon import ADJECTIVES, ANIMALS, PLACES, VERBS, determiner
from exformer_lessons.first_attention.two_translators import KNOWN

FILE = Path(__file__).parents[1] / "live" / "english-italian-words.js"
HEAD = """\
// Made by book/_tools/live_grammar.py from exformer.corpora.english_italian: the words of lesson 02.
"use strict";
globalThis.exformer ??= {};
exformer.englishItalianWords = """


def script():
    """Return the script."""
    nouns = {
        kind: [_noun(noun) for noun in all_nouns if noun.singular in KNOWN]
        for kind, all_nouns in (("animal", ANIMALS), ("place", PLACES))
    }
    adjectives = {
        kind: [[a.english, *_forms(a)] for a in ADJECTIVES if a.kind == kind and a.english in KNOWN]
        for kind in nouns
    }
    verbs = {
        takes: [[v.base, v.past, v.singular, v.plural] for v in VERBS if v.takes == takes and v.base in KNOWN]
        for takes in ("nothing", "animal", "place")
    }
    words = {"nouns": nouns, "adjectives": adjectives, "verbs": verbs, "prepositions": PREPOSITIONS}
    return HEAD + json.dumps(words, ensure_ascii=False, separators=(",", ":")).replace("]],", "]],\n") + ";\n"


def _noun(noun):
    """Gender; of singular and plural English, Italian, and the words for the, near the, a or many."""
    forms = []
    for plural in (False, True):
        counted = "many" if plural else "a"
        said = [determiner("the", noun, plural=plural, after_near=near) for near in (False, True)]
        said.append(determiner(counted, noun, plural=plural))
        forms.append([noun.english(plural=plural), noun.italian(plural=plural), *said])
    return [noun.gender, *forms]


def _forms(adjective):
    """Masculine singular and plural, feminine singular and plural."""
    return [adjective.italian(gender, plural=plural) for gender in "mf" for plural in (False, True)]


if __name__ == "__main__":
    FILE.write_text(script(), encoding="utf-8")
