"""What the ledger says of each claim: where it is measured, what was found, how it was tried and doubted."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from exformer_lessons.formatting import FIELD, typeset, value_specs, write_value
from exformer_lessons.trials import SEEDS, Trial, read_trial

#: Where the records are.
LESSONS = "lib/exformer_lessons"
#: Under this letter are the statements that lessons of this book make and no lecture.
OWN = "F"
FENCE = re.compile(r"^(`{3,}).*?^\1", flags=re.M | re.S)
LINE = re.compile(r"(claim|shown) ([A-Z]\d\d) \| (.+)")
#: A lecture in the table of the page of notations: letter, title, authors.
LECTURE = re.compile(
    r"^\| ([A-E]) \| \*(.+?)\*, (.+?)(?:, (?:University|after|in|\").*| after .*)? \|$", flags=re.M
)
#: A number that is read at a glance.
PLAIN = re.compile(r"−?[\d,.]{1,7}%?")


@dataclass(frozen=True)
class Place:
    """A notebook in which a row is claimed or shown."""

    key: str  # positional_encoding, or evidence/positional_encoding
    page: str  # notebooks/05_positional_encoding
    name: str  # lesson 05, or the evidence
    kind: str  # claim or shown
    says: str
    template: str = ""  # of the sentence, without its figures
    values: dict = field(default_factory=dict)
    trial: Trial | None = None
    doubt: dict | None = None

    @property
    def topic(self):
        """The slug of the lesson."""
        return self.key.removeprefix("evidence/")

    def spread(self, name):
        """Return the range of a value over the seeds, in parentheses; nothing where it does not vary."""
        found = self.trial.over_seeds(name) if self.trial else ""
        return found[found.index(" (") :] if " (" in found else ""


@dataclass(frozen=True)
class Entry:
    """A row of the ledger, with the places in which it is claimed or shown."""

    row: dict
    places: list

    @property
    def kind(self):
        """claimed, shown, or not yet."""
        kinds = {place.kind for place in self.places}
        return "claimed" if "claim" in kinds else "shown" if kinds else "not yet"

    @property
    def topics(self):
        """The slugs of the lessons that measure it or whose evidence does, in the lessons' order."""
        return list(dict.fromkeys(place.topic for place in self.places))

    def parts(self, template):
        """Return a sentence in parts: words, then by turns a measured value and words.

        The words after a value that varies over the seeds of a trial begin with its range.

        Args:
            template: With ``{name:.0%}`` for a value of a claim of this row.

        Raises:
            ValueError: If no claim of this row has the values.
        """
        place, found, end, spread = self._place_of(template), [], 0, ""
        for match in FIELD.finditer(template):
            value = write_value(place.values[match[2]], _spec(match[0]))
            found += [spread + template[end : match.start()], value]
            end, spread = match.end(), place.spread(match[2])
        return [*found, spread + template[end:]]

    @property
    def figure(self):
        """The number that settles it, in parts; nothing where there is none."""
        return self.parts(self.row["figure"]) if "figure" in self.row and self.places else []

    @property
    def page(self):
        """The page on which the figure is measured."""
        return self._place_of(self.row.get("figure", "")).page

    def tried(self, place):
        """Say in words in which runs the claim held."""
        if not place.trial:
            return ""
        runs, budget = place.trial.runs, place.trial.budget
        beyond = budget and runs.get("4x steps", {}).get("holds") is False
        held = {name for name, run in runs.items() if run.get("holds")}
        seeds, others = set(SEEDS) & set(runs), set(runs) - set(SEEDS) - ({"4x steps"} if beyond else set())
        told = (
            f"{len(held & seeds)} of {len(seeds)} seeds and {len(held & others)} of {len(others)} runs with "
            f"other {'' if beyond else 'steps, '}learning rates or another order of batches support it"
        )
        return told + "; it names a budget of training, and with four times as much it need not hold" * beyond

    def doubted(self, place):
        """Say in words what was sabotaged and what became of the figure; nothing where it was not refused."""
        if not place.doubt or not place.doubt["refused"]:
            return ""
        told, name = place.doubt["what"].rstrip("."), self._name_of_figure(place)
        if name in place.doubt["sabotaged"]:
            before, after = (place.doubt[when][name] for when in ("normally", "sabotaged"))
            was, became = (write_value(each, _spec(self.row["figure"])) for each in (before, after))
            is_zero = not became.strip("0.,%−") and after != 0
            if was != became and not is_zero and PLAIN.fullmatch(became):
                told += f"; the number becomes {became}"
        return f"{told}; the claim fails"

    def _place_of(self, template):
        names = {match[2] for match in FIELD.finditer(template)}
        place = next((place for place in self.places if names <= set(place.values)), None)
        if place is None:
            known = sorted({name for place in self.places for name in place.values})
            raise ValueError(f"{self.row['id']} measures {', '.join(known)}, got {template!r}")
        return place

    def _name_of_figure(self, place):
        figure = self.row.get("figure", "")
        return FIELD.search(figure)[2] if figure and self._place_of(figure) is place else ""


