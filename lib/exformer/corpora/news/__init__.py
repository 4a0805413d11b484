"""News: short articles with exact one-sentence summaries, and a checker of facts."""

from exformer.corpora.news.checking import VERDICTS, first_sentence, judge, stated
from exformer.corpora.news.sampling import sample, split
from exformer.corpora.news.writing import Facts, Report, summarize

__all__ = [
    "VERDICTS",
    "Facts",
    "Report",
    "first_sentence",
    "judge",
    "sample",
    "split",
    "stated",
    "summarize",
]
