"""Write the figures of lessons as slides, a deck for each lesson, and each figure as an SVG.

    python book/_tools/decks.py [05 …]      # all, or those named, to _build/figures

A deck is one HTML file that needs nothing else. Arrow keys, Page Down and a click go on; printed, it has a
page per figure.
"""

import html
import json
import re
import shutil
import sys
from pathlib import Path

from markdown_it import MarkdownIt

from exformer_lessons.notebook import find

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

from book_page import inlined  # noqa: E402
from lesson_figures import figures  # noqa: E402

FOLDER = ROOT / "_build" / "figures"
#: Ink and paper of the slides.
DARK_ON_LIGHT = "color: #22262a; background: #fffefb;"
DECK = """<!doctype html>
<html lang="en" data-theme="light"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
html {{ scroll-snap-type: y mandatory; font-family: system-ui, "DejaVu Sans", sans-serif; {colors} }}
body {{ margin: 0; }}
section {{ box-sizing: border-box; height: 100vh; padding: 3vh 6vw; scroll-snap-align: start; display: flex;
  flex-direction: column; align-items: center; justify-content: center; break-after: page; }}
section svg {{ width: auto; height: 74vh; max-width: 88vw; }}
p {{ font-size: 2.6vh; line-height: 1.4; max-width: 60em; margin: 2.5vh 0 0; }}
h1 {{ font-size: 7vh; text-align: center; }}
</style></head><body>
<section><h1>{title}</h1></section>
{slides}
<script>
const slides = [...document.querySelectorAll("section")];
const go = (by) => {{
  const now = Math.round(scrollY / innerHeight);
  slides[Math.max(0, Math.min(slides.length - 1, now + by))].scrollIntoView();
}};
const STEPS = {{ ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 }};
addEventListener("keydown", (event) => {{
  if (event.key in STEPS) {{ event.preventDefault(); go(STEPS[event.key]); }}
}});
addEventListener("click", () => go(1));
</script></body></html>
"""


def deck(title, given):
    """Return the slides of a lesson as one HTML page."""
    markdown = MarkdownIt("commonmark", {"html": False})
    slides = [
        f"<section>{inlined(figure.svg, prefix=f's{number}-', alt=figure.alt)}"
        f"<p>{markdown.renderInline(figure.caption)}</p></section>"
        for number, figure in enumerate(given)
    ]
    return DECK.format(title=html.escape(title), slides="\n".join(slides), colors=DARK_ON_LIGHT)


def main(names, folder=FOLDER):
    """Write the decks and figures of the named lessons, or of all; say what was written.

    Args:
        names: Lessons as `make notebooks` takes them; none stands for all.
        folder: Where they are written.
    """
    if not names:
        shutil.rmtree(folder, ignore_errors=True)
    count = 0
    paths = [path for path in find(names) if path.parent.name == "notebooks"]
    for path in paths:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        title = re.match(r"# (.+)", "".join(cells[0]["source"]))[1]
        given = figures(cells)
        own = Path(folder, path.stem)
        own.mkdir(parents=True, exist_ok=True)
        for figure in given:
            svg = figure.svg.replace("<svg", f'<svg style="{DARK_ON_LIGHT}"', 1)
            Path(own, f"{figure.name}.svg").write_text(svg, encoding="utf-8")
        Path(folder, f"{path.stem}.html").write_text(deck(title, given), encoding="utf-8")
        count += len(given)
    return f"{count} figures of {len(paths)} lessons in {folder}"


if __name__ == "__main__":
    print(main(sys.argv[1:]))
