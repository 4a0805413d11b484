"""Grammars with probabilities against closed forms, and against brute force on grammars made by chance."""

from collections import defaultdict
from itertools import islice
from math import isclose, log
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from exformer.corpora.english.lengths import chance_within, derivations
from exformer.corpora.english.parsing import END, next_words, read
from exformer.corpora.english.pcfg import Grammar, Rule

Q = 0.3
#: a^k c b^k with probability (1 - q) q^k: no finite memory can read it.
NESTED = Grammar("S", {"S": ((Q, ("a", "S", "b")), (1 - Q, ("c",)))})
#: The same language of words, in which "x x" has two derivations.
TWICE = Grammar(
    "S", {"S": ((0.5, ("x", "A")), (0.5, ("x", "B"))), "A": ((1.0, ("x",)),), "B": ((1.0, ("x",)),)}
)


def test_entropy_and_length_of_a_nested_language() -> None:
    h = -Q * log(Q) - (1 - Q) * log(1 - Q)
    assert isclose(NESTED.entropy(), h / (1 - Q), rel_tol=1e-12)  # 1 / (1 - q) rules on average
    assert isclose(NESTED.expected_length(), (1 + Q) / (1 - Q), rel_tol=1e-12)


def test_the_start_may_have_the_last_rules() -> None:
    grammar = Grammar("S", {"A": ((0.5, ("x",)), (0.5, ("y",))), "S": ((1.0, ("A", "A", "x")),)})
    assert isclose(grammar.entropy(), 2 * log(2), rel_tol=1e-12)
    assert isclose(grammar.expected_length(), 3, rel_tol=1e-12)


def test_tenths_sum_to_one_as_rounded() -> None:
    tenths = tuple((0.1, (word,)) for word in "abcdefghij")  # their sum is 0.9999999999999999
    assert isclose(Grammar("S", {"S": tenths}).entropy(), log(10), rel_tol=1e-12)


def mass_of(grammar: Grammar, length: int) -> float:
    """Return the probability that a sentence has so many words."""
    shorter, up_to = (chance_within(grammar, (grammar.start,), n) for n in (length - 1, length))
    return up_to - shorter


def test_mass_of_a_nested_language() -> None:
    wanted = [0.0 if n % 2 == 0 else (1 - Q) * Q ** (n // 2) for n in range(12)]
    assert [mass_of(NESTED, n) for n in range(12)] == pytest.approx(wanted, rel=1e-12, abs=1e-15)
    assert list(derivations(NESTED, 5)) == [(("a", "a", "c", "b", "b"), pytest.approx((1 - Q) * Q**2))]
    assert list(derivations(NESTED, 4)) == []


def test_reading_a_nested_language() -> None:
    stacks, place = read(NESTED, "aac")
    assert (stacks, place) == ({("b", "b"): pytest.approx((1 - Q) * Q**2)}, None)
    assert next_words(NESTED, stacks) == {"b": 1.0}
    assert next_words(NESTED, read(NESTED, "aacbb")[0]) == {END: 1.0}
    assert next_words(NESTED, read(NESTED, "aa")[0]) == pytest.approx({"c": 1 - Q, "a": Q})
    assert read(NESTED, "aacba") == ({}, 4)
    assert read(NESTED, "cb") == ({}, 1)


def test_two_derivations_are_two() -> None:
    assert [words for words, _ in derivations(TWICE, 2)] == [("x", "x")] * 2
    assert read(TWICE, "xx")[0] == {(): 1.0}


def test_sampling_draws_by_probability() -> None:
    rng, n = Random(0), 20_000
    ends = sum(NESTED.expand(("S",), rng=rng) == ["c"] for _ in range(n))
    assert abs(ends / n - (1 - Q)) < 4 * (Q * (1 - Q) / n) ** 0.5
    assert NESTED.expand(("word", "other"), rng=rng) == ["word", "other"]


@st.composite
def rules(draw) -> dict[str, tuple[Rule, ...]]:
    """Make rules for three nonterminals; a rule begins with a word or with a later nonterminal."""
    names, made = "SAB", {}
    for rank, name in enumerate(names):
        first = st.sampled_from(["x", "y", *names[rank + 1 :]])
        rest = st.lists(st.sampled_from(["x", "y", *names]), max_size=2)
        rights = draw(st.lists(st.tuples(first, rest), min_size=1, max_size=3))
        weights = [draw(st.integers(1, 5)) for _ in rights]
        made[name] = tuple((w / sum(weights), (a, *b)) for w, (a, b) in zip(weights, rights, strict=True))
    return made


def grammar_of(rules: dict[str, tuple[Rule, ...]]) -> Grammar:
    """Leave out rules whose sentences do not end."""
    try:
        return Grammar("S", rules)
    except ValueError as error:
        assume("do not end" not in str(error))
        raise


@settings(max_examples=40, deadline=None)
@given(rules())
def test_any_grammar_against_brute_force(rules) -> None:
    grammar = grammar_of(rules)
    longest = 5
    listed: dict[tuple[str, ...], float] = defaultdict(float)
    for length in range(longest + 1):
        found = list(islice(derivations(grammar, length), 20_000))
        assume(len(found) < 20_000)
        assert isclose(sum(p for _, p in found), mass_of(grammar, length), abs_tol=1e-12)
        for words, p in found:
            listed[words] += p
    missing = 1 - sum(listed.values())
    for words, p in islice(listed.items(), 40):
        assert isclose(read(grammar, words)[0][()], p, rel_tol=1e-9)
    prefix_mass: dict[tuple[str, ...], float] = defaultdict(float)
    for words, p in listed.items():
        for end in range(len(words) + 1):
            prefix_mass[words[:end]] += p
    for prefix, mass in islice(prefix_mass.items(), 40):  # what is not listed may or may not begin with it
        exact = sum(read(grammar, prefix)[0].values())
        assert mass - 1e-9 <= exact <= mass + missing + 1e-9
        assert isclose(sum(next_words(grammar, read(grammar, prefix)[0]).values()), 1.0)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"A": ((1.0, ("x",)),)}, "the start symbol 'S' has no rules"),
        ({"S": ((0.5, ("x",)), (0.4, ("y",)))}, "probabilities of S must be above 0 and sum to 1, got 0.9"),
        ({"S": ((1.5, ("x",)), (-0.5, ("y",)))}, "must be above 0"),
        ({"S": ((1.0, ("x",)), (0.0, ("y",)))}, "must be above 0"),
        ({"S": ((0.5, ("x",)), (0.499999, ("y",)))}, r"sum to 1, got 0\.999999"),
        ({"S": ((0.5, ("x",)), (0.5, ()))}, "a rule of S is empty"),
        ({"S": ((0.5, ("x", "A")), (0.5, ("y",))), "A": ((1.0, ()),)}, "a rule of A is empty"),
        ({"S": ((0.5, ("S", "x")), (0.5, ("y",)))}, "S -> S: a rule may not begin with itself"),
        ({"S": ((1.0, ("A",)),), "A": ((0.5, ("S", "x")), (0.5, ("y",)))}, "S -> A -> S"),
        (
            {"S": ((1.0, ("A",)),), "A": ((1.0, ("B",)),), "B": ((0.5, ("S", "x")), (0.5, ("y",)))},
            "S -> A -> B -> S: a rule may not begin with itself",
        ),
        ({"S": ((0.5, ("x", "S", "S")), (0.5, ("x",)))}, "becomes 1.000 on average"),
    ],
)
def test_what_is_no_grammar_is_refused(rules, message) -> None:
    with pytest.raises(ValueError, match=message):
        Grammar("S", rules)
