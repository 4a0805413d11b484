"""A text <-> pieces: the words, numbers and gaps that byte-pair encoding never joins."""

import re
import unicodedata
from functools import cache
from itertools import accumulate, groupby, pairwise

# White space as Unicode and GPT-2 have it; Python's \s also holds the four separators 0x1c to 0x1f.
_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_BEYOND = re.compile(r"[\U00010000-\U0010ffff]")
_STAND_INS = {"L": "ª", "N": "0"}  # for a letter and a number; of all that begin 's, 'll, ... they are none


def _characters(kind: str) -> str:
    """Return the characters whose category begins so, as the inside of a character class.

    Only those below 0x10000: ``re`` looks them up in a table, and would go through a list for the others.
    """
    codes = [code for code in range(0x10000) if unicodedata.category(chr(code))[0] == kind]
    runs = [[code for _, code in run] for _, run in groupby(enumerate(codes), lambda pair: pair[1] - pair[0])]
    return "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs)


@cache
def _pattern() -> re.Pattern[str]:
    """Return GPT-2's pattern with its classes written out, which ``re`` lacks."""
    letter, number = _characters("L"), _characters("N")
    return re.compile(
        rf"""'(?:[stmd]|re|ve|ll)| ?[{letter}]+| ?[{number}]+| ?[^{letter}{number}{_SPACE}]+"""
        rf"""|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+"""
    )


def _stand_in(found: re.Match[str]) -> str:
    """Return a character below 0x10000 that is a letter, a number or neither, as the one that was found."""
    return _STAND_INS.get(unicodedata.category(found[0])[0], "!")


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
    if len(text.encode("utf-16-le", "surrogatepass")) == 2 * len(text):  # all below 0x10000
        return _pattern().findall(text)
    pieces = _pattern().findall(_BEYOND.sub(_stand_in, text))
    return [text[start:end] for start, end in pairwise(accumulate(map(len, pieces), initial=0))]
