"""The rules of the English language: agreement at any distance, attractors, relative clauses, coreference."""

import itertools
import re

from exformer.corpora.english.lexicon import CLASSES
from exformer.corpora.english.pcfg import Grammar, Rule

#: The values of a feature in braces. A feature on the left of a rule makes one rule for each value. A feature
#: only on the right is sampled uniformly, and has one value within the rule: that is agreement.
FEATURES = {
    "kind": ("man", "woman", "animal", "way", "thing"),
    "living": ("man", "woman", "animal"),
    "still": ("way", "thing"),
    "number": ("singular", "plural"),
    "actor": ("man", "woman", "animal"),  # the kind of a second noun phrase,
    "count": ("singular", "plural"),  # and its number
}

#: Each nonterminal, then probability and parts of its rules. A noun has at most one modifier after it: each
#: modifier belongs to the noun before it. "because" comes only after a main clause: it explains that one.
RULES = """
    S
      0.60 NP.{kind}.{number} VP.{kind}.{number}
      0.25 NP.{kind}.{number} VP.{kind}.{number} because PRONOUN.{kind}.{number} VP.{kind}.{number}
      0.15 NP.{living}.{number} SAY.{number} that CLAUSE
    CLAUSE
      0.85 NP.{kind}.{number} VP.{kind}.{number}
      0.15 NP.{living}.{number} SAY.{number} that CLAUSE
    ANY
      1.00 NP.{kind}.{number}
    NP.{kind}.{number}
      0.66 DETERMINER.{number} NOMINAL.{kind}.{number}
      0.24 DETERMINER.{number} NOMINAL.{kind}.{number} PLACE.{kind}
      0.10 DETERMINER.{number} NOMINAL.{kind}.{number} RELATIVE.{kind}.{number}
    NOMINAL.{kind}.{number}
      0.70 NOUN.{kind}.{number}
      0.30 ADJECTIVE NOUN.{kind}.{number}
    PLACE.{living}
      1.00 PREPOSITION ANY
    PLACE.thing
      1.00 PREPOSITION ANY
    PLACE.way
      0.50 to NP.thing.{number}
      0.50 PREPOSITION ANY
    RELATIVE.{kind}.{number}
      0.50 that VP.{kind}.{number}
      0.50 that NP.{actor}.{count} SEE.{count}
    VP.{living}.{number}
      0.20 SLEEP.{number}
      0.10 SLEEP.{number} ADVERB
      0.30 SEE.{number} ANY
      0.10 SEE.{number} REFLEXIVE.{living}.{number}
      0.22 BE.{number} STATE.living
      0.08 BE.{number} PREPOSITION ANY
    VP.{still}.{number}
      0.70 BE.{number} STATE.still
      0.30 BE.{number} PREPOSITION ANY
    STATE.living
      0.55 QUALITY.living
      0.25 DEGREE QUALITY.living
      0.20 not QUALITY.living
    STATE.still
      0.55 QUALITY.still
      0.25 DEGREE QUALITY.still
      0.20 not QUALITY.still
"""


def read_rules(text: str, *, features: dict[str, tuple[str, ...]]) -> dict[str, tuple[Rule, ...]]:
    r"""Read rules written as in ``RULES``, each feature replaced by its values.

    Args:
        text: A nonterminal on a line, below it its rules: probability and parts.
        features: The values of each feature.

    >>> read_rules("S\n 1.0 the NOUN.{number}", features={"number": ("one", "many")})["S"]
    ((0.5, ('the', 'NOUN.one')), (0.5, ('the', 'NOUN.many')))
    """
    rules: dict[str, tuple[Rule, ...]] = {}
    left = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if len(line.split()) == 1:
            left = line
            continue
        probability, right = line.split(maxsplit=1)
        for values in _values(left, features):
            free = [values | more for more in _values(right.format_map(_Kept(values)), features)]
            made = tuple(
                (float(probability) / len(free), tuple(right.format(**each).split())) for each in free
            )
            name = left.format(**values)
            rules[name] = rules.get(name, ()) + made
    return rules


def by_rank(classes: dict[str, tuple[str, ...]]) -> dict[str, tuple[Rule, ...]]:
    """Make rules for words: the word of rank r has a probability in proportion to 1/r (Zipf 1935).

    >>> by_rank({"VERB": ("sleeps", "runs")})
    {'VERB': ((0.6666666666666666, ('sleeps',)), (0.3333333333333333, ('runs',)))}
    """
    total = {name: sum(1 / rank for rank in range(1, len(words) + 1)) for name, words in classes.items()}
    return {
        name: tuple((1 / rank / total[name], (word,)) for rank, word in enumerate(words, start=1))
        for name, words in classes.items()
    }


class _Kept(dict):
    """Leave a feature without a value as it is."""

    def __missing__(self, feature: str) -> str:
        return f"{{{feature}}}"


def _values(text: str, features: dict[str, tuple[str, ...]]) -> list[dict[str, str]]:
    """List all assignments of values to the features of a text."""
    names = sorted(set(re.findall(r"{(\w+)}", text)))
    return [
        dict(zip(names, values, strict=True))
        for values in itertools.product(*(features[name] for name in names))
    ]


#: The grammar of the language.
GRAMMAR = Grammar("S", read_rules(RULES, features=FEATURES) | by_rank(CLASSES))
