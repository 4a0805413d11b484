"""Write the slides of lessons, with notes for the speaker, and each figure as an SVG.

    python book/_tools/slides.py [05 …] [--pdf]      # all, or those named, to _build/slides

A deck follows its notebook: the question, the figures with their captions, the predictions with their
options and then what was measured, short lists that a colon or a question announces, the equations that
``book/slides/slides.yml`` names, and *In short*. A prediction shows the words before it that this file names,
where it could not be understood without them. What the lesson says around all this becomes the speaker's
notes. No slide needs a network: reveal.js and MathJax lie beside it.
"""

import argparse
import html
import importlib.util
import json
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from jinja2 import Environment

from exformer_lessons.handout import DETAILS
from exformer_lessons.notebook import find, key_of
from exformer_lessons.teacher.printing import markdown_with_tex

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

from book_page import inlined  # noqa: E402
from chromium import browser_flags, browser_path  # noqa: E402
from lesson_figures import figures  # noqa: E402
from lesson_opening import PREDICTION  # noqa: E402

FOLDER = ROOT / "_build" / "slides"
PARTS = ROOT / "book" / "slides"
SHOWN = ("reveal.js", "reveal.css", "notes.js", "slides.css", "LICENSE.txt")
MATHJAX = "mathjax/tex-svg.js"
#: Ink and paper of the figures that are files of their own.
DARK_ON_LIGHT = "color: #22262a; background: #fffefb;"
#: How many words a list on a slide has at most.
LISTED = 60
ITEM = re.compile(r"(?:-|\d+\.) ")
ANSWER = re.compile(r"(?:The answer|It) is \((\w)\)[.,:;]?\s*(.*)", flags=re.S)
OPTION = re.compile(r"\((?=[a-d]\) )")
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z*$])")
TAG = re.compile(r"\\tag\{([^}]+)\}")
LINK = re.compile(r"\[((?:[^][]|\[[^]]*\])+)\]\([^()\s]*(?:\([^()]*\))?[^()\s]*\)")


@dataclass
class Slide:
    """A slide: heading, body in HTML, what the speaker says by paragraphs, and which prediction it asks."""

    heading: str
    body: str
    said: list[str] = field(default_factory=list)
    asked: int = 0

    @property
    def notes(self):
        """The notes in HTML."""
        return "\n".join(listed(text) if ITEM.match(text) else f"<p>{inline(text)}</p>" for text in self.said)


MARKDOWN = markdown_with_tex("<p>\\[{}\\]</p>\n")


def inline(text):
    """Return a paragraph of a lesson as HTML, its links as words."""
    text = LINK.sub(r"\1", " ".join(text.removeprefix("> ").split()))
    return MARKDOWN.renderInline(re.sub(r"\$\$(.+?)\$\$", r"$\1$", text)).replace("<br />", " ")


def listed(text):
    """Return a list of a lesson as HTML, its links as words."""
    return MARKDOWN.render(LINK.sub(r"\1", text)).strip()


def excerpt(named, said):
    """Return words of a lesson: ``begin … end``, or from ``begin`` to the end of the paragraph.

    Args:
        named: The words, as ``slides.yml`` has them.
        said: The paragraphs up to here, of which the last that has them counts.
    """
    begin, _, end = map(re.escape, named.partition(" … "))
    for text in reversed(said):
        if found := re.search(f"{begin}.*?{end or '$'}", " ".join(text.split())):
            return found[0][:1].upper() + re.sub(":$", ".", found[0][1:])
    raise ValueError(f"slides.yml: expected words of the lesson before a prediction, got {named!r}")


def blocks(cells):
    """Yield what a lesson consists of before its exercises, as (kind, content)."""
    for number, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            for text in re.split(r"\n\s*\n", DETAILS.sub("", source)):
                if text.startswith("## Exercises"):
                    return
                yield _kind(text.strip()), text.strip()
            continue
        yield from (("figure", figure) for figure in figures([cell | {"number": number}]))
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/svg+xml" in data:
                continue
            if table := re.search(r"<table.*?</table>", "".join(data.get("text/html", "")), flags=re.S):
                yield "table", re.sub(r' (?:style|class|border)="[^"]*"', "", table[0])
            elif "text/html" in data and "live figure" in "".join(data.get("text/plain", "")):
                yield "live", ""
            elif output.get("name") == "stdout":
                yield "output", "".join(output["text"]).rstrip()


