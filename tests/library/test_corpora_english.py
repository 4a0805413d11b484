"""The English language: exact mass, one derivation a sentence, entropy by formula and by chance, items."""

from collections import Counter
from math import isclose, log, prod
from random import Random
from statistics import fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exformer.corpora import english
from exformer.corpora.english.lengths import chance_within, derivations
from exformer.corpora.english.lexicon import CLASSES
from exformer.corpora.english.pcfg import Grammar
from exformer.corpora.english.rules import FEATURES, GRAMMAR, RULES, by_rank, read_rules
from exformer.tokenizers.vocabulary import EOS, SPECIALS

NOUNS = {word: name for name, words in CLASSES.items() if name.startswith("NOUN.") for word in words}
KIND, NUMBER = ({word: name.split(".")[place] for word, name in NOUNS.items()} for place in (1, 2))
VERBS = {
    word: name.split(".")[-1]
    for name, words in CLASSES.items()
    if name.split(".")[0] in ("BE", "SLEEP", "SEE", "SAY")
    for word in words
}


def draw_with_probability(rng: Random) -> tuple[str, float]:
    """Draw a derivation, and multiply the probabilities of its rules: no parser is asked."""
    words, stack, p = [], ["S"], 1.0
    while stack:
        symbol = stack.pop()
        if symbol not in GRAMMAR.rules:
            words.append(symbol)
            continue
        chance, right = rng.choices(GRAMMAR.rules[symbol], [rule[0] for rule in GRAMMAR.rules[symbol]])[0]
        p *= chance
        stack.extend(reversed(right))
    return " ".join(words), p


DRAWN = [draw_with_probability(Random(seed)) for seed in range(3000)]


# --- words ---


def test_the_words() -> None:
    assert len(english.WORDS) == 113
    assert not set(english.WORDS) & set(SPECIALS)
    assert english.END == EOS
    assert all(word.isalpha() and word.islower() for word in english.WORDS)
    used = {word for rules in GRAMMAR.rules.values() for _, right in rules for word in right} - set(
        GRAMMAR.rules
    )
    assert used == set(english.WORDS)
    assert not [symbol for symbol in used if "." in symbol or symbol.isupper()]  # a class without words


def test_a_stands_before_consonants_only() -> None:
    after_a = [CLASSES["ADJECTIVE"], *(words for name, words in CLASSES.items() if name.startswith("NOUN"))]
    assert not [word for words in after_a for word in words if word[0] in "aeiou"]


def test_a_word_has_one_class_but_for_kind_and_number() -> None:
    classes = {}
    for name, words in CLASSES.items():
        for word in words:
            classes.setdefault(word, set()).add(name.split(".")[0])
    assert {word: found for word, found in classes.items() if len(found) > 1} == {}


def test_singular_and_plural_pair_up() -> None:
    for name, words in CLASSES.items():
        if name.endswith(".singular") and name.split(".")[0] in ("NOUN", "BE", "SLEEP", "SEE", "SAY"):
            plurals = CLASSES[name.replace("singular", "plural")]
            assert len(plurals) == len(words)
            for one, many in zip(words, plurals, strict=True):
                singular, plural = (many, one) if one in VERBS else (one, many)  # the verb's -s is singular
                regular = {singular + "s", singular + "es"}
                irregular = {("man", "men"), ("woman", "women"), ("are", "is"), ("were", "was")}
                assert plural in regular or (singular, plural) in irregular


def test_rules_are_read_in_their_order() -> None:
    text = "S\n 0.75 the N.{n}\n 0.25 N.one\nN.{n}\n 1.0 {n}"
    assert read_rules(text, features={"n": ("one", "many")}) == {
        "S": ((0.375, ("the", "N.one")), (0.375, ("the", "N.many")), (0.25, ("N.one",))),
        "N.one": ((1.0, ("one",)),),
        "N.many": ((1.0, ("many",)),),
    }


# --- exact numbers ---


@pytest.mark.parametrize("length", range(6))
def test_the_sentences_of_a_length_have_the_mass_of_the_length(length) -> None:
    listed = list(english.sentences(length))
    shorter, up_to = (chance_within(GRAMMAR, (GRAMMAR.start,), n) for n in (length - 1, length))
    assert isclose(sum(p for _, p in listed), up_to - shorter, abs_tol=1e-12)
    assert len({sentence for sentence, _ in listed}) == len(listed)
    assert all(len(sentence.split()) == length for sentence, _ in listed)


def test_listed_probabilities_equal_the_parsers() -> None:
    for sentence, p in [*english.sentences(3), *english.sentences(4)]:
        assert isclose(english.sentence_probability(sentence), p, rel_tol=1e-12)


def test_all_mass_is_on_finite_sentences() -> None:
    longer = [1 - chance_within(GRAMMAR, (GRAMMAR.start,), n) for n in range(61)]  # than n words
    assert 0 < longer[-1] < 1e-5
    assert isclose(sum(longer), english.expected_length(), abs_tol=1e-3)


