"""The figures of a notebook, as its outputs and the metadata of its cells have them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A figure of a lesson: its name, the picture, its caption and its alternative text."""

    name: str
    svg: str
    caption: str
    alt: str


def figures(cells):
    """Return the figures of some cells, in their order; one that the page does not name is numbered."""
    found = []
    for number, cell in enumerate(cells):
        told = cell["metadata"].get("mystnb", {})
        about = told.get("figure", {})
        for output in cell.get("outputs", []):
            if svg := "".join(output.get("data", {}).get("image/svg+xml", "")):
                name = about.get("name", f"cell-{number}")
                alt = told.get("image", {}).get("alt", "")
                found.append(Figure(name, svg[svg.index("<svg") :], about.get("caption", ""), alt))
    return found
