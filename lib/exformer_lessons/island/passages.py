"""Velda, an island that does not exist: thirty passages, a question for each, twelve that none answers."""

import json
import re
from pathlib import Path
from typing import NamedTuple

_FOUND = json.loads(Path(__file__).with_name("passages.json").read_text(encoding="utf-8"))


class Entry(NamedTuple):
    """A passage, a question that it alone answers, and a word that every right answer has in it.

    For training there is another question about the same fact, with its answer.
    """

    passage: str
    question: str
    word: str  # a regular expression
    asked: str
    answered: str


#: The questions of the first eighteen use other words than their passages, the others a rare name.
ISLAND = tuple(Entry(**entry) for entry in _FOUND["entries"])
N_IN_OTHER_WORDS = 18

#: No passage answers these.
UNANSWERED: tuple[str, ...] = tuple(_FOUND["unanswered"])


def has_word(answer: str, word: str) -> bool:
    """Return whether an answer has the word in it that every right answer has.

    >>> has_word("It takes 55 minutes.", "55"), has_word("It takes 155 minutes.", "55")
    (True, False)
    """
    return re.search(rf"\b(?:{word})\b", answer, flags=re.IGNORECASE) is not None
