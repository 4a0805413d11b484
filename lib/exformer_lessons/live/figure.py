"""What a live figure is: its still picture, its words, and the models that it needs."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

import torch

from exformer_lessons.diagrams import Diagram


@dataclass(frozen=True)
class Live:
    """Describe a live figure; the module ``live`` of a lesson's folder calls it ``FIGURE``.

    Args:
        name: Of its scripts in ``book/live``.
        still: Draws what is to be seen where nothing runs: in Jupyter, in print, without JavaScript.
        alt: The still picture in words.
        caption: What it shows, and what to do; may hold ``<em>`` and ``<code>``.
        models: Names of the models that it runs, for
            :func:`~exformer_lessons.checkpoints.load_lesson_model`.
    """

    name: str
    still: Callable[[], Diagram]
    alt: str
    caption: str
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class LiveFigure:
    """A live figure, ready to be shown; the last value of a cell.

    Args:
        name: Of its scripts in ``book/live``.
        attributes: Of its element on the page, such as ``heads``; see its script.
        caption: In place of the figure's own.
    """

    name: str
    attributes: tuple[str, ...] = ()
    caption: str = ""

    @property
    def figure(self) -> Live:
        """Its description."""
        return _figures()[self.name]

    def __repr__(self) -> str:
        return f"<live figure {self.name}: it runs on the page of the book>"

    def _repr_html_(self) -> str:
        """Return the still picture and the caption; the book's page puts the live one in its place."""
        figure = self.figure
        label = f'<svg role="img" aria-label="{escape(figure.alt)}"'
        with torch.random.fork_rng(devices=[]):  # a model that it loads starts from random weights
            svg = figure.still().svg.replace("<svg", label, 1)
        marks = "".join(f" data-{attribute}" for attribute in self.attributes)
        return (
            f'<figure class="live"><div class="live-still" data-live="{self.name}"{marks}>{svg}</div>'
            f"<figcaption>{self.caption or figure.caption}</figcaption></figure>"
        )


def live_figure(name: str, *attributes: str, caption: str = "") -> LiveFigure:
    """Show a live figure; in a notebook, its still picture.

    Args:
        name: One of :func:`live_figures`.
        attributes: Switches of the figure, see its script in ``book/live``.
        caption: What this page says of it, in place of the figure's own caption.

    Raises:
        ValueError: If there is no such figure.
    """
    if name not in live_figures():
        raise ValueError(f"there is no live figure {name!r}: expected one of {', '.join(live_figures())}")
    return LiveFigure(name, attributes, caption)


def live_figures() -> list[str]:
    """Return the names of all live figures."""
    return sorted(_figures())


@cache
def _figures() -> dict[str, Live]:
    lessons = Path(__file__).parents[1]
    modules = [f"{lessons.name}.{path.parent.name}.live" for path in sorted(lessons.glob("*/live.py"))]
    found = [importlib.import_module(module).FIGURE for module in modules]
    return {figure.name: figure for figure in found}
