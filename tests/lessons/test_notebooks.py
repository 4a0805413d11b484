"""What nbval lets through, and the shape of a lesson: order, outputs, twins, claims, words."""

import ast
import json
import re
from functools import cache
from pathlib import Path
from statistics import median

import pytest
import yaml
from folded_solutions import exercises, solutions

from exformer_lessons.tolerances import read_tags

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
EVIDENCE = sorted((ROOT / "notebooks" / "evidence").glob("*.ipynb"))
LABS = sorted((ROOT / "notebooks" / "labs").glob("*.ipynb"))
TAGS = {
    *("setup", "timing", "exercise", "solution", "raises-exception", "nbval-ignore-output", "untrained"),
    *("show-input", "hide-input", "hide-output", "hide-cell", "remove-input", "remove-output", "remove-cell"),
}
SETUP = """\
# Set-up. On Colab this installs the book's packages; elsewhere it does nothing.
REPO = ""
from importlib.util import find_spec

if find_spec("exformer_lessons") is None:
    import subprocess, sys

    if not REPO:
        raise ModuleNotFoundError("This copy does not know its book: use the Colab button of its page.")
    parts = [f"git+{REPO}#subdirectory=lib/{part}" for part in ("exformer", "exformer_lessons")]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *parts], check=True)
"""
BOXES = ("Question", "Predict", "Break it", "In short")
#: A lesson of the new form has this section, and keeps to the budget of :func:`check_budget`.
TODAY = "## In models of today"
#: What is not read with the lesson: exercises, folded solutions, programs in fences.
ASIDE = (
    re.compile(r"^<details>$.*?^</details>$", flags=re.M | re.S),
    re.compile(r"^> \*\*Exercise .*?(?=^$|\Z)", flags=re.M | re.S),
    re.compile(r"^(`{3,}).*?^\1", flags=re.M | re.S),
)
DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
LOCAL_PATH = re.compile(r"/(?:home|tmp|root|Users|work)/|[A-Z]:\\\\")


def cells(path, kind):
    """Return a lesson's cells of one kind, the source of each as one string; empty ones are left out."""
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for cell in found:
        cell["source"] = "".join(cell["source"])
        cell["tags"] = cell["metadata"].get("tags", [])
    return [cell for cell in found if cell["source"].strip() and kind in (cell["cell_type"], "any")]


def written(source):
    """Return the lines that are not blank."""
    return [line for line in source.splitlines() if line.strip()]


