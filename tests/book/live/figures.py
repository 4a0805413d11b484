"""A live figure on a page of its own, as the book's extension would put it there.

``python tests/book/live/figures.py FOLDER`` writes one for each figure, to be opened in a browser.
"""

import re
import sys
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "book" / "_ext"), str(ROOT / "tests" / "book")]

import live  # noqa: E402
from page_checks import SETTLE  # noqa: E402

from exformer_lessons.live import live_figure, live_figures  # noqa: E402

#: What axe judges in each theme: nothing but colors depends on it.
THEMES = {
    "light": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "dark": ["color-contrast", "link-in-text-block"],
}
#: Whether the figure of a page has begun.
LIVE = "() => document.querySelector('[data-scripts]').classList.contains('live')"
PAGE = """<!doctype html>
<html lang="en" data-theme="light"><head><meta charset="utf-8"><title>A live figure</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{book}
body {{ margin: 0; background: var(--pst-color-background); color: var(--pst-color-text-base);
  font-family: var(--pst-font-family-base); font-size: 18px; line-height: 1.6; }}
main {{ max-width: 672px; margin: 0 auto; padding: 16px; }}
.visually-hidden {{ position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }}
#above {{ height: {before}px }}</style>
{styles}</head>
<body><main><h1>A live figure</h1><div id="above"></div>{figure}<p>After it.</p></main>
<script src="live/{start}"></script></body></html>
"""


def write_page(folder, name, *attributes, before=0):
    """Write a page with one figure, and all that it needs beside it; return its path.

    ``before`` is the height in pixels of what is above the figure.
    """
    folder = Path(folder)
    live.write(folder / "live", [name])
    book = (ROOT / "book" / "_static" / "book.css").read_text(encoding="utf-8")
    book = re.sub(r"@font-face\s*\{.*?\}", "", book, flags=re.S)  # the files are elsewhere
    shown = live_figure(name, *attributes)._repr_html_()
    figure = live.STILL.sub(lambda found: live.element(found[1], found[2], found[3], to="live/"), shown)
    parts = {"styles": live.style_links([name], "live/"), "start": live.script("start")[0]}
    path = folder / f"{'-'.join([name, *attributes])}.html"
    path.write_text(PAGE.format(book=book, figure=figure, before=before, **parts), encoding="utf-8")
    return path


def opened(page, site, address=""):
    """Open a page of one figure, with what its address has behind the #, and wait for the figure."""
    if address:
        page.open("about:blank")  # a new hash alone would load nothing
    page.open(f"{site.as_uri()}#{address}" if address else site)
    page.wait(LIVE)
    return page


def faults(page):
    """Return what axe finds on a page of Chromium: by all rules in light, by those of colors in dark."""
    if not page.run("() => Boolean(window.axe)"):
        page.raw.evaluate(Axe().axe_script)
    found = []
    for theme, runs in THEMES.items():
        page.run("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
        page.run(SETTLE)
        options = {"runOnly": runs, "resultTypes": ["violations"], "preload": False}
        said = page.run("(options) => axe.run(options)", options)
        nodes = [(each["id"], each["nodes"][0]["html"][:200]) for each in said["violations"]]
        found += [f"{theme}: {rule}: {html}" for rule, html in nodes]
    page.run("() => { document.documentElement.dataset.theme = 'light'; }")
    return found


if __name__ == "__main__":
    for each in live_figures():
        print(write_page(sys.argv[1], each).resolve().as_uri())