def _kind(text):
    for kind, begin in (
        ("heading", "## "),
        ("title", "# "),
        ("equation", "$$"),
        ("question", "> **Question.**"),
    ):
        if text.startswith(begin):
            return kind
    if PREDICTION.match(text):
        return "asked"
    if ANSWER.match(text):
        return "answer"
    if text.startswith("> **In short.**"):
        return "short"
    if ITEM.match(text):
        return "list"
    return "text" if text and not text.startswith(("|", ">", "```")) else "other"


def deck(cells, *, equations=(), without=(), before=None):
    """Return the slides of a lesson; its words are notes of the next slide, at a section's end of the last.

    Args:
        cells: Of its notebook.
        equations: The numbers of those that get a slide.
        without: Names of figures that get none, and predictions by their order: ``predict 2``.
        before: The words that a prediction needs, by its order, as :func:`excerpt` finds them.
    """
    slides, said, asked, measured, section, count, read = [], [], None, {}, "", 0, []

    def add(heading, body, asked=0):
        slides.append(Slide(heading, body, [*said], asked))
        said.clear()

    for kind, content in blocks(cells):
        if kind == "title":
            section, _, claim = content.removeprefix("# ").partition(": ")
            opening = f'<p class="claim">{inline(claim[:1].upper() + claim[1:])}</p>'
            add(inline(section), opening)
        elif kind == "question":
            words = content.replace("\n>", " ").removeprefix("> **Question.** ")
            slides[0].body += f'<p class="question">{inline(words)}</p>'
        elif kind == "heading":
            if asked and "figure" in measured:
                add(inline(section), captioned(measured["figure"], len(slides)))
            if slides[-1].heading == inline(section):
                slides[-1].said += said
                said.clear()
            section, asked, measured = content.removeprefix("## "), None, {}
        elif kind == "asked":
            count += 1
            if f"predict {count}" in without or (asked and "(a) " not in content):
                said.append(content.replace("\n>", " "))
                continue
            asked, measured = (
                Asked(content, excerpt(before[count], read) if count in (before or {}) else ""),
                {},
            )
            add(asked.name, asked.body, count)
        elif kind == "answer" and asked:
            said.append(content)
            add(inline(section), asked.answered(content, measured, len(slides)))
            asked = None
        elif kind == "figure" and content.name not in without:
            if asked and "figure" not in measured:
                measured["figure"] = content
            else:
                add(inline(section), captioned(content, len(slides)))
        elif kind in ("table", "output"):
            measured[kind] = content
        elif kind == "equation" and (tag := TAG.search(content)) and tag[1] in equations:
            tex = html.escape(TAG.sub("", content.strip("$ \n")).strip())
            add(inline(section), f'<div class="body formula">\\[{tex}\\]</div>')
        elif kind == "short":
            lines = re.findall(r"^> - (.+(?:\n>   .+)*)", content, flags=re.M)
            items = "".join(f"<li>{inline(line.replace(chr(10) + '>', ' '))}</li>" for line in lines)
            add("In short", f'<div class="body"><ul>{items}</ul></div>')
        elif kind == "list" and said and said[-1].endswith((":", "?")) and len(content.split()) <= LISTED:
            lead = f'<p class="lead">{inline(SENTENCE.split(said[-1])[-1])}</p>'
            add(inline(section), f'<div class="body listed">{lead}{listed(content)}</div>')
        elif kind in ("text", "list", "answer", "equation"):
            said.append(TAG.sub("", content))
            read.append(content)
        elif kind == "live":
            slides[-1].said.append("A live figure comes here: show it on the page of the lesson.")
    return slides


class Asked:
    """A prediction, from its box: the question and its options, and words that come before it."""

    def __init__(self, box, before=""):
        self.before = before
        found = PREDICTION.match(box)
        self.name, words = found[1], " ".join(box[found.end() :].replace("\n>", " ").split())
        question, *options = OPTION.split(words)
        split = [each.partition(") ") for each in options]
        if split and split[0][0] != "a":  # the letters stand in a picture
            question, split = words, []
        end = "?" if words.endswith("?") and ":" in question[-3:] else " …"
        self.question = question.rstrip(" :,") + end if split else question
        self.options = {letter: re.sub(r"[,;.?]?\s*(?:\bor)?\s*$", "", text) for letter, _, text in split}

    @property
    def words(self):
        """The question and its options in Markdown, without links."""
        options = ";".join(f" ({letter}) {text}" for letter, text in self.options.items())
        end = "?" * ("? " in options) or "." * bool(options)
        return LINK.sub(r"\1", f"{self.question}{options}{end}")

    @property
    def body(self):
        """The question and its options."""
        items = "".join(f"<li><b>({letter})</b>{inline(text)}</li>" for letter, text in self.options.items())
        before = f'<p class="before">{inline(self.before)}</p>' if self.before else ""
        return f'<div class="body">{before}<p class="asked">{inline(self.question)}</p><ol>{items}</ol></div>'

    def answered(self, text, measured, number):
        """The right option, what was measured, and the first sentence that the lesson says of it."""
        letter, told = ANSWER.match(text).groups()
        option = f'<p class="right"><b>({letter})</b>{inline(self.options.get(letter, ""))}</p>'
        first = SENTENCE.split(" ".join(told.split()))[0]
        said = f'<p class="told">{inline(first[:1].upper() + first[1:])}</p>' if first else ""
        if "figure" in measured:
            return option + pictured(measured["figure"], number) + said
        if "table" in measured:
            return f'{option}<div class="body">{measured["table"]}</div>{said}'
        if "output" in measured:
            return f'{option}<div class="body"><pre>{html.escape(measured["output"])}</pre></div>{said}'
        return f'{option}<div class="body">{said}</div>'


