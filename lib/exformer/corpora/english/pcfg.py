"""Probabilistic grammars: the entropy and the mean length of their sentences, and samples of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import isclose, log
from random import Random

import numpy as np

#: A probability, and the symbols that a nonterminal becomes with it.
Rule = tuple[float, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Grammar:
    """A probabilistic context-free grammar: symbols with rules are nonterminals, the others are words.

    Args:
        start: The nonterminal that becomes a sentence.
        rules: The rules of each nonterminal; their probabilities sum to 1, and none is empty.

    Raises:
        ValueError: If probabilities do not sum to 1, a rule is empty, the first symbol of a rule leads back
            to the rule's own nonterminal, or sentences do not end.

    >>> grammar = Grammar("S", {"S": ((0.75, ("word",)), (0.25, ("word", "S")))})
    >>> round(grammar.expected_length(), 6), round(grammar.entropy(), 6)
    (1.333333, 0.74978)
    """

    start: str
    rules: Mapping[str, tuple[Rule, ...]]

    def __post_init__(self) -> None:
        """Check that the rules make a grammar of finite sentences."""
        if self.start not in self.rules:
            raise ValueError(f"the start symbol {self.start!r} has no rules")
        for name, rules in self.rules.items():
            total = sum(p for p, _ in rules)
            if not isclose(total, 1.0, abs_tol=1e-9) or any(p <= 0 for p, _ in rules):
                raise ValueError(f"the probabilities of {name} must be above 0 and sum to 1, got {total:g}")
            if not all(symbols for _, symbols in rules):
                raise ValueError(
                    f"a rule of {name} is empty: write one rule with the part and one without it"
                )
        for name in self.rules:
            self._refuse_left_recursion(name, name, ())
        radius = max(abs(np.linalg.eigvals(self._expected_symbols)))
        if radius >= 1:
            raise ValueError(
                f"sentences do not end: one nonterminal becomes {radius:.3f} on average in the long run, and "
                "it must be below 1; give the rules that end more probability"
            )

    def _refuse_left_recursion(self, name: str, first: str, path: tuple[str, ...]) -> None:
        for _, symbols in self.rules.get(first, ()):
            if symbols[0] == name:
                raise ValueError(f"{' -> '.join((*path, first, name))}: a rule may not begin with itself")
            if symbols[0] not in path:
                self._refuse_left_recursion(name, symbols[0], (*path, first))

    @cached_property
    def _expected_symbols(self) -> np.ndarray:
        """Return the mean number of each nonterminal (column) in a rule of each nonterminal (row)."""
        place = {name: i for i, name in enumerate(self.rules)}
        matrix = np.zeros((len(place), len(place)))
        for name, rules in self.rules.items():
            for p, symbols in rules:
                for symbol in symbols:
                    if symbol in place:
                        matrix[place[name], place[symbol]] += p
        return matrix

    def _expected_sum(self, of_rule: Callable[[float, tuple[str, ...]], float]) -> float:
        r"""Return the mean over sentences of a number summed over their rules: solve x = r + M x."""
        r = [sum(p * of_rule(p, symbols) for p, symbols in rules) for rules in self.rules.values()]
        x = np.linalg.solve(np.eye(len(r)) - self._expected_symbols, r)
        return float(x[list(self.rules).index(self.start)])

    def entropy(self) -> float:
        r"""Compute the entropy of a derivation, in nats; of a sentence too, if the grammar is unambiguous.

        .. math:: H_A = \sum_{A \to \beta} p(A \to \beta)
                  \Big( -\log p(A \to \beta) + \sum_{B \in \beta} H_B \Big)

        One equation per nonterminal, linear in the :math:`H`: they are solved together.

        Source:
            Grenander 1967; Chi 1999, section 3.
        """
        return self._expected_sum(lambda p, symbols: -log(p))

    def expected_length(self) -> float:
        """Compute the mean number of words of a sentence, by the same equations as the entropy."""
        return self._expected_sum(lambda p, symbols: sum(symbol not in self.rules for symbol in symbols))

    @cached_property
    def _choices(self) -> dict[str, tuple[list[tuple[str, ...]], list[float]]]:
        return {
            name: ([symbols for _, symbols in rules], list(accumulate(p for p, _ in rules)))
            for name, rules in self.rules.items()
        }

    def sample_rule(self, symbol: str, *, rng: Random) -> tuple[str, ...]:
        """Sample one rule of a nonterminal by its probability.

        Returns:
            What the nonterminal becomes.
        """
        choices, cumulative = self._choices[symbol]
        return rng.choices(choices, cum_weights=cumulative)[0]

    def expand(self, symbols: tuple[str, ...], *, rng: Random) -> list[str]:
        """Replace each nonterminal by a rule sampled by its probability, until only words are left.

        Args:
            symbols: What to begin with, say ``(start,)``.
        """
        words, stack = [], list(reversed(symbols))
        while stack:
            symbol = stack.pop()
            if symbol in self._choices:
                stack.extend(reversed(self.sample_rule(symbol, rng=rng)))
            else:
                words.append(symbol)
        return words
