"""Known mistakes, each with its hint: the row of a task, invented words."""

from collections import Counter
from collections.abc import Callable, Sequence

from exformer_lessons.exercises.grading import Mistake

Ids = list[int]


def row(article: Ids, separator: Ids, summary: Ids, bos: int, eos: int, pad: int) -> tuple[Ids, Ids]:
    """Make the row of a summary: the model's input, and its targets.

    Args:
        article: Ids of the article.
        separator: Ids of the separator.
        summary: Ids of the summary.
        bos: Comes first.
        eos: Ends the summary.
        pad: The target where nothing is to be predicted.

    Returns:
        Two lists of equal length.
    """
    prompt = [bos, *article, *separator]
    return [*prompt, *summary], [pad] * (len(prompt) - 1) + [*summary, eos]


def _asked_for(n_early: int) -> Callable[..., tuple[Ids, Ids]]:
    """Put the targets some positions too early (or too late)."""

    def wrong(a: Ids, sep: Ids, s: Ids, bos: int, eos: int, pad: int) -> tuple[Ids, Ids]:
        shown = [bos, *a, *sep, *s]
        said = [pad] * (len(a) + len(sep) - n_early) + [*s, eos]
        return shown, (said + [pad] * len(shown))[: len(shown)]

    return wrong


def _searched(which: int, *, last: bool = False) -> Callable[..., tuple[Ids, Ids]]:
    """Look in the whole row for an id of the separator, to find where the summary begins."""

    def wrong(a: Ids, sep: Ids, s: Ids, bos: int, eos: int, pad: int) -> tuple[Ids, Ids]:
        whole = [bos, *a, *sep, *s, eos]
        found = [t for t, word in enumerate(whole) if word == sep[which]][-1 if last else 0]
        start = found + (len(sep) if which == 0 else 1)
        return whole[:-1], [pad] * (start - 1) + whole[start:]

    return wrong


ROW: dict[str, Mistake] = {
    "You look for the separator's id in the row, and the article or the summary may hold it, too: add up the "
    "lengths.": tuple(_searched(which, last=last) for which in (0, -1) for last in (False, True)),
    "Your targets hold the article too: before the summary, each target is pad_id.": (
        lambda a, sep, s, bos, eos, pad: ([bos, *a, *sep, *s], [*a, *sep, *s, eos])
    ),
    "Your targets hold the separator too: it is given, the model need not predict it.": (
        lambda a, sep, s, bos, eos, pad: ([bos, *a, *sep, *s], [pad] * len(a) + [*sep, *s, eos])
    ),
    "Your targets are one position late, and the end token falls off: each position predicts the word after "
    "its own.": _asked_for(-1),
    "Your targets are one position early.": _asked_for(1),
    "The summary's first word is no target: the last position of the separator predicts it.": (
        lambda a, sep, s, bos, eos, pad: (
            [bos, *a, *sep, *s],
            [pad] * (1 + len(a) + len(sep)) + [*s[1:], eos],
        )
    ),
    "You hide the summary in the input: in training the model sees its words before the target.": (
        lambda a, sep, s, bos, eos, pad: (
            [bos, *a, *sep, *[pad] * len(s)],
            row(a, sep, s, bos, eos, pad)[1],
        )
    ),
    "The end token is never a target: the summary would not know where to stop.": (
        lambda a, sep, s, bos, eos, pad: (
            [bos, *a, *sep, *s],
            [pad] * (len(a) + len(sep)) + [*s, pad],
        )
    ),
    "You write 0 where nothing is predicted: use pad_id, which need not be 0.": (
        lambda a, sep, s, bos, eos, pad: ([bos, *a, *sep, *s], [0] * (len(a) + len(sep)) + [*s, eos])
    ),
    "You return the two lists in the other order: the input comes first.": (lambda *case: row(*case)[::-1]),
}
#: Mistakes that make the two lists longer or shorter than they should be.
ROW_LENGTHS: dict[str, Callable[..., object]] = {
    "Your input holds the end token: it is the last target, and nothing comes after it.": (
        lambda a, sep, s, bos, eos, pad: (
            [bos, *a, *sep, *s, eos],
            [pad] * (len(a) + len(sep)) + [*s, eos, pad],
        )
    ),
    "Your targets are not shifted: each position has its own word as target, not the next.": (
        lambda a, sep, s, bos, eos, pad: (
            [bos, *a, *sep, *s, eos],
            [pad] * (1 + len(a) + len(sep)) + [*s, eos],
        )
    ),
    "The summary is not shown: in training the model sees its words up to the one to be predicted.": (
        lambda a, sep, s, bos, eos, pad: ([bos, *a, *sep], [pad] * (len(a) + len(sep)) + [*s, eos])
    ),
    "The separator is missing: without it nothing says what is wanted.": (
        lambda a, sep, s, bos, eos, pad: ([bos, *a, *s], [pad] * len(a) + [*s, eos])
    ),
    "The end token is missing: the target after the summary's last word is eos_id.": (
        lambda a, sep, s, bos, eos, pad: ([bos, *a, *sep, *s[:-1]], [pad] * (len(a) + len(sep)) + s)
    ),
    "You take one id of the separator: it is a list, and may hold several.": (
        lambda a, sep, s, bos, eos, pad: row(a, sep[:1], s, bos, eos, pad)
    ),
    "The start token is missing: bos_id comes first in the input.": (
        lambda a, sep, s, bos, eos, pad: ([*a, *sep, *s], [pad] * (len(a) + len(sep) - 1) + [*s, eos])
    ),
}


