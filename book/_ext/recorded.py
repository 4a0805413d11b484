"""Numbers in running text, from the files that commands write; and who made the book, at its end.

``{recorded}`C01 lstm``` is a value of a claim, written as in its sentence; ``{recorded}`C01 lstm seeds``` its
mean and range over the seeds, ``{recorded}`C01 lstm sabotaged``` what the sabotage makes of it.
``{counted}`claims``` is one of `COUNTS`. Directive ``{colophon}`` writes what CITATION.cff says.
"""

import json
from datetime import date
from pathlib import Path

import yaml
from bugs import read_bugs
from docutils import nodes
from ledger_data import OWN, cost_of, entries_of, read_lessons
from repo_links import find_repository, git
from sphinx.util.docutils import SphinxDirective, SphinxRole

from exformer_lessons.formatting import value_specs, write_value
from exformer_lessons.teacher.questions import lessons_with_questions, read_questions

LIBRARY = "lib/exformer"
TEACH = "book/teach"
#: The packages that hold the models and their parts.
MODELS = ("nn", "models")
#: Numbers of lessons, from ten.
WORDS = (
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty", "twenty-one", "twenty-two"),
)


def recorded(found, claim_id, name, how=""):
    """Return a value of a claim, as a page writes it.

    Args:
        found: The rows of the ledger.
        claim_id: The claim; ``D03@language_model`` is that of one notebook of several.
        name: Of its value.
        how: Nothing, "seeds" or "sabotaged".

    Raises:
        ValueError: If there is no such claim, value or way.
    """
    row, _, slug = claim_id.partition("@")
    places = [place for entry in found if entry.row["id"] == row for place in entry.places]
    places = [place for place in places if place.key.endswith(slug)]
    place = next((one for one in places if name in one.values and one.doubt), None)
    if place is None:
        raise ValueError(f"claim {claim_id} has no recorded value {name!r}")
    spec = value_specs(place.doubt["says"]).get(name, "")
    if how == "seeds" and place.trial:
        return place.trial.over_seeds(name)
    if how not in ("", "sabotaged"):
        raise ValueError(f"claim {claim_id}: expected seeds (of a trial) or sabotaged, got {how!r}")
    return write_value((place.doubt["sabotaged"] if how else place.values)[name], spec)


def of_lectures(found):
    """Return the rows of the ledger whose statements a lecture makes."""
    return [entry for entry in found if entry.row["lecture"] != OWN]


def lines_of_models(root):
    """Return how many lines of Python the models and their parts have, to the nearest hundred."""
    files = [path for part in MODELS for path in Path(root, LIBRARY, part).rglob("*.py")]
    return round(sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files), -2)


def planted_bugs(root):
    """Return how many bugs the tests plant in the library."""
    return len(yaml.safe_load(Path(root, "tests/library/planted_bugs.yml").read_text(encoding="utf-8")))


def diverged_runs(found):
    """Return in how many runs of a trial a training diverged."""
    trials = [place.trial for entry in found for place in entry.places if place.trial]
    return sum("diverged" in run for trial in trials for run in trial.runs.values())


def written_lessons(root):
    """Return how many lessons there are, in words."""
    return WORDS[sum(bool(lesson["page"]) for lesson in read_lessons(root)) - 10]


def greatest_cost(root, what):
    """Return the most that running a lesson needs: "seconds" or "gigabytes"."""
    pages = [lesson["page"] for lesson in read_lessons(root) if lesson["page"]]
    return max(cost_of(root, page).get(what, 0) for page in pages)


def asked_of(root):
    """Return the slugs of the lessons that have questions for teachers."""
    return lessons_with_questions(Path(root, TEACH))


def seconds_to_install(root):
    """Return how long ``doctor`` took at first, without the download, as ``make rehearsal`` measured it."""
    steps = json.loads(Path(root, "book", "rehearsal.json").read_text(encoding="utf-8"))["steps"]
    return next(each["seconds"] for each in steps if each["words"] == "doctor, which installs all")


#: What can be counted: the rows of the ledger and the folder of the book -> a number or its word.
COUNTS = {
    "statements": lambda found, root: len(of_lectures(found)),
    "claims": lambda found, root: sum(entry.kind == "claimed" for entry in of_lectures(found)),
    "shown": lambda found, root: sum(entry.kind == "shown" for entry in of_lectures(found)),
    "condition": lambda found, root: sum(entry.row["verdict"] == "condition" for entry in of_lectures(found)),
    "wrong": lambda found, root: sum(entry.row["verdict"] == "wrong" for entry in of_lectures(found)),
    "own statements": lambda found, root: len(found) - len(of_lectures(found)),
    "diverged runs": lambda found, root: diverged_runs(found) or "none",
    "trials": lambda found, root: sum(any(place.trial for place in entry.places) for entry in found),
    "lines of nn and models": lambda found, root: f"{lines_of_models(root):,}",
    "planted bugs": lambda found, root: planted_bugs(root),
    "bugs of others": lambda found, root: sum(
        each.get("bug", True) for part in read_bugs(root)["subjects"] for each in part["bugs"]
    ),
    "lessons": lambda found, root: written_lessons(root),
    "questions": lambda found, root: sum(
        len(read_questions(Path(root, TEACH), slug)) for slug in asked_of(root)
    ),
    "lessons with questions": lambda found, root: len(asked_of(root)),
    "seconds of a lesson": lambda found, root: greatest_cost(root, "seconds"),
    "gigabytes of a lesson": lambda found, root: greatest_cost(root, "gigabytes"),
    "seconds to install": lambda found, root: seconds_to_install(root),
}


class Number(SphinxRole):
    """A number from a file."""

    def run(self):
        """Return it, or say why there is none."""
        try:
            return [nodes.Text(self.number(entries_of(self.env), self.env.srcdir))], []
        except ValueError as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]


class Recorded(Number):
    """``{recorded}`C01 lstm seeds```."""

    def number(self, found, root):
        """Return the value of a claim."""
        return recorded(found, *self.text.split())


class Counted(Number):
    """``{counted}`claims```."""

    def number(self, found, root):
        """Return a count."""
        if self.text not in COUNTS:
            raise ValueError(f"expected one of {', '.join(COUNTS)}, got {self.text!r}")
        return str(COUNTS[self.text](found, root))


def colophon(root):
    """Return authors, version, date, license and the address of the source; those that are known.

    The date is that of the last commit.
    """
    told = yaml.safe_load(Path(root, "CITATION.cff").read_text(encoding="utf-8"))
    names = [each.get("name") or f"{each['given-names']} {each['family-names']}" for each in told["authors"]]
    told_day = git(root, "log", "-1", "--format=%cs")
    day = date.fromisoformat(told_day) if told_day else None
    when = f", {day.day} {day:%B %Y}" if day else ""
    return names, f"Version {told['version']}{when}", told["license"], find_repository(root)[0]


class Colophon(SphinxDirective):
    """Who made the book, which version it is, its license and its source."""

    def run(self):
        """Return a paragraph."""
        root = Path(self.env.srcdir)
        self.env.note_dependency(str(root / "CITATION.cff"))
        names, version, license_name, address = colophon(root)
        text = f"{', '.join(names)}. {version}. {license_name} license."
        told = nodes.paragraph("", text, classes=["colophon"])
        if address:
            told += [nodes.Text(" "), nodes.reference("", "Source", refuri=address), nodes.Text(".")]
        return [told]


def setup(app):
    """Register the extension."""
    app.add_role("recorded", Recorded())
    app.add_role("counted", Counted())
    app.add_directive("colophon", Colophon)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
