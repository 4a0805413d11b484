"""A checker of facts: what a summary states, and whether the article says so."""

from dataclasses import asdict

from exformer.corpora.news.lexicon import (
    DAYS,
    FIRST_NAMES,
    LAST_NAMES,
    NUMBERS,
    THINGS,
    TOWNS,
    VERBS,
)
from exformer.corpora.news.writing import Report

#: The verdicts on one fact of a summary.
VERDICTS = ("right", "missing", "mistaken", "invented")
_WORDS = {
    "person": {*FIRST_NAMES, *LAST_NAMES},
    "verb": set(VERBS),
    "thing": set(THINGS),
    "town": set(TOWNS),
    "day": set(DAYS),
    "people": set(NUMBERS),
}


def stated(text: str) -> dict[str, str]:
    """Find the names, days, numbers and deeds in a sentence.

    Args:
        text: A summary, right or wrong, well-formed or not.

    Returns:
        For each kind of fact all words of this kind, in their order; nothing where there is none.

    >>> stated("Ada Ricci sold the mill before 30 people .")["person"]
    'Ada Ricci'
    """
    return {kind: " ".join(word for word in text.split() if word in _WORDS[kind]) for kind in _WORDS}


def judge(summary: str, report: Report) -> dict[str, str]:
    """Compare each fact that a summary states with the article.

    A fact is "right" if it is the article's (or rightly left out), "missing" if the article says it and the
    summary does not, "mistaken" if the words are in the article and mean something else there, and
    "invented" if the article does not have them, or not as neighbors: Ada Ricci is invented where the
    article speaks of Ada Conti and Bruno Ricci.

    Args:
        summary: What a model generated.
        report: The article that it read, with its facts.

    Returns:
        For each kind of fact one of ``VERDICTS``.

    >>> from exformer.corpora.news.writing import Facts
    >>> report = Report("Ada Ricci sold the mill .", "", Facts("Ada Ricci", "sold", "mill", "", "", ""))
    >>> judge("Ada Conti sold it .", report)["person"], judge("Ada Conti sold it .", report)["thing"]
    ('invented', 'missing')
    """
    article, right = f" {report.article} ", asdict(report.facts)
    return {kind: _verdict(words, right[kind], article) for kind, words in stated(summary).items()}


def _verdict(words: str, right: str, article: str) -> str:
    if words == right:
        return "right"
    if not words:
        return "missing"
    return "mistaken" if f" {words} " in article else "invented"


def first_sentence(article: str) -> str:
    """Return the first sentence of an article, with its full stop: the simplest summary there is.

    Args:
        article: Words and signs with one space between them.

    Raises:
        ValueError: If there is no full stop.

    >>> first_sentence("Ada Ricci sold the mill . 30 people came .")
    'Ada Ricci sold the mill .'
    """
    sentence, stop, _ = article.partition(" .")
    if not stop:
        raise ValueError(f"expected sentences that end in ' .', got {article[:60]!r}")
    return sentence + stop
