"""From facts to text: how an article tells them, and how its summary does."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

#: The facts that an article may leave unsaid.
OPTIONAL = ("day", "people")

SUMMARY = "in {town} {person} {verb} the {thing} [on {day}] [before {people} people] ."
#: How an article begins: its first sentence, and what the first sentence does not say.
OPENINGS = (
    ("{person} {verb} the {thing} in {town} .", "it was on {day} .", "{people} people came ."),
    ("the {thing} in {town} was {verb} [on {day}] .", "{person} did it .", "{people} people came ."),
    ("there is news from {town} .", "{person} {verb} the {thing} [on {day}] .", "{people} people came ."),
    ("[{people}] people came to the {thing} in {town} .", "{person} {verb} it [on {day}] ."),
)
#: Sentences with other persons, towns, days and numbers.
ASIDES = (
    "{last} is a {job} from {other_town} .",
    "{other_people} people live near the {thing} .",
    "rain is expected for {other_day} .",
    "{other_person} was not there .",
    "' {opinion} , ' said {other_person} .",
    "on {other_day} it was seen by {other_people} people from {other_town} .",
)
#: Last sentences: they refer back to what was said.
ENDINGS = (
    "{person} thanked the [{people}] people of {town} .",
    "{town} will not forget [that {day} and] {person} .",
    "[that {day}] {person} and [{people}] people went home late .",
    "{person} will be back at the {thing} in {town} .",
)
_BRACKETS, _PLACES = re.compile(r"\[.*?\]"), re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class Facts:
    """An event: who did what to what, where, when, and before how many people.

    The person has a first and a last name; day and people are empty where the article does not say them.
    """

    person: str
    verb: str
    thing: str
    town: str
    day: str = ""
    people: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """An article, its summary and the facts of both.

    Args:
        article: The article; words and signs have one space between them.
        summary: One sentence with all facts.
        facts: What the article says.
    """

    article: str
    summary: str
    facts: Facts


def fill(template: str, words: Mapping[str, str]) -> str:
    """Fill the slots of a template; a bracket or a sentence with an empty slot is left out.

    Args:
        template: A sentence with slots in braces, and brackets around what may be left out.
        words: What goes into the slots.

    Returns:
        The sentence; nothing if a slot outside all brackets is empty.

    >>> fill("it was done [on {day}] .", {"day": "Monday"}), fill("it was on {day} .", {"day": ""})
    ('it was done on Monday .', '')
    """
    for part in _BRACKETS.findall(template):
        told = part[1:-1] if all(map(words.get, _PLACES.findall(part))) else ""
        template = template.replace(part, told, 1) if told else template.replace(f"{part} ", "", 1)
    return template.format_map(words) if all(map(words.get, _PLACES.findall(template))) else ""


def summarize(facts: Facts) -> str:
    """Write the summary: one sentence with all facts there are.

    >>> summarize(Facts("Ada Ricci", "opened", "mill", "Pisa", people="30"))
    'in Pisa Ada Ricci opened the mill before 30 people .'
    """
    return fill(SUMMARY, asdict(facts))


def leave_out(facts: Facts, omit: Sequence[str]) -> Facts:
    """Return the facts without some of them.

    Args:
        omit: Names of facts, each one of ``OPTIONAL``.

    Raises:
        ValueError: If a fact cannot be left out.
    """
    unknown = sorted(set(omit) - set(OPTIONAL))
    if unknown:
        raise ValueError(f"only {' and '.join(OPTIONAL)} can be left out of an article, got {unknown}")
    return Facts(**{name: "" if name in omit else word for name, word in asdict(facts).items()})