def pictured(figure, number):
    """Return a figure as a part of a slide, whose number makes its ids its own."""
    return f'<div class="body">{inlined(figure.svg, prefix=f"s{number}-", alt=figure.alt)}</div>'


def captioned(figure, number):
    """Return a figure with its caption: below it, or beside it where it is high."""
    words = f'<p class="caption">{inline(figure.caption)}</p>'
    width, height = map(float, re.search(r'viewBox="\S+ \S+ (\S+) (\S+)"', figure.svg).groups())
    shown = pictured(figure, number)
    return shown + words if height < 0.8 * width else f'<div class="beside">{shown}{words}</div>'


def main(names, folder=FOLDER, *, pdf=False, mathjax=MATHJAX):
    """Write the slides and figures of the named lessons, or of all; say what was written.

    Args:
        names: Lessons as `make notebooks` takes them; none stands for all.
        folder: Where they are written.
        pdf: Whether a browser prints each deck.
        mathjax: Where a deck finds MathJax; it is copied into the folder only if it is to be there.
    """
    folder = Path(folder)
    if not names:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for name in SHOWN:
        shutil.copy(PARTS / name, folder)
    if mathjax == MATHJAX:
        (folder / "mathjax").mkdir(exist_ok=True)
        package = importlib.util.find_spec("sphinx-mathjax-offline").submodule_search_locations[0]
        shutil.copy(Path(package, "static", MATHJAX), folder / MATHJAX)
    page = Environment(autoescape=False).from_string((PARTS / "slides.html").read_text(encoding="utf-8"))
    chosen = yaml.safe_load((PARTS / "slides.yml").read_text(encoding="utf-8"))
    paths = [path for path in find(names) if path.parent.name == "notebooks"]
    count = 0
    for path in paths:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        slides = deck(cells, **chosen.get(key_of(path), {}))
        count += len(slides)
        title = re.sub("<.+?>", "", slides[0].heading)
        target = folder / f"{path.stem}.html"
        target.write_text(page.render(slides=slides, title=title, mathjax=mathjax), encoding="utf-8")
        own = folder / "figures" / path.stem
        own.mkdir(parents=True, exist_ok=True)
        for figure in figures(cells):
            svg = figure.svg.replace("<svg", f'<svg style="{DARK_ON_LIGHT}"', 1)
            (own / f"{figure.name}.svg").write_text(svg, encoding="utf-8")
    if pdf:
        print_all(folder / f"{path.stem}.html" for path in paths)
    return f"{count} slides of {len(paths)} lessons in {folder}"


def print_pdf(browser, path):
    """Print a deck, a page a slide.

    Args:
        browser: A Chromium, started by Playwright.
        path: Of the deck; the PDF is written beside it.
    """
    page = browser.new_page()
    page.goto(f"{path.resolve().as_uri()}?view=print")
    page.evaluate("MathJax.startup.promise")
    page.wait_for_selector(".pdf-page:last-of-type")
    page.pdf(path=path.with_suffix(".pdf"), prefer_css_page_size=True, print_background=True)
    page.close()


def print_all(paths):
    """Print decks with the Chromium that is installed, or that the variable CHROMIUM names."""
    from playwright.sync_api import sync_playwright

    if (program := browser_path()) is None:
        raise SystemExit("a PDF is printed by Chromium: install one, or set CHROMIUM to its path")
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=browser_flags()) as browser,
    ):
        for path in paths:
            print_pdf(browser, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the slides of lessons.")
    parser.add_argument("lessons", nargs="*")
    parser.add_argument("--pdf", action="store_true", help="also print each deck, with Chromium")
    asked = parser.parse_args()
    print(main(asked.lessons, pdf=asked.pdf))
