"""Reading from left to right: what may come next, how probable it is, and where a sentence breaks."""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache

from exformer.corpora.english.pcfg import Grammar

#: What is still to come (words and nonterminals), and the probability of the words read together with it.
Stacks = dict[tuple[str, ...], float]

END = "</s>"  #: The end of the sentence among the words that may come next.


@cache
def beginnings(grammar: Grammar) -> dict[str, dict[str, Stacks]]:
    """Return the words with which each nonterminal can begin, and what follows each: its Greibach form.

    Returns:
        nonterminal -> first word -> what is to come -> probability.
    """
    found: dict[str, dict[str, Stacks]] = {}

    def begin(name: str) -> dict[str, Stacks]:
        if name not in found:
            table = defaultdict(lambda: defaultdict(float))
            for p, (first, *rest) in grammar.rules[name]:
                starts = begin(first) if first in grammar.rules else {first: {(): 1.0}}
                for word, stacks in starts.items():
                    for stack, chance in stacks.items():
                        table[word][(*stack, *rest)] += p * chance
            found[name] = {word: dict(stacks) for word, stacks in table.items()}
        return found[name]

    for name in grammar.rules:
        begin(name)
    return found


def start(grammar: Grammar) -> Stacks:
    """Return what is to come before the first word: a whole sentence."""
    return {(grammar.start,): 1.0}


def advance(grammar: Grammar, stacks: Stacks, word: str) -> Stacks:
    """Read one word: keep what can begin with it.

    Args:
        stacks: What may be to come.

    Returns:
        What may be to come then; empty if the word can't be next.
    """
    after: Stacks = defaultdict(float)
    for (top, *rest), p in ((stack, p) for stack, p in stacks.items() if stack):
        starts = beginnings(grammar)[top] if top in grammar.rules else {top: {(): 1.0}}
        for stack, chance in starts.get(word, {}).items():
            after[*stack, *rest] += p * chance
    return dict(after)


def read(grammar: Grammar, words: Iterable[str]) -> tuple[Stacks, int | None]:
    """Read words from the start.

    Args:
        words: The words, or the first words, of a sentence.

    Returns:
        What may be to come after them, and the position of the first word that can't be there (then nothing
        may be to come), or None.
    """
    stacks = start(grammar)
    for place, word in enumerate(words):
        stacks = advance(grammar, stacks, word)
        if not stacks:
            return {}, place
    return stacks, None


def next_words(grammar: Grammar, stacks: Stacks) -> dict[str, float]:
    r"""Compute the probability of each word that may come next, and of the end.

    .. math:: p(w \mid \text{prefix}) = \frac{p(\text{prefix}\; w)}{p(\text{prefix})}

    Every sentence ends with probability 1, so the probability of a prefix is the sum over its stacks.

    Args:
        stacks: What may be to come.

    Returns:
        word -> probability, the most probable first; the end is ``END``.

    Source:
        Jelinek and Lafferty 1991, for any context-free grammar. Here a list of stacks is enough, because no
        rule leads back to its own nonterminal before a word.
    """
    mass: dict[str, float] = defaultdict(float)
    for stack, p in stacks.items():
        top = stack[0] if stack else END
        if top in grammar.rules:
            for word, starts in beginnings(grammar)[top].items():
                mass[word] += p * sum(starts.values())
        else:
            mass[top] += p
    total = sum(stacks.values())
    return {word: p / total for word, p in sorted(mass.items(), key=lambda item: (-item[1], item[0]))}
