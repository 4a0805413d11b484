"""Pairs of neighbours -> merges: how byte-pair encoding learns, and how it applies what it has learned.

A word is a string whose characters are symbols: the symbol number i is ``chr(i)``. So a pair is a string of
two characters, pairs have the order of their numbers, and merging is a replacement of text.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from operator import add

from tqdm import tqdm

#: Strings have no more different characters.
MAX_SYMBOLS = 0x110000


class _Corpus:
    """Hold all different words with the counts of their pairs, and keep both right from merge to merge.

    Args:
        words: The words, each with how often it occurs.
    """

    def __init__(self, words: Mapping[str, int]):
        self.words, self.frequencies = list(words), list(words.values())
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.places: defaultdict[str, list[int]] = defaultdict(list)  # where a pair is, or was
        for place, (word, frequency) in enumerate(words.items()):
            for pair in map(add, word, word[1:]):
                self.counts[pair] += frequency
                self.places[pair].append(place)

    def merge(self, pair: str, symbol: str) -> set[str]:
        """Put a new symbol for a pair, in the words that hold it and nowhere else.

        Returns:
            The pairs that have come into being.
        """
        made: set[str] = set()
        for place in set(self.places.pop(pair)):  # a word may hold it more than once
            parts = self.words[place].split(pair)
            if len(parts) > 1:
                self.words[place] = symbol.join(parts)
                made.update(self._recount(parts, pair, symbol, place))
        del self.counts[pair]
        return made

    def _recount(self, parts: Sequence[str], pair: str, symbol: str, place: int) -> list[str]:
        """Count what has changed in one word: the neighbours of the places between its parts."""
        counts, frequency, (first, second) = self.counts, self.frequencies[place], pair
        made = []
        before = now = parts[0][-1:]  # what stood left of the pair, and what stands left of the symbol
        for part in parts[1:]:
            if now:
                counts[before + first] -= frequency
                made.append(now + symbol)
            if part:
                counts[second + part[0]] -= frequency
                made.append(symbol + part[0])
                before = now = part[-1]
            else:  # the next pair follows at once
                before, now = second, symbol
        for new in made:
            counts[new] += frequency
            self.places[new].append(place)
        return made


def learn_merges(
    words: Mapping[str, int], *, n_merges: int, first: int, min_count: int = 1, progress: str = ""
) -> list[str]:
    """Merge the most frequent pair of neighbours, again and again.

    Of pairs that are equally frequent, the one with the smaller numbers comes first, as in Hugging Face's
    trainer. A heap holds the pairs by their counts. A count may have sunk since: it is put right when its
    pair comes up. It never grows, because the pairs that a merge makes are all new.

    Args:
        words: Strings of symbols, each with how often it occurs.
        n_merges: How many merges to learn.
        first: Number of the first new symbol, greater than those in the words.
        min_count: A pair must occur so often; when none does, there are fewer merges.
        progress: Title of a progress bar; none if empty.

    Returns:
        The pairs, the most important first; the merge number i makes the symbol ``chr(first + i)``.

    Raises:
        ValueError: If a number is too small, or there are more symbols than strings can hold.

    Source: Sennrich et al. (2016), "Neural Machine Translation of Rare Words with Subword Units",
    section 3.2.

    >>> learn_merges({"low": 5, "lowest": 2, "newest": 6, "widest": 3}, n_merges=3, first=256)
    ['es', 'Āt', 'wā']
    """
    _check(n_merges, first=first, min_count=min_count)
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


def _check(n_merges: int, *, first: int, min_count: int) -> None:
    if n_merges < 0:
        raise ValueError(f"n_merges must be at least 0, got {n_merges}")
    if min_count < 1:
        raise ValueError(f"min_count must be at least 1, got {min_count}")
    if first + n_merges > MAX_SYMBOLS:
        raise ValueError(f"n_merges must be at most {MAX_SYMBOLS - first:,}, got {n_merges:,}")


def _pop_most_frequent(
    waiting: list[tuple[int, str]], counts: Mapping[str, int], min_count: int
) -> str | None:
    while waiting:
        count, pair = heappop(waiting)
        now = counts[pair]
        if now == -count:
            return pair
        if now >= min_count:
            heappush(waiting, (-now, pair))
    return None


def apply_merges(word: str, merges: Mapping[str, str]) -> str:
    """Merge the pairs of one word in the order in which they were learned.

    Args:
        word: A string of symbols.
        merges: The symbol that each pair becomes; a greater one was learned later.

    Returns:
        The word with no pair left that is in ``merges``.

    >>> apply_merges("lowest", {"es": "Ā", "Āt": "ā", "lo": "Ă"})
    'Ăwā'
    """
    waiting = [(merges[pair], pair) for pair in map(add, word, word[1:]) if pair in merges]
    heapify(waiting)
    last = ""
    while waiting:
        symbol, pair = heappop(waiting)
        if symbol == last:
            continue
        last, parts = symbol, word.split(pair)
        if len(parts) == 1:
            continue  # other merges have used it up
        word = symbol.join(parts)
        left = parts[0][-1:]
        for part in parts[1:]:
            if left and (new := left + symbol) in merges:
                heappush(waiting, (merges[new], new))
            if part and (new := symbol + part[0]) in merges:
                heappush(waiting, (merges[new], new))
            left = part[-1:] or symbol
    return word
