"""A text -> pieces: words, numbers and gaps, across which byte-pair encoding never merges."""

import re
from bisect import bisect_right
from functools import cache
from itertools import accumulate, pairwise

from exformer.tokenizers.unicode_table import LETTERS, NUMBERS

# White space as Unicode and GPT-2 have it; Python's \s also holds the four separators 0x1c to 0x1f.
_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_BEYOND = re.compile(r"[\U00010000-\U0010ffff]")


def split_pieces(text: str) -> list[str]:
    r"""Split a text as GPT-2 does: runs of letters, of digits or of other signs, with the space before each.

    The pattern is ``'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+``. Several
    spaces before a word are a piece of their own, but for the last. The pieces joined are the text. The table
    in ``unicode_table.py`` says which characters are letters and numbers; its version of Unicode is fixed, so
    ids do not depend on the version of Python.

    Args:
        text: Any string; half of a surrogate pair is a sign.

    Returns:
        The pieces, in order.

    Source:
        Radford et al. 2019, its published code, ``encoder.py``.

    >>> split_pieces("It's 42 kg,  not 50!")
    ['It', "'s", ' 42', ' kg', ',', ' ', ' not', ' 50', '!']
    """
    if text.isascii() or len(text.encode("utf-16-le", "surrogatepass")) == 2 * len(text):  # below 0x10000
        return _pattern().findall(text)
    pieces = _pattern().findall(_BEYOND.sub(_stand_in, text))
    return [text[start:end] for start, end in pairwise(accumulate(map(len, pieces), initial=0))]


@cache
def _pattern() -> re.Pattern[str]:
    r"""Return GPT-2's pattern with the classes ``\p{L}`` and ``\p{N}``, which ``re`` lacks, written out.

    The classes hold only characters below 0x10000, which ``re`` finds in a table; it would search a list for
    the others, for which :func:`_stand_in` puts lower ones.
    """
    letter, number = _class(LETTERS), _class(NUMBERS)
    return re.compile(
        rf"""'(?:[stmd]|re|ve|ll)| ?[{letter}]+| ?[{number}]+| ?[^{letter}{number}{_SPACE}]+"""
        rf"""|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+"""
    )


def _class(table: str) -> str:
    """Return the characters of a table below 0x10000 as the inside of a character class."""
    return "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in _runs(table) if run[-1] < 0x10000)


def _stand_in(match: re.Match[str]) -> str:
    """Return a character below 0x10000 that is a letter, a number or a sign, as the matched one is.

    The letter is not one of those that may follow an apostrophe in the pattern.
    """
    code = ord(match[0])
    return "ª" if _contains(LETTERS, code) else "0" if _contains(NUMBERS, code) else "!"


def _contains(table: str, code: int) -> bool:
    runs = _runs(table)
    return code in runs[bisect_right(runs, code, key=lambda run: run[0]) - 1]


@cache
def _runs(table: str) -> tuple[range, ...]:
    """Parse a table into runs of codes, in order."""
    ends = (run.split("-") for run in table.split())
    return tuple(range(int(run[0], 16), int(run[-1], 16) + 1) for run in ends)
