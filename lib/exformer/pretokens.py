"""A text <-> pieces: the words, numbers and gaps that byte-pair encoding never joins."""

import re
from functools import cache
from itertools import groupby

# White space as Unicode and GPT-2 have it; Python's \s also holds the four separators 0x1c to 0x1f.
_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


@cache
def _numbers() -> str:
    r"""Return the numbers that are no decimal digits (½, Ⅷ, ...) as the inside of a character class.

    To Python's ``re`` they are like letters: both are in ``\w``, neither in ``\d``. The planes of Unicode
    from 0x20000 on have ideographs, which are letters, and no such numbers.
    """
    characters = "".join(map(chr, range(0x20000)))
    codes = [ord(found) for found in re.findall(r"[^\W\d_]", characters) if not found.isalpha()]
    runs = [[code for _, code in run] for _, run in groupby(enumerate(codes), lambda pair: pair[1] - pair[0])]
    return "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs)


@cache
def _pattern() -> re.Pattern[str]:
    """Return GPT-2's pattern, written without the classes that ``re`` lacks.

    The first line of words and the first of signs say nothing new: they are fast ways through plain ASCII. A
    ``++`` gives nothing back, so that "ca" of "café" is not taken for a word.
    """
    letter, number = rf"[^\W\d_{_numbers()}]", rf"[\d{_numbers()}]"
    return re.compile(
        rf""" ?[A-Za-z]++(?![^\x00-\x7f])"""
        rf"""|'(?:[stmd]|re|ve|ll)"""
        rf"""| ?(?:[^A-Za-z0-9{_SPACE}\x80-\U0010ffff]++(?![^\x00-\x7f])"""
        rf"""|{letter}++"""
        rf"""|{number}++"""
        rf"""|(?:[^\w\s]|[_\x1c-\x1f])++)"""
        rf"""|[{_SPACE}]+(?![^{_SPACE}])"""
        rf"""|[{_SPACE}]+"""
    )


def split_pieces(text: str) -> list[str]:
    r"""Cut a text as GPT-2 does: a run of letters, of digits or of other signs, with the space before it.

    The pattern is ``'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+``. Of
    several spaces before a word all but the last are a piece of their own. Joined, the pieces are the text.
    What is a letter, a number or neither, this Python's version of Unicode says.

    Args:
        text: Any string; half a surrogate pair counts as a sign.

    Returns:
        The pieces, in order.

    Source: Radford et al. (2019), "Language Models are Unsupervised Multitask Learners", its `encoder.py`.

    >>> split_pieces("It's 42 kg,  not 50!")
    ['It', "'s", ' 42', ' kg', ',', ' ', ' not', ' 50', '!']
    """
    return _pattern().findall(text)
