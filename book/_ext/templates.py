"""Templates of generated HTML: files of Jinja macros, which escape what they are given."""

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

_FOLDER = Path(__file__).parents[1] / "_templates"
_JINJA = Environment(loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined)


def subscripts(text):
    """Return text as HTML, the k of d_k set lower."""
    return Markup(re.sub(r"\bd_([a-z]+)\b", r"d<sub>\1</sub>", str(escape(text)).replace("&#39;", "’")))


_JINJA.filters["subscripts"] = subscripts
_JINJA.filters["upper_first"] = lambda text: text[:1].upper() + text[1:]


def macros(name):
    """Return the macros of a file, called as functions; what they return is HTML."""
    return _JINJA.get_template(name).module
