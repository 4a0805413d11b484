"""What goes wrong in writing word by word: each hint beside a function that makes the mistake."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

ENDLESS = [-2]  # what stands for an answer that never stopped


class TooManyCallsError(Exception):
    """An answer that asks for more words than any limit allows."""


class Language:
    """Give logits for each place of a list of ids, each depending on all ids up to its place.

    Args:
        salt: Which language it is.
        length: How many words a sentence has before its end symbol.
        calls: After how many calls it refuses.
        ends: The ids of the start and the end symbol.
    """

    def __init__(self, salt: int, *, length: int, calls: int, ends: tuple[int, int]) -> None:
        self.salt, self.length, self.left = salt, length, calls
        self.bos, self.eos = ends
        self.longest = 0  # ids in the longest list that was asked about

    def __call__(self, ids: object) -> Tensor:
        """Score 13 symbols after each place, one row a place."""
        self.left -= 1
        if self.left < 0:
            raise TooManyCallsError
        ids = [int(i) for i in torch.as_tensor(ids).flatten()]
        self.longest = max(self.longest, len(ids))
        return torch.stack([self._row(ids[: n + 1]) for n in range(len(ids))])

    def _row(self, ids: Sequence[int]) -> Tensor:
        key = sum((place + 2) * (symbol + self.salt) for place, symbol in enumerate(ids))
        row = torch.sin(torch.arange(13) * (1.0 + key) + self.salt)
        row[[0, self.bos]] -= 9.0
        row[self.eos] = 5.0 if ids[0] == self.bos and len(ids) == self.length + 1 else -5.0
        return row


def in_a_language(write: Callable[..., list[int]]) -> Callable[..., list[int]]:
    """Let a way to write run in a language that is made from the ids of its ends, a salt and a length."""
    return lambda bos_id, eos_id, salt, length, limit: write(
        Language(salt, length=length, calls=99_999, ends=(bos_id, eos_id)), limit
    )


def greedy(logits_of: Language, limit: int) -> list[int]:
    """Write rightly: append the best word until the end symbol, or until the limit."""
    return _write(logits_of, limit)


def _write(
    logits_of: Language,
    limit: int,
    *,
    feed: Callable[[list[int]], list[int]] = lambda ids: ids,
    pick: Callable[[Tensor], Tensor] = lambda logits: logits[-1].argmax(),
    stop: bool = True,
) -> list[int]:
    ids = [logits_of.bos]
    while len(ids) <= limit:
        ids.append(int(pick(logits_of(feed(ids)))))
        if stop and ids[-1] == logits_of.eos:
            return ids[1:-1]
    return ids[1:]


def _with_end(logits_of: Language, limit: int) -> list[int]:
    found = _write(logits_of, limit)
    return [*found, logits_of.eos] if len(found) < limit else found


# The two write alike, the first word again and again; they differ in what they ask.
FIRST_ROW = "You take the first row of logits: the next word is scored in the last row."
NEVER_FED = "You never feed what was written: each word must join the ids that are asked next."

#: Wrong ways to write.
GREEDY: dict[str, Callable[[Language, int], list[int]]] = {
    "Your result starts with <s>: return the new ids only.": lambda f, limit: [f.bos, *_write(f, limit)],
    "Your result ends with </s>: leave the end symbol out.": _with_end,
    "Your result has <s> and </s> in it: return the new ids only, without the end symbol.": (
        lambda f, limit: [f.bos, *_with_end(f, limit)]
    ),
    "You do not stop at the end symbol: what comes after </s> is no part of the sentence.": (
        lambda f, limit: _write(f, limit, stop=False)
    ),
    FIRST_ROW: (lambda f, limit: _write(f, limit, pick=lambda logits: logits[0].argmax())),
    "You take the largest of all rows' logits: the next word is scored in the last row.": (
        lambda f, limit: _write(f, limit, pick=lambda logits: logits.max(0).values.argmax())
    ),
    "You take the least probable word: argmax, not argmin.": (
        lambda f, limit: _write(f, limit, pick=lambda logits: logits[-1].argmin())
    ),
    "You feed the last word only: the decoder must be shown all words so far.": (
        lambda f, limit: _write(f, limit, feed=lambda ids: ids[-1:])
    ),
    "You feed the words without <s>: the start symbol stays in front.": (
        lambda f, limit: _write(f, limit, feed=lambda ids: ids[1:] or ids)
    ),
    "You write one word too few at the limit: limit counts the new words, without <s>.": (
        lambda f, limit: _write(f, limit - 1)
    ),
    "You write a word where limit is 0: look at the limit before you write.": (
        lambda f, limit: _write(f, max(limit, 1))
    ),
    "You write one word too many at the limit: limit counts the new words.": (
        lambda f, limit: _write(f, limit + 1)
    ),
    "You write on beyond the limit where no end symbol comes: at most limit words.": (
        lambda f, limit: _write(f, 99)
    ),
    "Your loop does not end: stop at the end symbol, and after limit words.": lambda f, limit: ENDLESS,
}
