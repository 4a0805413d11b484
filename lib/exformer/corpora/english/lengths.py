"""The lengths of sentences: all sentences of a length, and its probability by dynamic programming."""

from collections.abc import Iterator
from functools import cache, reduce

import numpy as np

from exformer.corpora.english.pcfg import Grammar


@cache
def chance_within(grammar: Grammar, still_open: tuple[str, ...], room: int) -> float:
    r"""Compute the probability that what is still to come takes at most ``room`` words.

    .. math::
        \sum_{n_1 + \dots + n_k \le room} P_{\beta_1}(n_1) \cdots P_{\beta_k}(n_k), \qquad
        P_A(n) = \sum_{A \to \beta} p(A \to \beta)
                 \sum_{n_1 + \dots + n_k = n} P_{\beta_1}(n_1) \cdots P_{\beta_k}(n_k)

    A word has length 1. The inner sum is a convolution.

    Args:
        still_open: The words and nonterminals :math:`\beta` that are still to come.
        room: How many words there may be.
    """
    if room < len(still_open):  # each needs a word
        return 0.0
    return float(_of_parts(still_open, _masses(grammar, room)).sum()) if still_open else 1.0


@cache
def _masses(grammar: Grammar, longest: int) -> dict[str, np.ndarray]:
    """Compute P_A(0), P_A(1), … of each nonterminal A."""
    mass = {name: np.zeros(longest + 1) for name in grammar.rules}
    # The equations are applied until nothing changes: no rule is empty, so lengths follow from smaller ones.
    while True:
        last = mass
        mass = {
            name: sum(p * _of_parts(right, last) for p, right in rules)
            for name, rules in grammar.rules.items()
        }
        if all((mass[name] == last[name]).all() for name in mass):
            return mass


def _of_parts(symbols: tuple[str, ...], mass: dict[str, np.ndarray]) -> np.ndarray:
    size = len(next(iter(mass.values())))
    word = np.eye(1, size, k=1)[0]
    parts = [mass.get(symbol, word) for symbol in symbols]
    return reduce(lambda left, right: np.convolve(left, right)[:size], parts)


def derivations(grammar: Grammar, length: int) -> Iterator[tuple[tuple[str, ...], float]]:
    """List each derivation of a sentence of a length: its words, its probability.

    A sentence comes once for each of its derivations: once, if the grammar is unambiguous.
    """
    waiting = [((), (grammar.start,), 1.0)]  # words so far, symbols still open, probability
    while waiting:
        words, still_open, p = waiting.pop()
        if not still_open:
            if len(words) == length:
                yield words, p
        elif still_open[0] not in grammar.rules:
            waiting.append(((*words, still_open[0]), still_open[1:], p))
        else:
            room = length - len(words) - len(still_open) + 1  # each other open symbol needs a word
            for chance, right in grammar.rules[still_open[0]]:
                if len(right) <= room:
                    waiting.append((words, right + still_open[1:], p * chance))
