"""What the caption of the figure "recurrence" says, measured with the library."""

import random
from dataclasses import replace

from exformer import translate
from exformer.corpora.english_italian.grammar import NounPhrase, Sentence, derive
from exformer.corpora.english_italian.lexicon import ADJECTIVES, ANIMALS, PLACES, VERBS, onset
from exformer_lessons.first_attention.two_translators import FORMS, KNOWN

#: What a sentence of so many words has besides a subject and a verb, as in book/live/recurrence.js.
PARTS = {
    3: "",
    4: "described",
    5: "described negative",
    6: "described object",
    7: "described negative object",
    8: "described negative object what",
    9: "described object place",
    10: "described negative object place",
    11: "described negative object what place",
    12: "described negative object what place where",
}


def phrase(kind, described):
    """Sample a noun phrase, with an adjective or without."""
    noun = random.choice([noun for noun in ANIMALS + PLACES if noun.kind == kind and noun.singular in KNOWN])
    adjective = random.choice([a for a in ADJECTIVES if a.kind == kind and a.english in KNOWN])
    determiner, plural = random.choice(FORMS)
    return NounPhrase(determiner, noun, plural, adjective if described else None)


def sentence(length):
    """Sample a sentence of so many words, as the figure's slider and its button make them."""
    has = PARTS[length].split()
    takes = "animal" if "object" in has else "nothing"
    verb = random.choice([verb for verb in VERBS if verb.takes == takes and verb.base in KNOWN])
    parts = {}
    if "object" in has:
        parts["object"] = phrase("animal", "what" in has)
    if "place" in has:
        near = random.choice(("near", "behind", "beyond"))
        parts |= {"preposition": near, "place": phrase("place", "where" in has)}
    return Sentence(phrase("animal", "described" in has), verb, "negative" in has, **parts)


def another_noun(tree, part="subject"):
    """Replace a noun by one for which only that Italian word changes; None if there is none."""
    old = getattr(tree, part)
    sound = onset(old.noun.italian(plural=old.plural))
    alike = [
        noun
        for noun in ANIMALS + PLACES
        if noun.singular in KNOWN
        and noun != old.noun
        and (noun.kind, noun.gender) == (old.noun.kind, old.noun.gender)
        and onset(noun.italian(plural=old.plural)) == sound
    ]
    return replace(tree, **{part: replace(old, noun=random.choice(alike))}) if alike else None


def translations(found, trees):
    """Translate trees greedily; return lists of words."""
    sources = [derive(tree).source for tree in trees]
    texts = translate(found.model, found.tokenizer, sources, max_new_tokens=18, batch_size=500)
    return [text.split() for text in texts]


def right(found, length, n=400):
    """Return the share of translations without a mistake."""
    trees = [sentence(length) for _ in range(n)]
    texts = translations(found, trees)
    return sum(text == derive(tree).target.split() for text, tree in zip(texts, trees, strict=True)) / n


def notices(found, length, part="subject", n=400):
    """Return how often a translation stays as it was, and how often just the replaced noun changes."""
    pairs = [
        (tree, other) for tree in (sentence(length) for _ in range(n)) if (other := another_noun(tree, part))
    ]
    before, after = (translations(found, trees) for trees in zip(*pairs, strict=True))
    kept = exactly = 0
    for (tree, other), old, new in zip(pairs, before, after, strict=True):
        due = [
            i
            for i, (a, b) in enumerate(
                zip(derive(tree).target.split(), derive(other).target.split(), strict=True)
            )
            if a != b
        ]
        changed = [i for i in range(max(len(old), len(new))) if old[i : i + 1] != new[i : i + 1]]
        kept += not changed
        exactly += changed == due and new[due[0]] == derive(other).target.split()[due[0]]
    return kept / len(pairs), exactly / len(pairs)
