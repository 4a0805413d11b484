"""Measurements of the benchmarks beside their targets: JSON and YAML -> findings."""

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean, median
from textwrap import shorten

import yaml
from jsonschema import Draft202012Validator

FILES = (
    *("models", "seeds", "bench", "generation", "byte_pairs", "shakespeare", "board", "agreement"),
    "samples",
)
OURS = "exformer"
ASKED = {"most": "at most {}", "least": "at least {}", "times": "at least {} times as fast"}
LOSS_DIGITS = 4  # of a loss beside nanoGPT's: as it is shown and judged
#: The verdict where the target lies between the seeds or within the middle half of the rounds.
SPREAD = "within the spread"
#: Of two libraries: the largest difference of an output or gradient.
LARGEST = "largest difference"
LOSS, BITS = "validation loss, nats per token", "validation bits per byte"

SCHEMA = Path(__file__).parents[2] / "bench" / "results.schema.json"


@cache
def _validator(name):
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    part = schema["properties"][name] | {"$defs": schema["$defs"]}
    return Draft202012Validator(part)


def faults(found, name):
    """Return what is wrong with a file, by its schema: one line for each fault."""
    errors = sorted(_validator(name).iter_errors(found), key=lambda error: error.json_path)
    return [f"{error.json_path.removeprefix('$')} {_words(error)}".strip() for error in errors]


def _words(error):
    if error.validator == "required":
        missing = error.message.removesuffix(" is a required property")
        return f"lacks {missing[1:-1]}"  # without the quotes
    if error.validator == "minItems":
        return "is empty"
    return f"is {shorten(repr(error.instance), 60)}, expected {error.validator_value}"


def asked_words(asked):
    """Format a target: ("most", 0.95) -> "at most 0.95"."""
    how, limit = asked
    return ASKED[how].format(limit)


def seed_of_teachers(entry):
    """Return the seed of a model's teachers: its own unless the entry says otherwise."""
    return entry.get("teachers_seed", entry["seed"])


@dataclass(frozen=True)
class Results:
    """The measurements and their targets.

    Args:
        files: By name, what JSON holds; only files that are there and whole.
        broken: By name, what is wrong with the others that are there.
        asked: The contents of results.yml.
        cards: By name, the cards of the models that come with the library.
        paths: Of all files that were looked for.
    """

    files: dict
    broken: dict
    asked: dict
    cards: dict
    paths: tuple

    def models(self):
        """Return the scored models, each training once, in order of the seeds."""
        found = {}
        for name in ("models", "seeds"):
            for entry in self.files.get(name, []):
                found.setdefault((entry["recipe"], entry["seed"], seed_of_teachers(entry)), entry)
        return [found[key] for key in sorted(found)]

    def scores(self, recipe, name):
        """Return one score of all trainings of a recipe."""
        return [m["scores"][name] for m in self.models() if m["recipe"] == recipe and name in m["scores"]]


def read_results(root):
    """Read all results that exist."""
    root = Path(root)
    folder, table = root / "bench" / "results", root / "book" / "results.yml"
    shipped = sorted((root / "lib" / "exformer" / "shipped").glob("*/model.json"))
    files, broken = {}, {}
    for name in FILES:
        path = folder / f"{name}.json"
        if not path.is_file():
            continue
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            broken[name] = [f"no JSON: {error}"]
            continue
        if wrong := faults(found, name):
            broken[name] = wrong
        else:
            files[name] = found
    return Results(
        files,
        broken,
        yaml.safe_load(table.read_text(encoding="utf-8")),
        {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in shipped},
        (*(folder / f"{name}.json" for name in FILES), table, *shipped),
    )


@dataclass(frozen=True)
class Finding:
    """One measurement beside its target.

    Args:
        key: The row of a table that it belongs to.
        where: Under which circumstances, in words.
        value: As it is shown: rounded.
        asked: ``most``, ``least`` or ``times``, and the number.
        spread: The least and the greatest of its seeds, or the middle half of its rounds.
        unfit: Why the number does not count, if so.
        note: What else is to be said of it, however it is judged.
    """

    key: tuple
    where: str
    value: float
    asked: tuple
    spread: tuple = ()
    unfit: str = ""
    note: str = ""

    @property
    def asked_words(self):
        """The target in words."""
        return asked_words(self.asked)

    @property
    def found_words(self):
        """The measurement, with as many digits as it is judged by."""
        digits = 3 if self.asked[0] == "most" else 2
        return f"{self.value:.{digits}f}{' times' if self.asked[0] == 'times' else ''}"

    @property
    def verdict(self):
        """met, missed, or within the spread: the target lies between the seeds or rounds."""
        how, limit = self.asked
        if self.unfit:
            return "missed"
        if self.spread and self.spread[0] < limit < self.spread[1]:
            return SPREAD
        return "met" if (self.value <= limit if how == "most" else self.value >= limit) else "missed"


