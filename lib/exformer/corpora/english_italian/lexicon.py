"""The words of the English-Italian language: every form that the grammar can write, and no grammar."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Noun:
    """Hold a noun: English singular and plural, Italian singular and plural, gender "m" or "f"."""

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
    """Hold an adjective and what it is said of: "animal" or "place", never both."""

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
    """Hold a verb in the past: English base and past form, Italian singular and plural (passato remoto)."""

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

ADJECTIVES = {
    "animal": [Adjective(*row, kind="animal") for row in _rows("""
        tired stanco        hungry affamato     scared spaventato   thirsty assetato
        angry arrabbiato    sick malato         sleepy assonnato    nervous nervoso
        curious curioso     lazy pigro          happy felice        impatient impaziente
    """.replace("    ", "\n").replace("\n\n", "\n")) if row],
    "place": [],
}  # fmt: skip
