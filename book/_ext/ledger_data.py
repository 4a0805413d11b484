"""What the ledger says of each claim: where it is measured, what was found, how it was tried and doubted."""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from exformer_lessons.formatting import typeset, value_specs, write_apart
from exformer_lessons.trials import Trial, read_trial

#: Where the records are.
LESSONS = "lib/exformer_lessons"
HEADING = re.compile(r"^#{2,3} (.+)$", flags=re.M)
FENCE = re.compile(r"^(`{3,}).*?^\1", flags=re.M | re.S)
LINE = re.compile(r"(claim|shown) ([A-Z]\d\d) \| (.+)")


@dataclass(frozen=True)
class Place:
    """A notebook in which a row is claimed or shown."""

    key: str  # positional_encoding, or evidence/positional_encoding
    page: str  # notebooks/05_positional_encoding
    name: str  # lesson 05, or the evidence
    kind: str  # claim or shown
    says: str
    trial: Trial | None = None
    doubt: dict | None = None
    heading: str = ""  # of the section in which it stands

    @property
    def sabotage(self):
        """What was sabotaged, and what became of the figures told, in words; nothing where it was not."""
        if not self.doubt or not self.doubt["refused"]:
            return ""
        specs, normally = value_specs(self.doubt.get("says", "")), self.doubt["normally"]
        changed = [n for n, value in self.doubt["sabotaged"].items() if not _is_same(value, normally.get(n))]
        values = []
        for name in [n for n in changed if n in specs] or changed:
            now, then = write_apart(self.doubt["sabotaged"][name], normally.get(name), specs.get(name, ""))
            values.append(f"{name.replace('_', ' ')} {now} instead of {then}")
        return f"{self.doubt['what'].rstrip('.')}; {', '.join(values)}"

    @property
    def over_seeds(self):
        """The mean and the range of each value over the seeds, in words; nothing where there is no trial."""
        if not self.trial:
            return ""
        told = [name for name in value_specs(self.trial.says) if not self.trial.is_constant(name)]
        found = [(name.replace("_", " "), self.trial.over_seeds(name)) for name in told]
        return ", ".join(f"{name} {range_}" for name, range_ in found if range_ != "–")

    @property
    def trial_rows(self):
        """The trial's table, of the values that the sentence writes."""
        names = {name for run in self.trial.runs.values() for name in run.get("values", {})}
        return self.trial.without(*names.difference(value_specs(self.trial.says))).rows()


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

    def belongs_to(self, lesson):
        """Say whether a lesson, or its evidence, measures it."""
        return lesson["slug"] in self.row["lessons"] or lesson["slug"] in self.row.get("evidence", [])

    def places_in(self, lesson):
        """Return the places in a lesson and in its evidence."""
        return [place for place in self.places if place.key.removeprefix("evidence/") == lesson["slug"]]


def read_claims(root):
    """Return the rows of the ledger, in their order; none where the list is not written."""
    path = Path(root, "book", "claims.yml")
    return (yaml.safe_load(path.read_text(encoding="utf-8")) or []) if path.is_file() else []


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
        book / "claims.yml",
        book / "lessons.yml",
        *sorted(Path(root, LESSONS).rglob("trials.json")),
        Path(root, LESSONS, "doubts.json"),
    ]
    return [*found, *sorted(notebooks.rglob("*.ipynb"))]


def cells_of(root, page):
    """Return the cells of a notebook, from the name of its page."""
    return json.loads(Path(root, f"{page}.ipynb").read_text(encoding="utf-8"))["cells"]


def measured(root, page):
    """Return {claim id: (claim or shown, sentence, heading)} from what is stored in a notebook."""
    found, heading = {}, ""
    for cell in cells_of(root, page):
        if cell["cell_type"] == "markdown":
            heading = (HEADING.findall(FENCE.sub("", "".join(cell.get("source", "")))) or [heading])[-1]
        for output in cell.get("outputs", []):
            text = "".join(output.get("data", {}).get("text/plain", output.get("text", "")))
            found |= {
                m[2]: (m[1], typeset(m[3]), heading) for m in map(LINE.fullmatch, text.splitlines()) if m
            }
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
            for claim_id, (kind, says, heading) in measured(root, page).items() if page else ():
                tried = claim_id in record.get("claims", {})
                trial = read_trial(key, record, claim_id) if tried else None
                doubt = doubts.get(key, {}).get(claim_id)
                found.setdefault(claim_id, []).append(
                    Place(key, page, name, kind, says, trial, doubt, heading)
                )
    return found


def entries(root):
    """Return all rows of the ledger with their places."""
    found = places(root)
    return [Entry(row, found.get(row["id"], [])) for row in read_claims(root)]


def _is_same(one, other):
    """Say whether two values are equal, rounding apart."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6)
    return one == other


def _read(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