def test_one_probability_by_hand() -> None:
    # S -> NP VP, one of 5 kinds, 2 numbers; no modifier; "the", first of 4; no adjective; "man", first of 4;
    # SLEEP without an adverb; "sleeps", first of 5
    four, five = 1 + 1 / 2 + 1 / 3 + 1 / 4, 1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5
    wanted = 0.60 / 10 * 0.66 / four * 0.70 / four * 0.20 / five
    assert isclose(english.sentence_probability("the man sleeps"), wanted, rel_tol=1e-12)


def one_word_a_class() -> Grammar:
    return Grammar(
        "S", read_rules(RULES, features=FEATURES) | by_rank({k: v[:1] for k, v in CLASSES.items()})
    )


def test_each_sentence_has_one_derivation() -> None:
    # Words of a class stand in the same places, so one of each is enough to find two derivations.
    for length in range(10):
        found = Counter(words for words, _ in derivations(one_word_a_class(), length))
        assert not [words for words, times in found.items() if times > 1]


def test_long_sentences_have_one_derivation() -> None:
    assert max(len(sentence.split()) for sentence, _ in DRAWN) > 30
    for sentence, p in DRAWN:  # the parser adds up all derivations
        assert isclose(english.sentence_probability(sentence), p, rel_tol=1e-9)


def test_entropy_by_formula_is_entropy_by_chance() -> None:
    nats = [-log(p) for _, p in DRAWN]
    error = stdev(nats) / len(nats) ** 0.5
    assert abs(fmean(nats) - english.entropy()) < 4 * error < 0.1 * english.entropy()
    lengths = [len(sentence.split()) for sentence, _ in DRAWN]
    assert abs(fmean(lengths) - english.expected_length()) < 4 * stdev(lengths) / len(lengths) ** 0.5


def test_entropy_per_token() -> None:
    assert isclose(english.entropy_per_token(), english.entropy() / (1 + english.expected_length()))
    sentences = [sentence for sentence, _ in DRAWN]
    tokens = sum(len(sentence.split()) + 1 for sentence in sentences)
    wanted = -sum(log(p) for _, p in DRAWN) / tokens
    assert isclose(english.nats_per_token(sentences), wanted, rel_tol=1e-9)
    assert abs(wanted - english.entropy_per_token()) < 0.02
    assert english.nats_per_token(["the man sleeps", "the man sleep"]) == float("inf")


# --- the next word ---


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(DRAWN))
def test_the_next_words_multiply_to_the_sentence(drawn) -> None:
    sentence, p = drawn
    words = sentence.split()
    steps = []
    for place, word in enumerate([*words, english.END]):
        distribution = english.prefix_distribution(" ".join(words[:place]))
        assert isclose(sum(distribution.values()), 1.0, rel_tol=1e-12)
        assert list(distribution.values()) == sorted(distribution.values(), reverse=True)
        steps.append(distribution[word])
    assert isclose(prod(steps), p, rel_tol=1e-9)


@pytest.mark.parametrize("prefix", ["", "the small", "the man", "the man sleeps", "the man sees the dog"])
def test_the_next_word_where_long_sentences_are_left_out(prefix) -> None:
    words, mass = prefix.split(), Counter()
    for length in range(6):  # of all sentences of up to 5 words
        for sentence, p in english.sentences(length):
            first = sentence.split()
            if first[: len(words)] == words:
                mass[[*first, english.END][len(words)]] += p
    found = english.prefix_distribution(prefix, longest=5)
    assert found == pytest.approx({word: p / mass.total() for word, p in mass.items()}, abs=1e-12)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_first_words_are_drawn_by_their_probability() -> None:
    n = 20_000
    found = Counter(sentence.split()[0] for sentence in english.sample(n, seed=0))
    for word, p in english.prefix_distribution("").items():
        assert abs(found[word] / n - p) < 4 * (p * (1 - p) / n) ** 0.5
    assert sum(found.values()) == n


def test_the_verb_after_attractors() -> None:
    after = english.prefix_distribution("the keys to the cabinet near the doors")
    assert {"are", "were"} <= set(after)
    assert not {"is", "was"} & set(after)
    assert "is" in english.prefix_distribution("the key to the cabinets near the doors")


@pytest.mark.parametrize(("prefix", "longest"), [("", None), ("the dog", None), ("the dog", 4)])
def test_ties_of_words_are_alphabetical(prefix, longest) -> None:
    found = list(english.prefix_distribution(prefix, longest=longest).items())
    assert found == sorted(found, key=lambda item: (-item[1], item[0]))
    assert len({p for _, p in found}) < len(found)


# --- grammaticality ---


@pytest.mark.parametrize(
    "sentence",
    [
        "the keys to the cabinet near the doors are heavy",
        "the key to the cabinets near the doors is heavy",
        "the dog that the boys near the house see sleeps",
        "the dogs that the girl that the kings like follows run again",
        "the girl near the king likes herself",
        "the girl near the kings sleeps because she is very tired",
        "the girls near the king sleep because they are tired",
        "the boys say that the queen thinks that this key is not broken",
    ],
)
def test_grammatical(sentence) -> None:
    assert english.is_grammatical(sentence)
    assert english.first_error(sentence) is None
    assert english.sentence_probability(sentence) > 0


