"""Which cells of a lesson are folded, and what their label says.

    python book/_tools/folding.py        # fold all lessons; `make notebooks` folds those that it runs

A cell that shows a figure or a claim's card is folded, since its code plots or assembles; its output stays.
Three kinds stay open: those that define what a later cell uses, exercises, and those that are tagged
``show-input`` or as a twin. Any other cell is folded where its author gave it the tag ``hide-input`` and a
label, ``mystnb.code_prompt_show``. The labels of claims and figures are made here, unless one is there.
"""

import ast
import json
import re
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SETUP = "Set up the lesson"
CARD = re.compile(r"^(claim|shown) (\w+) \|", flags=re.M)
#: What an alternative text calls its picture.
KIND = re.compile(r"\b(heat map|line chart|bar chart|scatter plot|histogram|diagram|chart)(s?)\b", flags=re.I)
#: Labels that are made here begin so; the author's own are kept.
MADE = re.compile(r"Assemble claims? |Show [A-Z]\d\d|Plot the |Plot: |Draw the |Set up the lesson$")


def fold(cells):
    """Fold the cells of a notebook, in place.

    Args:
        cells: The cells, as a notebook holds them.
    """
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    for place, cell in enumerate(code):
        metadata = cell["metadata"]
        label = metadata.get("mystnb", {}).get("code_prompt_show", "")
        made = bool(MADE.match(label))
        by_rule = is_folded(cell, code[place + 1 :])
        by_author = "hide-input" in metadata.get("tags", []) and not made
        if by_rule and (made or not label):
            label = made_label(cell)
        _forget(metadata)
        if by_rule or by_author:
            metadata["tags"] = [*metadata.get("tags", []), "hide-input"]
            metadata.setdefault("jupyter", {})["source_hidden"] = True
            if label:
                metadata.setdefault("mystnb", {})["code_prompt_show"] = label


def is_folded(cell, later):
    """Whether the rule folds a cell.

    Args:
        cell: A code cell.
        later: The code cells after it.
    """
    tags = cell["metadata"].get("tags", [])
    if "setup" in tags:
        return True
    if {"exercise", "show-input", "raises-exception"} & set(tags) or any(t.startswith("twin:") for t in tags):
        return False
    return bool(cards_of(cell) or has_figure(cell)) and not defines_for(cell, later)


def cards_of(cell):
    """Return (kind, id) of the cards of a cell: a claim, or what is shown."""
    texts = ("".join(out.get("data", {}).get("text/plain", "")) for out in cell["outputs"])
    return [found for text in texts for found in CARD.findall(text)]


def has_figure(cell):
    """Whether a cell shows a picture."""
    return any({"image/png", "image/svg+xml"} & set(out.get("data", {})) for out in cell["outputs"])


def defines_for(cell, later):
    """Whether a cell defines a function or a class that a later cell uses; an exercise counts for none."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    names = {node.name for node in ast.parse(_source(cell)).body if isinstance(node, kinds)}
    for other in later:
        tags = other["metadata"].get("tags", [])
        if names and not {"exercise", "raises-exception"} & set(tags):
            tree = ast.parse(_source(other))
            if names & {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}:
                return True
    return False


def made_label(cell):
    """Return what the folded code does: set up, assemble claims, plot a figure."""
    if "setup" in cell["metadata"].get("tags", []):
        return SETUP
    cards = cards_of(cell)
    ids = " and ".join(name for _, name in cards)
    if ids and cards[0][0] == "claim":
        return f"Assemble claim{'s' * (len(cards) > 1)} {ids}"
    if ids:
        return f"Show {ids}"
    mystnb = cell["metadata"].get("mystnb", {})
    caption = re.split(r"(?<=[.:;?!]) ", mystnb.get("figure", {}).get("caption", ""))[0].strip(" .:;")
    if 0 < len(caption) <= 60 and re.fullmatch(r"[^][$*`\\]+", caption):
        return f"Plot: {caption}"
    kind = KIND.search(mystnb.get("image", {}).get("alt", ""))
    if kind is None:
        return "Plot the figure"
    return f"{'Draw' if kind[1].lower() == 'diagram' else 'Plot'} the {kind[0].lower()}"


def _source(cell):
    return "".join(cell["source"])


def _forget(metadata):
    """Take away what an earlier folding wrote."""
    tags = [tag for tag in metadata.get("tags", []) if tag != "hide-input"]
    for group, key in (("jupyter", "source_hidden"), ("mystnb", "code_prompt_show")):
        metadata.get(group, {}).pop(key, None)
        if group in metadata and not metadata[group]:
            del metadata[group]
    metadata.pop("tags", None)
    if tags:
        metadata["tags"] = tags


def main():
    """Fold the lessons that are stored."""
    for path in sorted(NOTEBOOKS.glob("**/*.ipynb")):
        old = path.read_text(encoding="utf-8")
        notebook = json.loads(old)
        fold(notebook["cells"])
        new = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"  # as nbformat does
        if new != old:
            path.write_text(new, encoding="utf-8")
            print(f"folded: {path.stem}")


if __name__ == "__main__":
    main()
