"""Labels of English sentences, and the true probability of a hidden word."""

from collections import Counter

import pytest

from exformer.corpora import english
from exformer.corpora.english.lexicon import CLASSES

SAMPLE = english.labeled_sample(2_000, seed=5)
SILENT = {"the", *CLASSES["ADJECTIVE"]}


def numbers_of(word):
    """Return the numbers that a word's classes bear; none if a class has no number."""
    last = {name.split(".")[-1] for name, words in CLASSES.items() if word in words}
    return last & set(english.NUMBERS[1:])


def test_the_sentences_are_those_of_the_plain_sample():
    assert [each.sentence for each in SAMPLE] == english.sample(2_000, seed=5)


def test_each_word_has_a_tag_and_words_with_forms_have_their_own():
    for each in SAMPLE:
        words = each.sentence.split()
        assert len(words) == len(each.numbers)
        for word, number in zip(words, each.numbers, strict=True):
            if word not in SILENT:
                assert {number} == (numbers_of(word) or {"none"}), (word, each)


def test_the_and_adjectives_have_the_number_of_the_next_noun():
    nouns = {word for name, words in CLASSES.items() if name.startswith("NOUN") for word in words}
    seen = Counter()
    for each in SAMPLE:
        words = each.sentence.split()
        for place, word in enumerate(words):
            if word in SILENT:
                noun = next(at for at in range(place, len(words)) if words[at] in nouns)
                assert each.numbers[place] == each.numbers[noun]
                seen[each.numbers[place]] += 1
    assert set(seen) == {"singular", "plural"}


def test_the_kind_is_that_of_the_first_noun():
    kind_of = {
        word: name.split(".")[1]
        for name, words in CLASSES.items()
        if name.startswith("NOUN")
        for word in words
    }
    for each in SAMPLE:
        assert each.kind == next(kind_of[word] for word in each.sentence.split() if word in kind_of)
    assert {each.kind for each in SAMPLE} == set(english.KINDS)


def test_judged_sentences_are_judged_by_the_grammar():
    found = english.judged_sample(1_000, seed=3)
    assert all(english.is_grammatical(each.sentence) == each.right for each in found)
    assert 0.45 < sum(each.right for each in found) / len(found) < 0.55
    assert found == english.judged_sample(1_000, seed=3) != english.judged_sample(1_000, seed=4)


def test_a_sentence_is_told_as_it_was_drawn():
    for each in english.judged_sample(300, seed=3):
        assert english.is_grammatical(each.original)
        pairs = zip(each.original.split(), each.sentence.split(), strict=True)
        assert sum(a != b for a, b in pairs) == (not each.right)


def test_a_wrong_sentence_has_one_word_changed():
    for each in english.judged_sample(300, seed=3):
        if not each.right:
            words = each.sentence.split()
            mended = [
                at
                for at in range(len(words))
                if each.sentence != (whole := mend(words, at)) and english.is_grammatical(whole)
            ]
            assert len(mended) >= 1


def mend(words, at):
    """Give a verb at a place its other form, if there is one."""
    for name, forms in CLASSES.items():
        verb, _, number = name.rpartition(".")
        if verb in ("BE", "SLEEP", "SEE", "SAY") and words[at] in forms:
            other = f"{verb}.{'plural' if number == 'singular' else 'singular'}"
            return " ".join([*words[:at], CLASSES[other][forms.index(words[at])], *words[at + 1 :]])
    return " ".join(words)


@pytest.mark.parametrize("sample", [english.labeled_sample, english.judged_sample])
@pytest.mark.parametrize("n", [0, 1_000_001])
def test_refused_numbers(sample, n):
    with pytest.raises(ValueError, match=f"1 to 1,000,000, got {n}"):
        sample(n, seed=0)


@pytest.mark.parametrize(
    "sentence", ["the keys to the cabinet are heavy", "some dogs sleep because they are tired"]
)
def test_a_hidden_word_by_the_probabilities_of_whole_sentences(sentence):
    words = sentence.split()
    for at in range(len(words)):
        left, right = " ".join(words[:at]), " ".join(words[at + 1 :])
        p = {word: english.sentence_probability(f"{left} {word} {right}") for word in english.WORDS}
        total = sum(p.values())
        wanted = {word: each / total for word, each in p.items() if each}
        assert english.hidden_distribution(left, right) == pytest.approx(wanted, rel=1e-9)


def test_the_most_probable_word_comes_first():
    p = list(english.hidden_distribution("the small", "sleeps").values())
    assert p == sorted(p, reverse=True)
    assert sum(p) == pytest.approx(1)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ("the keys is", "heavy", "no one word makes a sentence"),
        ("the", "", "no one word makes a sentence"),
        ("the", "the", "no one word"),
        ("zebra", "sleeps", "'zebra' is not in the language"),
        ("the", "sleps", "'sleps' is not in the language"),
    ],
)
def test_refused_gaps(left, right, message):
    with pytest.raises(ValueError, match=message):
        english.hidden_distribution(left, right)


def test_ties_of_hidden_words_are_alphabetical():
    found = list(english.hidden_distribution("the", "sleeps").items())
    assert found == sorted(found, key=lambda item: (-item[1], item[0]))
    assert len({p for _, p in found}) < len(found)


def test_any_verb_of_a_sentence_may_be_the_wrong_one():
    verbs = {
        word for name, words in CLASSES.items() if name[:2] in ("BE", "SL", "SE", "SA") for word in words
    }
    places = Counter()
    for each in english.judged_sample(300, seed=3):
        pairs = [*zip(each.original.split(), each.sentence.split(), strict=True)]
        of_verbs = [a != b for a, b in pairs if a in verbs]
        if not each.right and len(of_verbs) == 2:
            places[of_verbs.index(True)] += 1
    assert min(places[0], places[1]) > 0.3 * places.total() > 5


@pytest.mark.parametrize("verb", ["BE", "SLEEP", "SEE", "SAY"])
def test_a_verb_of_each_class_may_be_the_wrong_one(verb):
    found = english.judged_sample(1_000, seed=3)
    pairs = [
        pair for each in found for pair in zip(each.original.split(), each.sentence.split(), strict=True)
    ]
    changed = {right for right, shown in pairs if right != shown}
    assert changed & {*CLASSES[f"{verb}.singular"]}
    assert changed & {*CLASSES[f"{verb}.plural"]}
