"""Text in diagrams: subscripts and italics, and how wide a line will be, whatever the reader's font."""

import re
from dataclasses import dataclass
from html import escape

Number = float | int
SIZE = 14.0
SMALL = 12.0
SMALLEST = 11.0
LINE = 1.28
#: Advance widths of DejaVu Sans, the widest of the fonts that browsers choose, in hundredths of the size.
_WIDTHS = {
    28: "'ijlìí", 31: "IJ ,.·’", 34: "/:;\\|", 37: "f-", 39: "()[]t", 41: "!²₀₁₂₃₄₅₆₇₈₉ₙⁿₖr", 46: '"',
    50: "*_`–°", 53: "sz“”?", 55: "cL", 59: "Fkvxyγλ", 61: "PπτTYaoàòäöδθ", 63: "eèéESbdghnpquùüßσΣ",
    64: "$0123456789{}βμ√", 68: "KAVφα", 70: "BRXZC", 75: "UHN", 79: "DG▁Ġ&OQ", 84: "w∞#+<=>^~ω−×⊕⊗→←≤≥≈",
    86: "M", 98: "%m½W", 100: "@—…",
}  # fmt: skip
_ADVANCE = {letter: width / 100 for width, letters in _WIDTHS.items() for letter in letters}
#: A letter by itself in a subscript is a variable, as in the formulas of the text.
_LONE = re.compile(r"(?<![A-Za-z])([A-Za-z])(?![A-Za-z])")
_MARKUP = re.compile(r"([_^])\{([^{}]*)\}|\*([^*\s][^*]*)\*")


@dataclass(frozen=True)
class Run:
    """A piece of a line in one style: raised by a fraction of the size or not, italic or not."""

    text: str
    raised: Number = 0.0
    italic: bool = False


def runs(line: str, *, literal: bool = False) -> list[Run]:
    """Cut a line into runs: ``_{1}`` is a subscript, ``^{2}`` a superscript, ``*x*`` italic.

    In a subscript, a letter by itself is italic too, and several are in ``_{*tj*}``.

    Args:
        line: The text; literal text has no markup.
        literal: Whether the text means itself, as a token does.

    Examples:
        >>> [(run.text, run.raised < 0, run.italic) for run in runs("*q*_{1} = 3")]
        [('q', False, True), ('1', True, False), (' = 3', False, False)]
    """
    if literal:
        return [Run(line)]
    found, end = [], 0
    for match in _MARKUP.finditer(line):
        if match.start() > end:
            found.append(Run(line[end : match.start()]))
        shift, small, italic = match.groups()
        if italic is not None:
            found.append(Run(italic, italic=True))
        else:
            raised = -0.2 if shift == "_" else 0.36
            whole = len(small) > 2 and small[0] == small[-1] == "*"
            pieces = [small[1:-1]] if whole else [piece for piece in _LONE.split(small) if piece]
            slanted = [whole or bool(_LONE.fullmatch(piece)) for piece in pieces]
            found += [Run(piece, raised, italic) for piece, italic in zip(pieces, slanted, strict=True)]
        end = match.end()
    if end < len(line) or not found:
        found.append(Run(line[end:]))
    return found


def small_size(size: Number) -> Number:
    """Return the size of subscripts beside text of a size: three quarters, but never too small to read."""
    return min(size, max(0.75 * size, SMALLEST))


def text_width(line: str, *, size: Number, bold: bool = False, literal: bool = False) -> Number:
    """Return how wide a line is at most, in units.

    Examples:
        >>> text_width("WWW", size=10.0) > 3 * text_width("i", size=10.0)
        True
    """
    total = 0.0
    for run in runs(line, literal=literal):
        own = small_size(size) if run.raised else size
        total += own * sum(_ADVANCE.get(letter, _other(letter)) for letter in run.text)
    return total * (1.12 if bold else 1.0)


def _other(letter: str) -> Number:
    if ord(letter) >= 0x2E80:  # Chinese, Japanese, Korean, emoji
        return 1.0
    return 0.0 if 0x300 <= ord(letter) < 0x370 else 0.72


def spans(line: str, *, size: Number, literal: bool = False) -> str:
    """Return a line as the inside of an SVG text element.

    Examples:
        >>> spans("d_{k}", size=14.0)
        'd<tspan dy="2.8" font-size="11" font-style="italic">k</tspan>'
    """
    written, level = "", 0.0
    for run in runs(line, literal=literal):
        attributes = f' dy="{short((level - run.raised) * size)}"' if run.raised != level else ""
        if run.raised:
            attributes += f' font-size="{short(small_size(size))}"'
        if run.italic:
            attributes += ' font-style="italic"'
        text = escape(run.text, quote=False)
        written += f"<tspan{attributes}>{text}</tspan>" if attributes else text
        level = run.raised
    return written


def short(number: Number) -> str:
    """Write a coordinate: at most one digit after the point, the same on every machine.

    Examples:
        >>> short(2.0), short(-0.01), short(12.345)
        ('2', '0', '12.3')
    """
    text = f"{number:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def signed(value: Number, digits: int) -> str:
    """Write a number with a true minus.

    Examples:
        >>> signed(-0.5, 1), signed(float("-inf"), 2)
        ('−0.5', '−∞')
    """
    text = f"{value:,.{digits}f}".replace("inf", "∞")
    if set(text) <= set("-0.,"):
        text = text.removeprefix("-")
    return text.replace("-", "−")