@pytest.mark.parametrize(
    ("sentence", "place"),
    [
        ("the keys to the cabinet is heavy", 5),
        ("the dog that the boys near the house sees sleeps", 8),
        ("the dog that the boys see sleep", 6),
        ("the girl near the king likes himself", 6),
        ("the girl near the kings likes themselves", 6),
        ("the girls near the king like herself", 6),
        ("the girl near the king sleeps because he is tired", 7),
        ("the key sleeps", 2),
        ("a keys are heavy", 1),
        ("the boy sees", 3),
        ("the keys to", 3),
        ("the man sleeps because", 4),
        ("man sleeps", 0),
        ("the man sleeps sleeps", 3),
        ("", 0),
    ],
)
def test_ungrammatical(sentence, place) -> None:
    assert not english.is_grammatical(sentence)
    assert english.first_error(sentence) == place
    assert english.sentence_probability(sentence) == 0.0


def test_refusals() -> None:
    with pytest.raises(ValueError, match="'gril' is not in the language: did you mean girl"):
        english.sentence_probability("the gril sleeps")
    with pytest.raises(ValueError, match="'The' is not in the language: did you mean the"):
        english.is_grammatical("The man sleeps")
    with pytest.raises(ValueError, match="WORDS lists those known"):
        english.prefix_distribution("qqq")
    with pytest.raises(ValueError, match="no sentence begins with 'the man sleep': after 'the man' may come"):
        english.prefix_distribution("the man sleep")
    with pytest.raises(ValueError, match=r"after 'the dog near' may come \w+(, \w+){5}, …$"):
        english.prefix_distribution("the dog near near")  # seven may
    with pytest.raises(ValueError, match="begins so has 1 more words or fewer: allow more"):
        english.prefix_distribution("the man near", longest=4)
    with pytest.raises(ValueError, match="begins so has 0 more words or fewer: allow more"):
        english.prefix_distribution("", longest=0)
    with pytest.raises(ValueError, match="no sentences"):
        english.nats_per_token([])
    with pytest.raises(ValueError, match="n must lie from 1 to 1,000,000, got 0"):
        english.sample(0, seed=0)
    with pytest.raises(ValueError, match="n_test must lie from 1"):
        english.split(1, n_test=0, seed=0)
    with pytest.raises(ValueError, match="n_train must lie from 1"):
        english.split(0, n_test=1, seed=0)
    with pytest.raises(ValueError, match="attractors must lie from 0 to 20, got -1"):
        english.agreement_items(1, attractors=-1, seed=0)
    for attractors in (-1, 21):
        for items in (english.agreement_items, english.coreference_items):
            with pytest.raises(ValueError, match=f"attractors must lie from 0 to 20, got {attractors}"):
                items(1, attractors=attractors, seed=0)
    with pytest.raises(ValueError, match="expected 1300 different items, got 1162 in 26000 samples"):
        english.agreement_items(1300, attractors=0, seed=0)


# --- samples ---


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**9))
def test_split(seed) -> None:
    split = english.split(300, n_test=200, seed=seed)
    assert (len(split.train), len(split.test)) == (300, 200)
    assert not set(split.train) & set(split.test)
    assert all(map(english.is_grammatical, split.train + split.test))
    assert split == english.split(300, n_test=200, seed=seed)
    assert split.train == english.sample(300, seed=seed)
    assert split.train != english.sample(300, seed=seed + 1)


def test_the_language_cannot_be_memorized() -> None:
    split = english.split(20_000, n_test=2_000, seed=0)
    assert len(set(split.train)) > 0.9 * 20_000
    floor = english.nats_per_token(split.test)
    assert english.entropy_per_token() < floor < 1.03 * english.entropy_per_token()
    assert set(" ".join(split.train).split()) == set(english.WORDS)


@pytest.mark.parametrize("attractors", range(5))
def test_agreement_items(attractors) -> None:
    items = english.agreement_items(101, attractors=attractors, seed=1)
    assert len({item.prefix for item in items}) == 101
    subjects = Counter()
    for item in items:
        subject, *others = (NUMBER[word] for word in item.prefix.split() if word in NUMBER)
        assert len(others) == attractors
        assert all(other != subject for other in others)
        assert VERBS[item.right] == subject != VERBS[item.wrong]
        after = english.prefix_distribution(item.prefix)
        assert after[item.right] > 0
        assert item.wrong not in after
        subjects[subject] += 1
    assert max(subjects.values()) == 51
    assert len({item.right for item in items}) > 8


@pytest.mark.parametrize("attractors", range(3))
def test_coreference_items(attractors) -> None:
    items = english.coreference_items(60, attractors=attractors, seed=1)
    assert Counter(item.right for item in items) == {"he": 20, "she": 20, "it": 20}
    for item in items:
        after = english.prefix_distribution(item.prefix)
        assert item.right in after
        assert item.wrong not in after
        assert sum(word in NUMBER for word in item.prefix.split()) == attractors + 1
        if attractors:
            nearest = [KIND[word] for word in item.prefix.split() if word in KIND][-1]
            assert item.wrong == CLASSES[f"PRONOUN.{nearest}.singular"][0]