def tree(source):
    """Return the syntax tree of definitions as text, without docstrings, annotations and decorators."""
    parsed = ast.parse(source)
    for node in ast.walk(parsed):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.decorator_list = []
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
    parsed.body = [node for node in parsed.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return ast.dump(parsed)


@cache
def library_source(name):
    """Return the text of one definition of the library, by its dotted name."""
    module, _, thing = name.rpartition(".")
    text = (ROOT / "lib" / Path(*module.split("."))).with_suffix(".py").read_text(encoding="utf-8")
    found = [node for node in ast.parse(text).body if getattr(node, "name", "") == thing]
    assert found, f"{name}: the library has no such definition"
    return ast.get_source_segment(text, found[0])


@cache
def public_names():
    """Return all names that the library defines at the top of its modules, the helpers of lessons apart."""
    names = set()
    for path in (ROOT / "lib" / "exformer").rglob("*.py"):
        if "lessons" in path.relative_to(ROOT).parts:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                names.add(node.name)
    return names


def check_outputs(path):
    """Each cell was run, in order; errors, stderr and paths are only where they may be."""
    code = cells(path, "code")
    counts = [cell["execution_count"] for cell in code]
    assert counts == list(range(1, len(code) + 1)), "run all cells in order: make notebooks"
    for cell in code:
        errors = [out for out in cell["outputs"] if out["output_type"] == "error"]
        assert bool(errors) == ("raises-exception" in cell["tags"]), cell["source"]
        assert not [out for out in cell["outputs"] if out.get("name") == "stderr"], cell["source"]
        kept = [out for out in cell["outputs"] if "image/svg+xml" not in out.get("data", {})]
        found = LOCAL_PATH.search(json.dumps(kept))
        assert not found, f"a path of this machine in the output: {found[0]}"


def check_tags(path):
    """Tags come from the list; what is not compared must be a time."""
    for cell in cells(path, "code"):
        plain = {tag for tag in cell["tags"] if not tag.startswith(("twin:", "tolerance:"))}
        assert plain <= TAGS, f"unknown tags {plain - TAGS}"
        assert ("nbval-ignore-output" in plain) == ("timing" in plain), "only times are not compared"
        assert not (read_tags(cell["tags"]) and "timing" in plain), (
            "a time is not compared: drop the tolerance"
        )


def check_setup(path):
    """The first code cell is the set-up cell, with nothing but the address changed."""
    first = cells(path, "code")[0]
    assert "setup" in first["tags"]
    source = re.sub(r'^REPO = ".*"$', 'REPO = ""', first["source"], flags=re.M)
    first, book = (ast.dump(ast.parse(text)) for text in (source, SETUP))
    assert first == book, "the set-up cell has another text than the rest of the book"
    assert sum("setup" in cell["tags"] for cell in cells(path, "code")) == 1


def lesson_text(path):
    """Return the text that is read with a lesson, without exercises, solutions and programs."""
    prose = "\n\n".join(cell["source"] for cell in cells(path, "markdown"))
    for part in ASIDE:
        prose = part.sub("", prose)
    return prose


def check_shape(path):
    """One title, the boxes in their order, the last three sections by their names."""
    text = lesson_text(path)
    assert len(re.findall(r"^# ", text, flags=re.M)) == 1
    places = [text.find(f"> **{box}.**") for box in BOXES]
    assert -1 not in places, (
        f"boxes {[box for box, at in zip(BOXES, places, strict=True) if at < 0]} are missing"
    )
    assert places == sorted(places), "Question, Predict, Break it, In short: in this order"
    titles = re.findall(r"^## (.+?)\s*$", text, flags=re.M)
    if TODAY in text:
        assert titles[-4:] == ["In models of today", "In short", "Exercises", "Sources"]
    else:
        assert titles[-3:] == ["Exercises", "In short", "Sources"]
    assert 2 <= len(solutions(path.stem[3:])) <= 4, "two to four exercises that are graded"
    for title, found in exercises(path.stem[3:]).items():
        assert len(found) == 1, f"{title}: each exercise has its solution"


def check_length(path):
    """Cells are short, prose stands between them, and there is neither too little nor too much of it."""
    code = cells(path, "code")
    lengths = [len(written(cell["source"])) for cell in code]
    for cell in code:
        long = [line for line in cell["source"].splitlines() if len(line) > 88]
        folded = {"setup", "hide-input"} & set(cell["tags"])
        assert not long or folded, f"longer than 88 characters: {long[0]}"
    if TODAY in lesson_text(path):
        return  # check_budget counts the rest
    assert max(lengths) <= 20, written(code[lengths.index(max(lengths))]["source"])[0]
    seen = [n for n, cell in zip(lengths, code, strict=True) if "hide-input" not in cell["tags"]]
    assert median(seen) <= 9, median(seen)  # of what is read; pictures and claims are folded
    kinds = "".join(cell["cell_type"][0] for cell in cells(path, "any"))
    assert "ccc" not in kinds, f"three code cells in a row, the first is cell {kinds.index('ccc')}"
    read = lesson_text(path).split("## Exercises")[0]
    words = len(re.sub(r"^>", "", read, flags=re.M).split())
    assert 1_200 <= words <= 3_000, f"{words} words before the exercises"


def check_budget(path):
    """A lesson of the new form: words, figures, tables, code, predictions and claim lines."""
    text = lesson_text(path).split("## Exercises")[0]
    if TODAY not in text:
        return
    tables = len(re.findall(r"^\|[-: |]+\|$", text, flags=re.M))
    for part in (r"^>", r"\]\([^)\s]*\)", r"^[|#].*$", r"(?s:^\$\$.*?^\$\$)"):
        text = re.sub(part, "", text, flags=re.M)
    words = len(text.split())
    assert words <= 2_000, f"{words} words before the exercises"
    code = [cell for cell in cells(path, "code") if not {"exercise", "setup"} & set(cell["tags"])]
    seen = [cell for cell in code if "hide-input" not in cell["tags"]]
    shown = [out.get("data", {}) for cell in code for out in cell["outputs"]]
    figures = sum("image/svg+xml" in data or "image/png" in data for data in shown)
    tables += sum("<table" in "".join(data.get("text/html", "")) for data in shown)
    assert len(seen) <= 10, f"{len(seen)} open cells"
    long = [cell["source"] for cell in seen if len(written(cell["source"])) > 12]
    assert not long, f"an open cell of more than 12 lines: {long[0]}"
    assert figures <= 8, f"{figures} figures"
    assert tables <= 3, f"{tables} tables"
    assert text.count("**Predict.**") <= 3
    assert text.count("**Tested.**") <= 2
    for cell in code:
        caption = cell["metadata"].get("mystnb", {}).get("figure", {}).get("caption", "")
        assert len(caption.split()) <= 40, f"a caption of more than 40 words: {caption}"
        proof = re.search(r"^\s*(?:claim|shown)\(|^trial\(\"\w+\"\)", cell["source"], flags=re.M)
        assert not proof, f"the proof is in the evidence: {proof[0]}"


def check_ends(path):
    """Every cell ends in a value, a picture or a claim; definitions, imports and the set-up need not."""
    for cell in cells(path, "code"):
        body = ast.parse(cell["source"]).body if "raises-exception" not in cell["tags"] else []
        starts = [ast.unparse(node) for node in body if not isinstance(node, DEFINITIONS)]
        quiet = all(text.startswith("start(") for text in starts)
        assert quiet or cell["outputs"] or "setup" in cell["tags"], f"no output:\n{cell['source']}"


def check_figures(path):
    """A cell that draws has words for those who do not see it."""
    for cell in cells(path, "code"):
        data = [out.get("data", {}) for out in cell["outputs"]]
        if any("image/png" in d or "image/svg+xml" in d for d in data):
            alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
            assert len(alt) >= 20, f"a figure without mystnb.image.alt:\n{cell['source']}"
            assert all("image/svg+xml" in d for d in data if "image/png" in d), "a figure without SVG"


def check_twins(path):
    """A twin is the library's text; a definition with a library's name is a twin."""
    names = public_names()
    for cell in cells(path, "code"):
        twins = [tag.removeprefix("twin:") for tag in cell["tags"] if tag.startswith("twin:")]
        if twins:
            theirs = "\n".join(library_source(name) for name in twins)
            assert tree(cell["source"]) == tree(theirs), f"{twins} differs from the library"
            continue
        body = ast.parse(cell["source"]).body if "raises-exception" not in cell["tags"] else []
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                assert node.name not in names, f"{node.name} is a name of the library: tag the cell twin:…"


def check_claims(path):
    """A page states what the ledger lists for it, each row once: on a card, or in a line *Tested*."""
    rows = yaml.safe_load((ROOT / "book" / "claims.yml").read_text(encoding="utf-8"))
    field, name = ("evidence", path.stem) if path in EVIDENCE else ("lessons", path.stem[3:])
    listed = sorted(row["id"] for row in rows if name in row.get(field, []))
    told = re.findall(r"^> \*\*Tested\.\*\*.*?(?=^$|\Z)", lesson_text(path), flags=re.M | re.S)
    called = re.findall(r"claims\.md#(\w\d\d)\)", "\n".join(told))
    shown = list(called)
    for cell in cells(path, "code"):
        called += re.findall(r'^\s*(?:claim|shown)\(\s*"(\w+)"', cell["source"], flags=re.M)
        for out in cell["outputs"]:
            text = "".join(out.get("data", {}).get("text/plain", ""))
            shown += re.findall(r"^(?:claim|shown) (\w+) \| .+$", text, flags=re.M)
    assert sorted(shown) == listed, (
        f"shown and not listed, or listed and not shown: {set(shown) ^ set(listed)}"
    )
    assert sorted(called) == sorted(shown)


def check_sections(path):
    """Evidence has a title, then sections; that of a claim bears the claim's name, and has no other."""
    sections = [["", []]]
    for cell in cells(path, "any"):
        if cell["cell_type"] == "markdown":
            sections += [[title, []] for title in re.findall(r"^##? (.+?)\s*$", cell["source"], flags=re.M)]
        else:
            sections[-1][1] += re.findall(r'^\s*(?:claim|shown)\(\s*"(\w+)"', cell["source"], flags=re.M)
    (_, none), (title, before), *rest = sections
    assert title.startswith("Evidence"), f"the title must begin with Evidence, got {title!r}"
    assert not none + before, f"{none + before} must have a section of its own"
    for title, claims in rest:
        named = [title[:3]] if re.match(r"[A-Z]\d\d\b", title) else []
        assert named == claims, f"{title!r}: a section of one claim begins with its name, got {claims}"
    long = [cell for cell in cells(path, "code") if len(written(cell["source"])) > 20]
    assert not long, f"more than 20 lines: {written(long[0]['source'])[0]}"


OF_LAB = ("outputs", "tags", "setup", "figures", "twins")
OF_EVIDENCE = (*OF_LAB, "claims", "sections")
CHECKS = {
    name.removeprefix("check_"): check for name, check in globals().items() if name.startswith("check_")
}


@pytest.mark.parametrize("name", [name for name in CHECKS if name != "sections"])
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_lesson(path: Path, name: str) -> None:
    CHECKS[name](path)


@pytest.mark.parametrize(
    ("path", "name"),
    [pytest.param(path, name, id=f"{path.stem}-{name}") for path in EVIDENCE for name in OF_EVIDENCE]
    or [pytest.param(None, "", id="none")],
)
def test_evidence(path: Path | None, name: str) -> None:
    if path is not None:
        CHECKS[name](path)


@pytest.mark.parametrize("name", OF_LAB)
@pytest.mark.parametrize("path", LABS, ids=lambda path: path.stem)
def test_lab(path: Path, name: str) -> None:
    CHECKS[name](path)


def notebook_of(folder, *sources):
    """Write a notebook; what begins with a # is Markdown."""
    found = [
        {"cell_type": "markdown" if text.startswith("#") else "code", "metadata": {}, "source": text}
        for text in sources
    ]
    path = folder / "one.ipynb"
    path.write_text(json.dumps({"cells": [each | {"outputs": []} for each in found]}), encoding="utf-8")
    return path


GOOD = (
    "# Evidence: lines",
    "x = 1",
    "## A01. One",
    "y = 1",
    'claim("A01", …)',
    "## B02. Two",
    'shown("B02")',
)


def test_evidence_has_a_section_for_each_claim(tmp_path) -> None:
    check_sections(notebook_of(tmp_path, *GOOD))
    check_sections(notebook_of(tmp_path, *GOOD, "## The lesson's own runs", "z = 1"))


@pytest.mark.parametrize(
    ("sources", "wrong"),
    [
        (("# Lines", *GOOD[1:]), "the title must begin with Evidence"),
        ((*GOOD[:2], 'claim("C03")', *GOOD[2:]), "must have a section of its own"),
        ((*GOOD, 'claim("C03")'), "a section of one claim"),
        ((*GOOD, "## C03. Three", "x"), "a section of one claim begins with its name, got \\[\\]"),
        ((*GOOD, "## Three", 'claim("C03")'), "a section of one claim begins with its name"),
        ((*GOOD, "## C04. Three", 'claim("C03")'), "a section of one claim begins with its name"),
        ((*GOOD, "x = 1\n" * 21), "more than 20 lines"),
    ],
)
def test_evidence_of_another_shape_is_found(tmp_path, sources, wrong) -> None:
    with pytest.raises(AssertionError, match=wrong):
        check_sections(notebook_of(tmp_path, *sources))
