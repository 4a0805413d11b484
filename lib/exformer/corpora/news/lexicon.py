"""The words of the news: names, numbers and the few things that can happen."""

FIRST_NAMES = """
    Ada Bruno Carla Dario Elena Fabio Greta Hugo Irene Jonas
    Karin Luca Marta Nils Olga Paolo Rosa Sven Tina Umberto
""".split()  # noqa: SIM905 (a list of words reads better)
LAST_NAMES = """
    Adler Bianchi Conti Dahl Ekman Ferri Gallo Holm Iversen Jansen Keller Lindt Moretti Nilsen Orlandi
    Pagano Quist Ricci Serra Thorsen Urban Villa Weber Ziegler
""".split()  # noqa: SIM905
TOWNS = """
    Arezzo Bergen Como Dover Essen Ferrara Graz Halden Ivrea Jena Kiel Lodi Malmo Narvik Oslo Pisa
    Riga Siena Trento Uppsala
""".split()  # noqa: SIM905
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905
VERBS = "opened closed painted repaired cleaned bought sold saved moved visited".split()  # noqa: SIM905
THINGS = """
    museum bridge school market theatre castle tower library harbour station garden mill
""".split()  # noqa: SIM905
JOBS = "doctor teacher painter farmer pilot cook".split()  # noqa: SIM905
OPINIONS = ("it was time", "it is a good day", "nobody believed it", "it was a lot of work")
NUMBERS = [str(number) for number in range(11, 61)]

#: Persons whose first and last name never meet in a training article, by index in the lists.
_PERSON_STEP, _EVENT_STEP = 5, 4


def persons(*, held_out: bool) -> list[str]:
    """List the persons, first and last name, of one side of the split.

    Args:
        held_out: Whether the persons kept for testing are wanted, a fifth of all, or the others.

    Returns:
        The persons. Each first name and each last name is on both sides.

    >>> len(persons(held_out=True)), len(persons(held_out=False))
    (96, 384)
    """
    return [
        f"{first} {last}"
        for i, first in enumerate(FIRST_NAMES)
        for j, last in enumerate(LAST_NAMES)
        if ((i + 2 * j) % _PERSON_STEP == 0) == held_out
    ]


def events(*, held_out: bool) -> list[tuple[str, str]]:
    """List what can be done to what, (verb, thing), of one side of the split.

    Args:
        held_out: Whether the events kept for testing are wanted, a fourth of all, or the others.

    Returns:
        The events. Each verb and each thing is on both sides.

    >>> len(events(held_out=True)), len(events(held_out=False))
    (30, 90)
    """
    return [
        (verb, thing)
        for i, verb in enumerate(VERBS)
        for j, thing in enumerate(THINGS)
        if ((i + j) % _EVENT_STEP == 0) == held_out
    ]