def invented(summary: str, article: str, names: Sequence[str]) -> int:
    """Count the words of a summary that are names and not in the article.

    Args:
        summary: What a model wrote.
        article: What it read.
        names: The words that count.

    Returns:
        How many there are.
    """
    said = article.split()
    return sum(word in names and word not in said for word in summary.split())


def _by_case(
    counts: Callable[[str, list[str]], bool], read: Callable[[str], str] = str
) -> Callable[..., int]:
    """Count words by a rule of word and names, in texts whose case was changed."""
    return lambda summary, article, names: sum(
        counts(word, names) and word not in read(article).split() for word in read(summary).split()
    )


INVENTED: dict[str, Mistake] = {
    "You change the case of the words: the month May is a name, the verb may is none.": (
        _by_case(lambda word, names: word.lower() in [n.lower() for n in names]),
        _by_case(lambda word, names: word in [n.lower() for n in names], str.lower),
        _by_case(lambda word, names: word in names, str.lower),
        _by_case(lambda word, names: word.title() in names),
        lambda summary, article, names: sum(
            w in names and w.lower() not in article.lower().split() for w in summary.split()
        ),
    ),
    "You count every word that is not in the article; count those in names.": (
        lambda summary, article, names: sum(w not in article.split() for w in summary.split())
    ),
    "You look for letters in the article's text: 20 is found in 200. Cut it into words.": (
        lambda summary, article, names: sum(w in names and w not in article for w in summary.split())
    ),
    "You count each invented word once; a word used twice is two.": (
        lambda summary, article, names: len((set(summary.split()) & set(names)) - set(article.split()))
    ),
    "You count the names that the summary does not have: look at the summary's words.": (
        lambda summary, article, names: sum(w in names and w not in summary.split() for w in article.split())
    ),
    "You count the names that the summary took from the article: the others are invented.": (
        lambda summary, article, names: sum(w in names and w in article.split() for w in summary.split())
    ),
    "You count all names of the summary, also those of the article.": (
        lambda summary, article, names: sum(w in names for w in summary.split())
    ),
    "That is a share: return how many there are.": (
        lambda summary, article, names: invented(summary, article, names) / len(summary.split())
    ),
    "That is a share of the names: return how many are made up.": (
        lambda summary, article, names: (
            invented(summary, article, names) / max(1, sum(w in names for w in summary.split()))
        )
    ),
    "You count in the summary's text: 20 is found in 2020 too. Cut it into words.": (
        lambda summary, article, names: sum(summary.count(n) for n in names if n not in article.split())
    ),
    "You look for each name in the texts' letters: cut both into words, and count each time.": (
        lambda summary, article, names: sum(n in summary and n not in article for n in names)
    ),
    "A name that the article has is not made up, however often the summary has it.": (
        lambda summary, article, names: sum(
            n * (word in names) for word, n in (Counter(summary.split()) - Counter(article.split())).items()
        )
    ),
    "You look for words in the letters of the names: compare whole words.": (
        lambda summary, article, names: sum(
            word in " ".join(names) and word not in article.split() for word in summary.split()
        )
    ),
}
