"""Text as people have it -> normalized text: composed (NFC), and without invisible characters."""

import re
import unicodedata

# Control characters, Unicode's default-ignorable code points, and the other invisible format characters.
_CONTROLS = r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
_IGNORABLE = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
)
_IGNORABLE_BEYOND = (
    r"\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # above U+FFFF
)
# Joiners change what one sees between letters of Arabic, Indic and a few other scripts, and between emoji.
_JOINED = (
    r"\u0600-\u061b\u061d-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u180a\u1810-\u1cff\u2190-\u21ff"
    r"\u2300-\u27bf\u2b00-\u2bff\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    r"\U00010a00-\U00011fff\U0001f000-\U0001faff"
)
# Variation selectors do so after these, too: mathematical signs and Chinese characters.
_VARIED = (
    rf"{_JOINED}\u2200-\u22ff\u27c0-\u27ff\u2900-\u2aff\u3001-\u303f\u3200-\u9fff\uf900-\ufaff"
    r"\U00020000-\U000323af"
)
_SELECTORS = r"\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"

_SEPARATORS = re.compile(r"[\x1c-\x1f\u2800]")  # they look like a space; U+2800 is braille
_UNSEEN = re.compile(rf"[{_CONTROLS}\x1c-\x1f\u2800{_IGNORABLE}{_IGNORABLE_BEYOND}\ud800-\udfff]")
_PLAIN_ASCII = bytes([*range(0x09, 0x0E), *range(0x20, 0x7F)])  # without control characters
# Of the other bytes in UTF-8, those of U+00C0 to U+02FF, U+0380 to U+047F, U+4000 to U+9FFF and U+B000 to
# U+CFFF, where all characters are visible and none is a mark: their first bytes, and all that come second.
_PLAIN = _PLAIN_ASCII + bytes(
    [*range(0x80, 0xC0), *range(0xC3, 0xCC), *range(0xCE, 0xD2), *range(0xE4, 0xEA), 0xEB, 0xEC]
)
_SEEN_OR_UNSEEN = re.compile(
    r"([#*0-9]\ufe0f(?=\u20e3)"  # a keycap
    r"|\U0001f3f4[\U000e0020-\U000e007e]{2,6}\U000e007f"  # the flag of a region
    rf"|[{_JOINED}][{_SELECTORS}]?[\u200c\u200d](?=[{_JOINED}])"
    rf"|[{_VARIED}][{_SELECTORS}])"
    rf"|[{_CONTROLS}{_IGNORABLE}{_IGNORABLE_BEYOND}]"
)
_PAIR = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
# A word whose first character may be a combining mark; a search that begins with a class is fast.
_MARKED_WORD = re.compile(r"[\u0300-\uffff\U000101fd-\U0001efff](?<=\S)(?<!\S.)\S*", re.DOTALL)


def normalize_text(text: str) -> str:
    r"""Normalize a text, so that texts that look the same become the same.

    Every tokenizer normalizes the texts that it learns from and the texts that it encodes. The same rule
    therefore holds for training, ``generate``, ``translate`` and the command:

    1. The two halves of a surrogate pair become one character.
    2. Invisible characters are removed: control characters, Unicode's default-ignorable code points (such as
       zero-width spaces, soft hyphens, byte order marks, direction marks, fillers and tags), and combining
       marks without a letter before them. Joiners, variation selectors and tags stay where they change what
       one sees: in emoji, and in scripts such as Arabic, Devanagari and Chinese.
    3. A letter and its combining marks are composed (normalization form C of Unicode).

    White space stays: tabs, line ends, no-break spaces. The separators U+001C to U+001F and the empty cell of
    braille look like a space and become one.

    Args:
        text: Any string.

    Returns:
        The normalized text; a second normalization would not change it.

    Raises:
        ValueError: If it is not a string, or holds half a surrogate pair.

    Source:
        Unicode Standard, section 5.21 for default-ignorable code points and 23.2 for joiners; its Annex 15
        for the normalization forms.

    >>> normalize_text("\ufeffcafe\u0301\u200b"), normalize_text("\u200b")
    ('café', '')
    """
    if not isinstance(text, str):
        raise ValueError(f"expected a text (str), got {type(text).__name__}")
    # Most texts are done at once: bytes are deleted ten times as fast as ``re`` searches characters.
    data = text.encode("utf-8", "surrogatepass")
    if not data.translate(None, _PLAIN):
        return unicodedata.normalize("NFC", text)
    characters = set(data.translate(None, _PLAIN_ASCII).decode("utf-8", "surrogatepass"))
    if _UNSEEN.search("".join(characters)):
        text = _SEPARATORS.sub(" ", _join_surrogates(text))
        text = _SEEN_OR_UNSEEN.sub(r"\1", unicodedata.normalize("NFC", text))
    elif not any(map(_is_mark, characters)):
        return unicodedata.normalize("NFC", text)
    return _MARKED_WORD.sub(_drop_marks, unicodedata.normalize("NFC", text))


def normalize_line(text: str) -> str:
    r"""Normalize a sentence: its words, with one space between them.

    ``translate`` reads its sentences in this form. Every kind of white space separates words: tabs, no-break
    spaces, Unicode's line separators.

    Raises:
        ValueError: As :func:`normalize_text`.

    >>> normalize_line(" A dog\u2028runs.\u200b\n")
    'A dog runs.'
    """
    return " ".join(normalize_text(text).split())


def _join_surrogates(text: str) -> str:
    """Join the two halves of each surrogate pair; check that none is alone."""
    text = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    half = _SURROGATE.search(text)
    if half is None:
        return text
    got = f"half a surrogate pair, {half[0]!r}, at {half.start()}"
    if "\udc80" <= half[0] <= "\udcff":  # how Python hands over the bytes of file names and of arguments
        got = f"the byte 0x{ord(half[0]) - 0xDC00:02x} (as {half[0]!r}) at {half.start()}"
    raise ValueError(f"expected a text of whole characters, got {got}: read or write the text as UTF-8")


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


def _drop_marks(word: re.Match[str]) -> str:
    """Return a word without the combining marks that it begins with."""
    marks = 0
    while marks < len(word[0]) and _is_mark(word[0][marks]):
        marks += 1
    return word[0][marks:]