def findings(target, results):
    """Return the findings for a target, one for each race, text or model; none if nothing was measured."""
    how, limit = next(iter(target["asked"].items()))
    if target["from"]["file"] not in results.files:
        return []
    found = []
    for key, where, value, spread, *more in _FINDERS[target["from"]["file"]](target["from"], results):
        if how == "times":
            value, spread = 1 / value, tuple(1 / each for each in reversed(spread))
        digits = 3 if how == "most" else 2
        value, spread = round(value, digits), tuple(round(each, digits) for each in spread)
        found.append(Finding(key, where, value, (how, limit), spread, *more))
    return found


def _models(wanted, results):
    scores = results.scores(wanted["recipe"], wanted["score"])
    if scores:
        where = f"mean of {len(scores)} trainings" if len(scores) > 1 else "one seed"
        yield ("models", wanted["recipe"], wanted["score"]), where, mean(scores), (min(scores), max(scores))


def _bench(wanted, results):
    races = [race for race in results.files["bench"]["races"] if race["name"] in wanted["races"]]
    if {race["name"] for race in races} != set(wanted["races"]):
        return  # what holds for some of the sizes is no answer
    for race in races:
        ratios = {peer: race["contenders"].get(peer, {}).get("ratio", math.inf) for peer in wanted["peers"]}
        worst = max(ratios, key=ratios.get)
        absent = ratios[worst] == math.inf
        spread = () if absent else _middle_half(race["contenders"][worst])
        unfit = f"{worst} did not race" if absent else ""
        yield ("bench", race["name"], race["sizes"]), short_sizes(race), ratios[worst], spread, unfit


def _middle_half(timing):
    return timing["ratio_low"], timing["ratio_high"]


def short_sizes(race):
    """Name a race of training steps by what distinguishes it from its neighbors."""
    own = race["setting"]
    last = own["precision"] if "precision" in own else f"dropout {own['dropout']:g}"
    return f"d_model {own['d_model']}, {last}"


def _generation(wanted, results):
    for name in wanted["races"]:
        race = results.files["generation"]["races"].get(name, {"contenders": {}})
        if one := race["contenders"].get(wanted["peer"]):
            yield ("generation", name, wanted["peer"]), name, one["ratio"], _middle_half(one)


def _byte_pairs(wanted, results):
    for race in results.files["byte_pairs"]["races"]:
        one = race[wanted["work"]]["peers"][wanted["peer"]]
        key = ("byte_pairs", race["name"], wanted["work"], wanted["peer"])
        yield key, race["name"], one["ratio"], _middle_half(one)


def mean_loss(one):
    """Return a contender's mean validation loss, rounded as it is shown and judged."""
    return round(mean(one["validation_losses"]), LOSS_DIGITS)


def _shakespeare(wanted, results):
    race = results.files["shakespeare"]
    all_of_them = race["contenders"]
    absent = [peer for peer in wanted["peers"] if peer not in all_of_them]
    limit = wanted["loss"]  # a number, or "nanoGPT" for the mean of the one that the times are compared with
    limit = mean_loss(all_of_them[race["reference"]]) if limit == "nanoGPT" else limit
    for name in wanted["contenders"]:
        if one := all_of_them.get(name):
            losses = [round(loss, LOSS_DIGITS) for loss in one["validation_losses"]]
            loss = mean_loss(one)
            unfit = f"its mean loss is {loss:.{LOSS_DIGITS}f}" if loss > limit else ""
            unfit = f"{' and '.join(absent)} did not race" if absent else unfit
            reach = sum(loss <= limit for loss in losses)
            note = f"{reach} of {len(losses)} seeds reach {limit:.{LOSS_DIGITS}f}"
            theirs = mean(all_of_them[race["reference"]]["seconds"])
            spread = min(one["seconds"]) / theirs, max(one["seconds"]) / theirs
            yield ("shakespeare", name), name, one["ratio"], spread, unfit, note


_FINDERS = {
    "models": _models,
    "bench": _bench,
    "generation": _generation,
    "byte_pairs": _byte_pairs,
    "shakespeare": _shakespeare,
}


def bits_per_nat(scores):
    """Return how many bits per byte a nat per token is, by the tokenizer; None for translations."""
    return scores[BITS] / scores[LOSS] if BITS in scores else None


def speed(characters, seconds):
    """Return millions of characters a second, by the median round."""
    return characters / median(seconds) / 1e6
