"""The words of the small English language: one class per line, the most frequent word first."""

# Singular and plural are in the same order, so that two forms of one word have the same index. Nouns and
# adjectives begin with a consonant, so that "a" may come before them.
_CLASSES = """
    DETERMINER.singular        the a every this
    DETERMINER.plural          the some many these
    ADJECTIVE                  small big new lovely strange famous
    PREPOSITION                near behind beside
    ADVERB                     again alone outside
    DEGREE                     very too

    NOUN.man.singular          man boy king brother
    NOUN.man.plural            men boys kings brothers
    NOUN.woman.singular        woman girl queen sister
    NOUN.woman.plural          women girls queens sisters
    NOUN.animal.singular       dog cat horse bird
    NOUN.animal.plural         dogs cats horses birds
    NOUN.way.singular          key door road path
    NOUN.way.plural            keys doors roads paths
    NOUN.thing.singular        house cabinet garden tower box table
    NOUN.thing.plural          houses cabinets gardens towers boxes tables

    PRONOUN.man.singular       he
    PRONOUN.woman.singular     she
    PRONOUN.animal.singular    it
    PRONOUN.way.singular       it
    PRONOUN.thing.singular     it
    PRONOUN.man.plural         they
    PRONOUN.woman.plural       they
    PRONOUN.animal.plural      they
    PRONOUN.way.plural         they
    PRONOUN.thing.plural       they
    REFLEXIVE.man.singular     himself
    REFLEXIVE.woman.singular   herself
    REFLEXIVE.animal.singular  itself
    REFLEXIVE.man.plural       themselves
    REFLEXIVE.woman.plural     themselves
    REFLEXIVE.animal.plural    themselves

    BE.singular                is was
    BE.plural                  are were
    SLEEP.singular             sleeps waits runs sings rests
    SLEEP.plural               sleep wait run sing rest
    SEE.singular               sees likes finds watches follows
    SEE.plural                 see like find watch follow
    SAY.singular               says thinks
    SAY.plural                 say think

    QUALITY.living             tired hungry happy angry
    QUALITY.still              heavy dirty broken hidden
"""

#: The words of each class.
CLASSES = {name: tuple(words) for name, *words in (line.split() for line in _CLASSES.splitlines() if line)}

#: Every word of the language, once.
WORDS = tuple(
    sorted({word for words in CLASSES.values() for word in words} | {"because", "not", "that", "to"})
)
