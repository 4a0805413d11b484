"""Pairs of neighbors -> merges: how byte-pair encoding learns merges, and how it applies them.

A word is a string whose characters stand for tokens: token number i is ``chr(i)``. So a pair is a string of
two characters, pairs are ordered as the numbers of their tokens are, and merging is a replacement of text.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from operator import add

from tqdm import tqdm

from exformer.check_settings import check_integer

#: The number of different characters that a string can hold.
MAX_TOKENS = 0x110000


# --- The algorithm: count the pairs, merge the most frequent one, repeat.


def count_pairs(words: Mapping[str, int]) -> Counter[str]:
    """Count the pairs of neighbors in words.

    Args:
        words: Strings of tokens with their counts.

    >>> count_pairs({"low": 5, "lot": 2})
    Counter({'lo': 7, 'ow': 5, 'ot': 2})
    """
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for pair in map(add, word, word[1:]):
            counts[pair] += count
    return counts


def learn_merges_by_recounting(
    words: Mapping[str, int], *, n_merges: int, first: int, min_count: int = 1
) -> list[str]:
    """Learn merges in the plainest way; :func:`learn_merges` finds the same ones faster.

    Args:
        words, n_merges, first, min_count: As for :func:`learn_merges`.

    >>> learn_merges_by_recounting({"low": 5, "lowest": 2, "newest": 6, "widest": 3}, n_merges=3, first=256)
    ['es', 'Āt', 'wā']
    """
    merges: list[str] = []
    for token in map(chr, range(first, first + n_merges)):
        counts = count_pairs(words)
        pair = min(counts, key=lambda pair: (-counts[pair], pair), default="")
        if counts[pair] < min_count:
            break
        merges.append(pair)
        words = {word.replace(pair, token): count for word, count in words.items()}
    return merges


# --- The same, fast. A merge changes few words, so there is no need to count all of them again. `_Corpus`
# knows which words hold a pair and updates only their counts; a heap finds the most frequent pair.


def learn_merges(
    words: Mapping[str, int], *, n_merges: int, first: int, min_count: int = 1, progress: str = ""
) -> list[str]:
    """Learn merges: merge the most frequent pair of neighbors, again and again.

    Among equally frequent pairs, the one with the smaller numbers comes first, as in Hugging Face's trainer.

    Args:
        words: Strings of tokens with their counts.
        n_merges: Number of merges to learn.
        first: Number of the first new token, greater than those in the words.
        min_count: The least number of times that a pair must occur; learning stops when no pair does.
        progress: Title of a progress bar; empty for none.

    Returns:
        The pairs in the order in which they were learned; merge number i makes the token ``chr(first + i)``.

    Raises:
        ValueError: If a number is too small, or there would be more tokens than characters.

    Source:
        Sennrich, Haddow and Birch 2016, section 3.2.

    >>> learn_merges({"low": 5, "lowest": 2, "newest": 6, "widest": 3}, n_merges=3, first=256)
    ['es', 'Āt', 'wā']
    """
    _check_numbers(n_merges, first=first, min_count=min_count)
    corpus = _Corpus(words)
    waiting = [(-count, pair) for pair, count in corpus.counts.items() if count >= min_count]
    heapify(waiting)
    merges: list[str] = []
    for number in tqdm(range(first, first + n_merges), desc=progress, disable=not progress, leave=False):
        pair = _pop_most_frequent(waiting, corpus.counts, min_count)
        if pair is None:
            break
        merges.append(pair)
        for new in corpus.merge(pair, chr(number)):
            if corpus.counts[new] >= min_count:
                heappush(waiting, (-corpus.counts[new], new))
    return merges


def _check_numbers(n_merges: int, *, first: int, min_count: int) -> None:
    check_integer("n_merges", n_merges, least=0)
    check_integer("min_count", min_count, least=1)
    if first + n_merges > MAX_TOKENS:
        raise ValueError(f"n_merges must be at most {MAX_TOKENS - first:,}, got {n_merges:,}")


def _pop_most_frequent(
    waiting: list[tuple[int, str]], counts: Mapping[str, int], min_count: int
) -> str | None:
    """Take the most frequent pair off the heap.

    A count on the heap may be too high, because merges of other pairs have used up tokens of the pair; it is
    corrected when the pair comes up. It is never too low, because all pairs that a merge makes are new.
    """
    while waiting:
        count, pair = heappop(waiting)
        now = counts[pair]
        if now == -count:
            return pair
        if now >= min_count:
            heappush(waiting, (-now, pair))
    return None


class _Corpus:
    """The different words of a corpus and the counts of their pairs, both updated by each merge.

    Args:
        words: Strings of tokens with their counts.
    """

    def __init__(self, words: Mapping[str, int]):
        self.words, self.frequencies = list(words), list(words.values())
        self.holders: defaultdict[str, list[int]] = defaultdict(list)  # numbers of words that hold it, or did
        for index, word in enumerate(words):
            for pair in map(add, word, word[1:]):
                self.holders[pair].append(index)  # twice for a word that holds it twice
        self.counts: defaultdict[str, int] = defaultdict(int)
        for pair, indices in self.holders.items():
            self.counts[pair] = sum(map(self.frequencies.__getitem__, indices))

    def merge(self, pair: str, token: str) -> set[str]:
        """Replace a pair by a new token in the words that hold it.

        Returns:
            The new pairs.
        """
        made: set[str] = set()
        for index in set(self.holders.pop(pair)):  # a word may hold it more than once
            parts = self.words[index].split(pair)
            if len(parts) > 1:
                self.words[index] = token.join(parts)
                made.update(self._recount(parts, pair, token, index))
        del self.counts[pair]
        return made

    def _recount(self, parts: Sequence[str], pair: str, token: str, index: int) -> list[str]:
        """Update the counts for one word: the neighbors of each merged pair have changed."""
        counts, frequency, (first, second) = self.counts, self.frequencies[index], pair
        made = []
        before = now = parts[0][-1:]  # the left neighbor of the pair, and that of the new token
        for part in parts[1:]:
            if now:
                counts[before + first] -= frequency
                made.append(now + token)
            if part:
                counts[second + part[0]] -= frequency
                made.append(token + part[0])
                before = now = part[-1]
            else:  # the next pair follows at once
                before, now = second, token
        for new in made:
            counts[new] += frequency
            self.holders[new].append(index)
        return made


# --- Applying merges to a word that may be new.


def apply_merges(word: str, merges: Mapping[str, str]) -> str:
    """Apply merges to one word in the order in which they were learned.

    A heap holds the merges for which the word has a pair, so that each is tried once.

    Args:
        word: A string of tokens.
        merges: The token that each pair becomes; greater tokens were learned later.

    Returns:
        The word, in which no pair of ``merges`` is left.

    >>> apply_merges("lowest", {"es": "Ā", "Āt": "ā", "lo": "Ă"})
    'Ăwā'
    """
    waiting = [(merges[pair], pair) for pair in map(add, word, word[1:]) if pair in merges]
    heapify(waiting)
    last = ""
    while waiting:
        token, pair = heappop(waiting)
        if token == last:
            continue
        last, parts = token, word.split(pair)
        if len(parts) == 1:
            continue  # other merges have used it up
        word = token.join(parts)
        left = parts[0][-1:]
        for part in parts[1:]:
            if left and (new := left + token) in merges:
                heappush(waiting, (merges[new], new))
            if part and (new := token + part[0]) in merges:
                heappush(waiting, (merges[new], new))
            left = part[-1:] or token
    return word
