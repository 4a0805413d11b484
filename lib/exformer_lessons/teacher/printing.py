"""A sheet as one HTML file that a browser prints: a cover, and each question with room to answer."""

import html
import importlib.util
from pathlib import Path

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from exformer_lessons.teacher.answers import MARK
from exformer_lessons.teacher.questions import Question, points_of
from exformer_lessons.teacher.sheets import MARKING, Sheet

_STYLE = """
@page { margin: 18mm 20mm; @bottom-right { content: counter(page) " / " counter(pages); font-size: 9pt; } }
body { font: 11pt/1.45 Georgia, "Times New Roman", serif; max-width: 170mm; margin: 0 auto; color: #000; }
h1 { font-size: 20pt; margin: 25mm 0 0; } h2 { font-size: 13pt; margin: 0; }
.about { font-size: 13pt; margin: 0 0 12mm; }
table { border-collapse: collapse; margin: 3mm 0; } td, th { border: .3mm solid #000; padding: 1.5mm 2.5mm; }
.fields, .points { width: 100%; table-layout: fixed; } .points { text-align: center; margin-top: 12mm; }
.fields th { width: 35mm; text-align: left; } .points th:first-child { width: 20mm; text-align: left; }
.fields td, .points tr:last-child > * { height: 9mm; }
.question { break-before: page; min-height: 232mm; display: flex; flex-direction: column; }
header { display: flex; justify-content: space-between; align-items: baseline; }
header { border-bottom: .3mm solid #000; padding-bottom: 1mm; break-after: avoid; }
.room { flex: 1; border: .2mm solid #999; margin-top: 3mm; }
.solved { margin: 10mm 0; } .answer { border-left: 1mm solid #999; padding-left: 4mm; }
li { margin-bottom: 1.5mm; } pre { border: .2mm solid #999; padding: 2mm; white-space: pre-wrap; }
mjx-container[display="true"] { break-inside: avoid; }
mjx-container g[stroke] { stroke: none; } /* a line of width 0 is as wide as a pixel in a PDF */
"""
_CONFIG = r"""window.MathJax = {
  tex: { inlineMath: [["\\(", "\\)"]] }, svg: { fontCache: "none" }, options: { enableMenu: false }
};"""
_LINE = "_" * 24


def markdown_with_tex(block: str = r"\[{}\]") -> MarkdownIt:
    """Return a reader of Markdown that leaves formulas to MathJax, those on lines of their own as `block`."""
    made = MarkdownIt("commonmark", {"html": False}).enable("table").use(dollarmath_plugin, allow_space=True)
    for kind, form in (("math_inline", r"\({}\)"), ("math_block", block)):
        made.add_render_rule(
            kind, lambda _, tokens, i, *rest, form=form: form.format(html.escape(tokens[i].content))
        )
    return made


_MARKDOWN = markdown_with_tex()


def page(sheet: Sheet, tasks: list[tuple[Question, str]], *, answers: bool) -> str:
    """Return the file: it needs no other and no network.

    Args:
        sheet: What it is.
        tasks: Its questions, each with its answer or nothing.
        answers: Whether it is the scheme, without room to answer.
    """
    show = _solved if answers else _question
    body = [_head(sheet) if answers else _cover(sheet)]
    body += [show(number, *task) for number, task in enumerate(tasks, 1)]
    if not answers:
        body.append(_paper("Further answers", "", "<p>Write the number of the question above each.</p>"))
    title = html.escape(sheet.heading)
    marked = f"{MARK}\n" * sheet.private
    scripts = f"<script>{_CONFIG}</script>\n<script>{_mathjax()}</script>"
    head = f'<head><meta charset="utf-8"><title>{title}</title>\n<style>{_STYLE}</style>\n{scripts}</head>'
    return f'<!doctype html>\n{marked}<html lang="en">{head}\n<body>{"".join(body)}</body></html>\n'


def _mathjax() -> str:
    """Return the program that draws formulas, as the book has it."""
    found = importlib.util.find_spec("sphinx-mathjax-offline")
    if found is None or not found.submodule_search_locations:
        raise ImportError("No module named 'sphinx-mathjax-offline'")
    path = Path(found.submodule_search_locations[0], "static", "mathjax", "tex-svg.js")
    return path.read_text(encoding="utf-8").replace("<!--", r"<\!--")  # which begins a comment in HTML


def _titled(sheet: Sheet) -> str:
    title, _, about = sheet.heading.partition(": ")
    return f'<h1>{html.escape(title)}</h1><p class="about">{html.escape(about)}</p>'


def _head(sheet: Sheet) -> str:
    said = f"Marking scheme. {sheet.time}, {sheet.total} points. {sheet.rules} {sheet.graded}"
    return f"{_titled(sheet)}<p>{html.escape(said)}</p>{_MARKDOWN.render(MARKING)}"


def _cover(sheet: Sheet) -> str:
    fields = "".join(f"<tr><th>{each}</th><td></td></tr>" for each in ("Name", "Number", "Course", "Date"))
    said = f"{html.escape(sheet.rules)} Write your number on each sheet."
    cells = [*enumerate(sheet.points, 1), ("Total", sheet.total)]
    rows = {
        "Question": [f"<th>{number}</th>" for number, _ in cells],
        "Points": [f"<td>{points}</td>" for _, points in cells],
        "Reached": ["<td></td>" for _ in cells],
    }
    table = "".join(f"<tr><th>{name}</th>{''.join(row)}</tr>" for name, row in rows.items())
    return (
        f'{_titled(sheet)}<table class="fields">{fields}</table>'
        f"<p><strong>{sheet.time}, {sheet.total} points.</strong> {said}</p>"
        f'<table class="points">{table}</table>'
    )


def _paper(title: str, points: str, text: str, least: int = 0) -> str:
    """Return a page with a room for answers, at least so many millimeters high."""
    head = f"<header><h2>{title}</h2><span>{points}</span><span>Number {_LINE}</span></header>"
    room = f'<div class="room" style="min-height: {least}mm"></div>'
    return f'<section class="question">{head}{text}{room}</section>'


def _question(number: int, question: Question, _: str) -> str:
    text = _MARKDOWN.render(question.text)
    return _paper(f"Question {number}", points_of(question), text, 10 * question.minutes)


def _solved(number: int, question: Question, answer: str) -> str:
    head = f"<h2>Question {number}</h2><span>{points_of(question)}, {question.kind}, {question.name}</span>"
    text, told = _MARKDOWN.render(question.text), _MARKDOWN.render(answer)
    return f'<section class="solved"><header>{head}</header>{text}<div class="answer">{told}</div></section>'
