"""Lesson 12's row of a summary: the right answer and known mistakes, each with its hint."""

from collections.abc import Callable

Ids = list[int]


def row(article: Ids, separator: Ids, summary: Ids, bos: int, eos: int, pad: int) -> tuple[Ids, Ids]:
    """Make the row of a summary: what is shown, and what is asked for.

    Args:
        article: Ids of the article.
        separator: Ids of the separator.
        summary: Ids of the summary.
        bos: Stands first.
        eos: Ends the summary.
        pad: Stands where nothing is asked for.

    Returns:
        Two lists of equal length.
    """
    prompt = [bos, *article, *separator]
    return [*prompt, *summary], [pad] * (len(prompt) - 1) + [*summary, eos]


def _asked_for(n_early: int) -> Callable[..., tuple[Ids, Ids]]:
    """Ask for the summary some places too early (or too late)."""

    def wrong(a: Ids, sep: Ids, s: Ids, bos: int, eos: int, pad: int) -> tuple[Ids, Ids]:
        shown = [bos, *a, *sep, *s]
        said = [pad] * (len(a) + len(sep) - n_early) + [*s, eos]
        return shown, (said + [pad] * len(shown))[: len(shown)]

    return wrong


ROW: dict[str, Callable[..., object]] = {
    "You ask for the article too: before the summary, each target is pad_id.": (
        lambda a, sep, s, bos, eos, pad: ([bos, *a, *sep, *s], [*a, *sep, *s, eos])
    ),
    "You ask for the separator too: the reader gives it, the model need not say it.": (
        lambda a, sep, s, bos, eos, pad: ([bos, *a, *sep, *s], [pad] * len(a) + [*sep, *s, eos])
    ),
    "Your targets stand one place late, and the end symbol falls off: each place is asked for the word after "
    "its own.": _asked_for(-1),
    "Your targets stand one place early.": _asked_for(1),
    "The end symbol is never asked for: the summary would not know where to stop.": (
        lambda a, sep, s, bos, eos, pad: (
            [bos, *a, *sep, *s],
            [pad] * (len(a) + len(sep)) + [*s, pad],
        )
    ),
    "You write 0 where nothing is asked: use pad_id, which need not be 0.": (
        lambda a, sep, s, bos, eos, pad: ([bos, *a, *sep, *s], [0] * (len(a) + len(sep)) + [*s, eos])
    ),
    "You return the two lists in the other order: first what is shown.": (lambda *case: row(*case)[::-1]),
}
#: Mistakes that make the two lists longer or shorter than they should be.
ROW_LENGTHS: dict[str, Callable[..., object]] = {
    "You show the end symbol: it is asked for at the last word, and nothing comes after it.": (
        lambda a, sep, s, bos, eos, pad: (
            [bos, *a, *sep, *s, eos],
            [pad] * (len(a) + len(sep)) + [*s, eos, pad],
        )
    ),
    "Your targets are not shifted: each place is asked for its own word, not for the next.": (
        lambda a, sep, s, bos, eos, pad: (
            [bos, *a, *sep, *s, eos],
            [pad] * (1 + len(a) + len(sep)) + [*s, eos],
        )
    ),
    "The summary is not shown: in training the model sees its words up to the one asked for.": (
        lambda a, sep, s, bos, eos, pad: ([bos, *a, *sep], [pad] * (len(a) + len(sep)) + [*s, eos])
    ),
    "The separator is missing: without it nothing says what is wanted.": (
        lambda a, sep, s, bos, eos, pad: ([bos, *a, *s], [pad] * len(a) + [*s, eos])
    ),
    "The end symbol is missing: after the summary's last word the model is asked for eos_id.": (
        lambda a, sep, s, bos, eos, pad: ([bos, *a, *sep, *s[:-1]], [pad] * (len(a) + len(sep)) + s)
    ),
    "You take one id of the separator: it is a list, and may hold several.": (
        lambda a, sep, s, bos, eos, pad: row(a, sep[:1], s, bos, eos, pad)
    ),
    "The start symbol is missing: bos_id stands first in what is shown.": (
        lambda a, sep, s, bos, eos, pad: ([*a, *sep, *s], [pad] * (len(a) + len(sep) - 1) + [*s, eos])
    ),
}
