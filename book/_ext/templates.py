"""Templates of generated HTML: files of Jinja macros, which escape what they are given."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_FOLDER = Path(__file__).parents[1] / "_templates"
_JINJA = Environment(loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined)


def macros(name):
    """Return the macros of a file, called as functions; what they return is HTML."""
    return _JINJA.get_template(name).module
