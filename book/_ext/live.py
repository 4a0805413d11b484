"""Live figures: scripts and models are written beside the pages; a page loads what its own figures need."""

import hashlib
import html
import json
import re
from functools import cache
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from exformer_lessons.diagrams.theme import DARK, LIGHT
from exformer_lessons.live import live_figure
from exformer_lessons.live.export import live_script

SOURCE = Path(__file__).parents[1] / "live"
NEEDS = re.compile(r"^// needs: (.+)", re.M)
LATER = re.compile(r"^// later: (.+)", re.M)
STILL = re.compile(r'<div class="live-still" data-live="([\w-]+)"([^>]*)>(.*?)</div>', re.S)
FOLDER = "_static/live"


def scripts_of(name):
    """Return the names of the scripts that a script needs, in the order in which they run; its own last."""
    found = []
    for each in _named(NEEDS, name):
        found += [other for other in scripts_of(each) if other not in found]
    return [*found, name]


def _named(line, name):
    match = line.search((SOURCE / f"{name}.js").read_text(encoding="utf-8"))
    return match[1].split(", ") if match else []


@cache
def script(name):
    """Return the name of a script's file, with the hash of what is in it, and the text.

    What only readers of the source need is left out: indentation, and lines that are comments.
    """
    lines = map(str.strip, (SOURCE / f"{name}.js").read_text(encoding="utf-8").splitlines())
    text = "\n".join(line for line in lines if line and not line.startswith("//")) + "\n"
    return _hashed(name, text, "js"), text


@cache
def bundle(name):
    """Return the name of the one file with all scripts of a figure, and the text."""
    text = "".join(script(each)[1] for each in scripts_of(name))
    return _hashed(name, text, "js"), text


@cache
def later(name):
    """Return what a figure loads when the reader asks for it, by part: the name of the file, and the text."""
    there, found = scripts_of(name), {}
    for part in _named(LATER, name):
        text = "".join(script(each)[1] for each in scripts_of(part) if each not in there)
        found[part] = _hashed(part, text, "js"), text
    return found


@cache
def model(name):
    """Return the name of a model's file, and its script."""
    text = live_script(name)[1]
    return _hashed(name, text, "js"), text


@cache
def style(name="live"):
    """Return the name of a figure's own style sheet, or of that which all share, and its text."""
    text = (SOURCE / f"{name}.css").read_text(encoding="utf-8")
    for mark, theme in (("@ROLES@", LIGHT), ("@DARK@", DARK)):
        colors = (f"--{role}: {two.fill}; --{role}-edge: {two.edge};" for role, two in theme.roles.items())
        text = text.replace(mark, " ".join(colors))
    return _hashed(name, text, "css"), text


def style_links(names, to):
    """Return the links to the style sheets of some figures, as HTML."""
    sheets = ["live", *sorted(set(names))]
    return "".join(f'<link rel="stylesheet" href="{to}{style(each)[0]}">' for each in sheets)


def _hashed(name, text, ending):
    return f"{name}.{hashlib.sha256(text.encode()).hexdigest()[:12]}.{ending}"


def element(name, attributes, still, *, to):
    """Return the element of a figure, its still picture inside.

    ``to`` is the way from the page to the folder of the scripts, with a slash at its end.
    """
    models = live_figure(name).figure.models
    size = sum(len(model(each)[1]) for each in models) / 1e6
    files = {each: to + model(each)[0] for each in models}
    parts = {part: to + file for part, (file, _) in later(name).items()}
    first = [
        parts[f"{each}-view"] for each in re.findall(r"data-([\w-]+)", attributes) if f"{each}-view" in parts
    ]
    given = {
        "data-scripts": " ".join([to + bundle(name)[0], *first]),
        **({"data-later": json.dumps(parts)} if parts else {}),
        "data-files": json.dumps(files),
        "data-size": f"{size:.1f} MB" if models else "",
    }
    told = "".join(f' {key}="{html.escape(value)}"' for key, value in given.items())
    marks = re.sub(r"\bdata-", "", attributes)
    return f'<exformer-{name}{told}{marks}><div class="live-still">{still}</div></exformer-{name}>'


def enliven(app, pagename, templatename, context, doctree):
    """Put the elements of the live figures around their still pictures."""
    body = context.get("body") or ""
    if app.builder.format != "html" or "live-still" not in body:
        return
    to = context["pathto"](FOLDER, 1) + "/"
    names = {found[1] for found in STILL.finditer(body)}
    context["body"] = STILL.sub(lambda found: element(found[1], found[2], found[3], to=to), body)
    context["body"] += f'<script src="{to}{script("start")[0]}"></script>'
    context["metatags"] = context.get("metatags", "") + style_links(names, to)
    app.live_figures.update(names)


def write(folder, names):
    """Write what some figures need into a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    parts = [script("start"), style()]
    parts += [style(name) for name in names]
    for name in names:
        parts += [bundle(name), *later(name).values()]
        parts += [model(each) for each in live_figure(name).figure.models]
    for file, text in dict(parts).items():
        (folder / file).write_text(text, encoding="utf-8")


def finish(app, error):
    """Write all that the pages load."""
    if not error and app.builder.format == "html" and app.live_figures:
        write(Path(app.outdir, FOLDER), sorted(app.live_figures))


class LiveDirective(SphinxDirective):
    """``{live} translator`` in a page of words; ``:wait:`` loads nothing before the reader asks for it.

    Its text, if there is one, stands below the still picture and says what can be done.
    """

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"wait": directives.flag}  # noqa: RUF012

    def run(self):
        """Return the still picture with its caption."""
        name, *attributes = self.arguments[0].split()
        figure = live_figure(name, *attributes, *(["wait"] if "wait" in self.options else []))
        self.env.note_dependency(str(SOURCE / f"{name}.js"))
        told = f'<p class="live-invitation">{html.escape(" ".join(self.content))}</p>' if self.content else ""
        still, end, caption = figure._repr_html_().partition("</svg>")
        return [nodes.raw("", f"{still}{end}{told}{caption}", format="html")]


def setup(app):
    """Register the extension."""
    app.live_figures = set()
    app.add_directive("live", LiveDirective)
    app.connect("html-page-context", enliven, priority=850)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
