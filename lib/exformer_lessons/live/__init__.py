"""Live figures: still pictures in a notebook, in whose place a model of the book runs on the book's pages."""

from exformer_lessons.live.figure import Live, LiveFigure, live_figure, live_figures

__all__ = ["Live", "LiveFigure", "live_figure", "live_figures"]
