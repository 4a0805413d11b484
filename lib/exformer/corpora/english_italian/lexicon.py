"""The words of the English-Italian language in all their forms."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun: English singular and plural, Italian singular and plural, gender "m" or "f"."""

    singular: str
    plural: str
    italian_singular: str
    italian_plural: str
    gender: str
    kind: str  # "animal" or "place"

    def english(self, *, plural: bool) -> str:
        """Return the English form."""
        return self.plural if plural else self.singular

    def italian(self, *, plural: bool) -> str:
        """Return the Italian form."""
        return self.italian_plural if plural else self.italian_singular


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective and the kind of noun that it describes, "animal" or "place"."""

    english: str
    masculine: str  # the Italian dictionary form: masculine singular
    kind: str

    def italian(self, gender: str, *, plural: bool) -> str:
        """Return the Italian form: -o -a -i -e, or -e -i alike in both genders.

        >>> Adjective("tired", "stanco", "animal").italian("f", plural=True)
        'stanche'
        """
        stem, ending = self.masculine[:-1], self.masculine[-1]
        if ending == "e":
            return stem + ("i" if plural else "e")
        if not plural:
            return stem + ("o" if gender == "m" else "a")
        return stem + ("h" if stem[-1] in "cg" else "") + ("i" if gender == "m" else "e")


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb in the past: English base and past form, Italian singular and plural (passato remoto)."""

    base: str
    past: str
    singular: str
    plural: str
    takes: str  # its object: "place", "animal" or "nothing"


def _rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


ANIMALS = [Noun(*row, kind="animal") for row in _rows("""
    animal    animals    animale    animali    m
    dog       dogs       cane       cani       m
    cat       cats       gatto      gatti      m
    horse     horses     cavallo    cavalli    m
    wolf      wolves     lupo       lupi       m
    mouse     mice       topo       topi       m
    lion      lions      leone      leoni      m
    elephant  elephants  elefante   elefanti   m
    squirrel  squirrels  scoiattolo scoiattoli m
    ostrich   ostriches  struzzo    struzzi    m
    gnu       gnus       gnu        gnu        m
    fox       foxes      volpe      volpi      f
    tiger     tigers     tigre      tigri      f
    goat      goats      capra      capre      f
    frog      frogs      rana       rane       f
    hen       hens       gallina    galline    f
    monkey    monkeys    scimmia    scimmie    f
    cow       cows       mucca      mucche     f
    turtle    turtles    tartaruga  tartarughe f
    zebra     zebras     zebra      zebre      f
    goose     geese      oca        oche       f
    eagle     eagles     aquila     aquile     f
""")]  # fmt: skip

PLACES = [Noun(*row, kind="place") for row in _rows("""
    river     rivers     fiume      fiumi      m
    bridge    bridges    ponte      ponti      m
    field     fields     campo      campi      m
    park      parks      parco      parchi     m
    lake      lakes      lago       laghi      m
    pond      ponds      stagno     stagni     m
    zoo       zoos       zoo        zoo        m
    airport   airports   aeroporto  aeroporti  m
    street    streets    strada     strade     f
    square    squares    piazza     piazze     f
    valley    valleys    valle      valli      f
    marsh     marshes    palude     paludi     f
    forest    forests    foresta    foreste    f
    hill      hills      collina    colline    f
    beach     beaches    spiaggia   spiagge    f
    island    islands    isola      isole      f
""")]  # fmt: skip

ADJECTIVES = [Adjective(*row) for row in _rows("""
    tired        stanco      animal
    hungry       affamato    animal
    scared       spaventato  animal
    thirsty      assetato    animal
    angry        arrabbiato  animal
    sick         malato      animal
    sleepy       assonnato   animal
    nervous      nervoso     animal
    curious      curioso     animal
    lazy         pigro       animal
    happy        felice      animal
    impatient    impaziente  animal
    wide         largo       place
    narrow       stretto     place
    deep         profondo    place
    crowded      affollato   place
    steep        ripido      place
    flooded      allagato    place
    windy        ventoso     place
    sunny        soleggiato  place
    icy          ghiacciato  place
    shady        ombroso     place
    inhospitable inospitale  place
    uneven       irregolare  place
""")]  # fmt: skip

VERBS = [Verb(*row) for row in _rows("""
    cross   crossed  attraversò attraversarono place
    explore explored esplorò    esplorarono    place
    reach   reached  raggiunse  raggiunsero    place
    visit   visited  visitò     visitarono     place
    leave   left     lasciò     lasciarono     place
    avoid   avoided  evitò      evitarono      place
    follow  followed seguì      seguirono      animal
    hear    heard    sentì      sentirono      animal
    find    found    trovò      trovarono      animal
    wake    woke     svegliò    svegliarono    animal
    sleep   slept    dormì      dormirono      nothing
    wait    waited   aspettò    aspettarono    nothing
    eat     ate      mangiò     mangiarono     nothing
    drink   drank    bevve      bevvero        nothing
    play    played   giocò      giocarono      nothing
    run     ran      corse      corsero        nothing
""")]  # fmt: skip

# Gender, number, sound at the beginning of the noun: "the", "to the", and "a" (plural: "many").
_ARTICLES = {(row[0], row[1], row[2]): row[3:] for row in _rows("""
    m singular plain   il  al   un
    m singular complex lo  allo uno
    m singular vowel   l'  all' un
    m plural   plain   i   ai   molti
    m plural   complex gli agli molti
    m plural   vowel   gli agli molti
    f singular plain   la  alla una
    f singular complex la  alla una
    f singular vowel   l'  all' un'
    f plural   plain   le  alle molte
    f plural   complex le  alle molte
    f plural   vowel   le  alle molte
""")}  # fmt: skip


def onset(word: str) -> str:
    """Return the sound class of the beginning of an Italian word, on which the article depends.

    >>> onset("cane"), onset("struzzo"), onset("animale")
    ('plain', 'complex', 'vowel')
    """
    if word[0] in "aeiou":
        return "vowel"
    return "complex" if re.match("s[^aeiou]|z|gn|ps|pn|x|y", word) else "plain"


def determiner(english: str, noun: Noun, *, plural: bool, after_near: bool = False) -> str:
    """Return the Italian for "the", "a" or "many" before a noun; "near the" is "vicino" and "a" + article.

    >>> fox = Noun("fox", "foxes", "volpe", "volpi", gender="f", kind="animal")
    >>> determiner("the", fox, plural=False), determiner("the", fox, plural=False, after_near=True)
    ('la', 'alla')
    """
    number = "plural" if plural else "singular"
    forms = _ARTICLES[noun.gender, number, onset(noun.italian(plural=plural))]
    return forms[2] if english != "the" else forms[after_near]
