"""What the theme leaves to be wished for: figures that follow light and dark, fewer script errors."""

import html
import re
from pathlib import Path

#: The ink of the figures (exformer.lessons.figures.INK); the page's own text color takes its place.
INK = "#767676"
IMG = re.compile(r'<img\b[^>]*\bsrc="[^"]*_images/([^"/]+\.svg)"[^>]*>')
ALT = re.compile(r'\balt="([^"]*)"')


def inline_svg(app, pagename, templatename, context, doctree):
    """Put each SVG figure into the page itself, its ink replaced by ``currentColor``."""
    body = context.get("body")
    if not body or app.builder.format != "html":
        return
    sources = {name: src for src, name in app.builder.images.items()}
    counter = iter(range(1, 10_000))

    def replace(match):
        source = sources.get(match[1])
        path = Path(app.srcdir, source) if source else None
        if path is None or not path.is_file():
            return match[0]
        text = path.read_text(encoding="utf-8")
        svg = text[text.index("<svg") :]
        if INK not in svg and "currentColor" not in svg:
            return match[0]
        alt = ALT.search(match[0])
        return inlined(svg, prefix=f"g{next(counter)}-", alt=html.unescape(alt[1]) if alt else "")

    context["body"] = IMG.sub(replace, body)


def inlined(svg, *, prefix, alt):
    """Make a figure a part of a page: the page's ink, ids of its own, words for who does not see it."""
    svg = re.sub(r'\bid="([^"]+)"', lambda m: f'id="{prefix}{m[1]}"', svg.replace(INK, "currentColor"))
    svg = re.sub(r'(href="#|url\(#)([^")]+)', lambda m: f"{m[1]}{prefix}{m[2]}", svg)
    if alt.startswith(("../", "_images/")):
        alt = ""  # MyST-NB's file name is no description; a page test asks for a real one
    svg = re.sub(r"<title>.*?</title>|<metadata>.*?</metadata>", "", svg, flags=re.S)
    return svg.replace("<svg", f'<svg class="book-figure" role="img" aria-label="{html.escape(alt)}"', 1)


def drop_thebe(app, pagename, templatename, context, doctree):
    """Leave out sphinx-thebe 0.3.1, which declares its constants twice: a script error on each page."""

    def keep(item):
        body = (getattr(item, "attributes", None) or {}).get("body") or ""
        return "thebe" not in f"{getattr(item, 'filename', item) or ''}{body}".lower()

    for key in ("script_files", "css_files"):
        context[key] = [item for item in context.get(key, []) if keep(item)]


def theme_options(app, config):
    """Take away the empty bar with a second search box that sphinx-book-theme 1.3.0 shows above the page."""
    config.html_theme_options.update(navbar_persistent=[], navbar_start=[], navbar_center=[], navbar_end=[])


def setup(app):
    """Register the extension."""
    app.connect("config-inited", theme_options)
    app.connect("html-page-context", inline_svg, priority=900)
    app.connect("html-page-context", drop_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