def read_claims(root):
    """Return the rows of the ledger, in their order; none where the list is not written."""
    path = Path(root, "book", "claims.yml")
    return (yaml.safe_load(path.read_text(encoding="utf-8")) or []) if path.is_file() else []


def read_lectures(root):
    """Return {letter: title and authors} of the lectures, from the page of notations; and what is our own."""
    text = Path(root, "book", "notation.md").read_text(encoding="utf-8")
    table = text.partition("## The five lectures")[2].partition("\n## ")[0]
    found = {letter: f"{title}, {authors}" for letter, title, authors in LECTURE.findall(table)}
    return found | {OWN: "our own, of lessons that go on where the lectures end"}


def read_lessons(root):
    """Return the plan: number, slug, title and question of each lesson, and the names of its pages."""
    lessons = yaml.safe_load(Path(root, "book", "lessons.yml").read_text(encoding="utf-8"))
    for lesson in lessons:
        found = sorted(Path(root, "notebooks").glob(f"[0-9][0-9]_{lesson['slug']}.ipynb"))
        lesson["page"] = f"notebooks/{found[0].stem}" if found else ""
        evidence = f"notebooks/evidence/{lesson['slug']}"
        lesson["evidence"] = evidence if Path(root, f"{evidence}.ipynb").is_file() else ""
    return lessons


def sources(root):
    """Return the files from which the ledger is made."""
    book, notebooks = Path(root, "book"), Path(root, "notebooks")
    found = [
        *(book / name for name in ("claims.yml", "lessons.yml", "notation.md")),
        *sorted(Path(root, LESSONS).rglob("trials.json")),
        Path(root, LESSONS, "doubts.json"),
    ]
    return [*found, *sorted(notebooks.rglob("*.ipynb"))]


def cells_of(root, page):
    """Return the cells of a notebook, from the name of its page."""
    return json.loads(Path(root, f"{page}.ipynb").read_text(encoding="utf-8"))["cells"]


def cost_of(root, page):
    """Return the "seconds" and "gigabytes" of a notebook's last run; nothing where they are not stored."""
    notebook = json.loads(Path(root, f"{page}.ipynb").read_text(encoding="utf-8"))
    return notebook.get("metadata", {}).get("cost", {})


def measured(root, page):
    """Return {claim id: (claim or shown, sentence, template, values)} of what a notebook has stored."""
    found = {}
    for cell in cells_of(root, page):
        for output in cell.get("outputs", []):
            text = "".join(output.get("data", {}).get("text/plain", output.get("text", "")))
            kept = output.get("metadata", {}).get("exformer", {})
            kept = (kept.get("says", ""), kept.get("values", {}))
            lines = filter(None, map(LINE.fullmatch, text.splitlines()))
            found |= {line[2]: (line[1], typeset(line[3]), *kept) for line in lines}
    return found


def places(root):
    """Return {claim id: its places}, the lessons in their order, the evidence of each after it."""
    doubts = _read(Path(root, LESSONS, "doubts.json"))
    found = {}
    for lesson in read_lessons(root):
        pages = [(lesson["slug"], lesson["page"], f"lesson {lesson['number']}")]
        pages.append((f"evidence/{lesson['slug']}", lesson["evidence"], "the evidence"))
        for key, page, name in pages:
            record = _read(Path(root, LESSONS, *reversed(key.split("/")), "trials.json"))
            for claim_id, told in measured(root, page).items() if page else ():
                tried = claim_id in record.get("claims", {})
                trial = read_trial(key, record, claim_id) if tried else None
                doubt = doubts.get(key, {}).get(claim_id)
                found.setdefault(claim_id, []).append(Place(key, page, name, *told, trial, doubt))
    return found


def entries(root):
    """Return all rows of the ledger with their places."""
    found = places(root)
    return [Entry(row, found.get(row["id"], [])) for row in read_claims(root)]


def entries_of(env):
    """Return the rows for a page, which depends on their files: its directives and roles read them once."""
    if "ledger" not in env.temp_data:
        env.temp_data["ledger"] = entries(env.srcdir)
        for path in sources(env.srcdir):
            env.note_dependency(str(path))
    return env.temp_data["ledger"]


def _spec(template):
    """Return how a template writes its one value."""
    return next(iter(value_specs(template).values()))


def _read(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
