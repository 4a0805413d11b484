"""What the theme leaves to be wished for: figures that follow light and dark, fewer script errors."""

import html
import itertools
import re
from pathlib import Path

#: The ink of the figures (exformer_lessons.figures.INK); the page's own text color takes its place.
INK = "#767676"
IMG = re.compile(r'<img\b[^>]*\bsrc="[^"]*_images/([^"/]+\.svg)"[^>]*>')
ALT = re.compile(r'\balt="([^"]*)"')
#: A formula in a line, with the brackets and the punctuation that touch it.
FORMULA = re.compile(
    r'([(\[“‘]*)(<span class="math notranslate nohighlight">\\\(.*?\\\)</span>)([)\]”’,.;:!?]*)', re.S
)
TITLE = re.compile(r"(?<=<h1>)[^<]*")
CELL = re.compile(r"(<t[dh]\b[^>]*>)([^<]*)(?=</t[dh]>)")
#: In a title: a short word with a hyphen. In a cell: a range, a power of ten, a name such as ROUGE-L.
SHORT = re.compile(r"\b\w{1,7}-\w{1,7}\b")
RANGE = re.compile(r"(?<!\S)(?=\S*[-–])(?=\S*\d|\S*-\w(?!\w))\S{2,14}(?!\S)")
LESSON_TABLE = re.compile(r"<table>.*?</table>", re.S)


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
        if not any(mark in svg for mark in (INK, "currentColor", 'class="dgm"')):
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


def keep_lines(app, pagename, templatename, context, doctree):
    """Forbid line breaks between a formula and its comma, and within ranges and short words with a hyphen."""
    body = context.get("body")
    if not body or app.builder.format != "html":
        return
    body = FORMULA.sub(lambda m: kept(m[0]) if m[1] or m[3] else m[0], body)
    body = TITLE.sub(lambda m: SHORT.sub(lambda word: kept(word[0]), m[0]), body)
    context["body"] = LESSON_TABLE.sub(lambda m: keep_ranges(words_left(m[0])), body)


def kept(text):
    """Return HTML that stays on one line."""
    return f'<span class="kept">{text}</span>'


def keep_ranges(table):
    """Keep each range, power of ten and such in a lesson's table on one line."""
    return CELL.sub(lambda m: m[1] + RANGE.sub(lambda part: kept(part[0]), m[2]), table)


def words_left(table):
    """Align to the left those columns of a lesson's table that hold sentences."""
    rows = [CELL.findall(row) for row in table.split("<tr>")[1:]]
    if len(set(map(len, rows))) > 1:  # cells that hold more than text
        return table
    worded = set()
    for column, cells in enumerate(zip(*([cell[1] for cell in row] for row in rows[1:]), strict=True)):
        numbers = sum(bool(re.search(r"\d", cell)) for cell in cells)
        if column and max(cell.count(" ") for cell in cells) > 1 and numbers < len(cells) / 2:
            worded.add(column)
    counter, width = itertools.count(), len(rows[0])

    def aligned(match):
        opening = match[1][:-1] + ' class="words">' if next(counter) % width in worded else match[1]
        return opening + match[2]

    return CELL.sub(aligned, table)


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
    app.connect("html-page-context", keep_lines, priority=700)
    app.connect("html-page-context", drop_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
