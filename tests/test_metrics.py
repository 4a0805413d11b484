"""Metrics: cases by hand, sacrebleu itself, and what is refused."""

import math

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from exformer.evaluation.metrics import corpus_bleu, exact_match, perplexity, rouge, token_accuracy

sentences = st.lists(st.text(alphabet="ab ", max_size=9), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("predictions", "references", "exact", "tokens"),
    [
        (["il cane"], ["il cane"], 1.0, 1.0),
        (["il cane", "la volpe", "l' oca"], ["il cane", "la mucca", "l' oca"], 2 / 3, 5 / 6),
        (["il cane stanca"], ["il cane stanco"], 0.0, 2 / 3),
        (["il"], ["il cane stanco"], 0.0, 1 / 3),
        (["il cane stanco dormì male"], ["il cane"], 0.0, 2 / 5),
        (["cane stanco"], ["il cane stanco"], 0.0, 0.0),  # one word left out: all later ones are out of place
        ([""], ["il cane"], 0.0, 0.0),
    ],
)
def test_exact_match_and_token_accuracy_by_hand(predictions, references, exact, tokens):
    assert exact_match(predictions, references) == pytest.approx(exact)
    assert token_accuracy(predictions, references) == pytest.approx(tokens)


@given(sentences.filter(lambda some: any(sentence.split() for sentence in some)))
def test_right_predictions_have_the_best_score(some):
    assert exact_match(some, some) == 1.0
    assert token_accuracy(some, some) == 1.0


@given(st.data())
def test_token_accuracy_is_symmetric_and_at_least_exact_match_of_equal_lengths(data):
    pairs = data.draw(
        st.lists(st.tuples(*[st.sampled_from(["a b", "a c", "b c"])] * 2), min_size=1, max_size=7)
    )
    ours, right = map(list, zip(*pairs, strict=True))
    assert token_accuracy(ours, right) == token_accuracy(right, ours) >= exact_match(ours, right)


def test_corpus_bleu_by_hand():
    # 1- to 4-grams that match: 4 of 5, 3 of 4, 2 of 3, 1 of 2; same length, so no penalty
    bleu = 100 * math.exp(sum(map(math.log, (4 / 5, 3 / 4, 2 / 3, 1 / 2))) / 4)
    assert corpus_bleu(["il cane stanco dormì male"], ["il cane stanco dormì bene"]) == pytest.approx(bleu)
    # all that is there is right, but 4 words of 5: the penalty is exp(1 - 5/4)
    penalty = 100 * math.exp(1 - 5 / 4)
    assert corpus_bleu(["il cane stanco dormì"], ["il cane stanco dormì bene"]) == pytest.approx(penalty)


@pytest.mark.parametrize("tokenize", ["13a", "intl", "char", "none"])
def test_corpus_bleu_is_that_of_sacrebleu(tokenize):
    ours, right = (
        ["the dog (tired) slept well.", "a cat ran home"],
        ["the dog, tired, slept well.", "a cat ran"],
    )
    score = sacrebleu.BLEU(tokenize=tokenize).corpus_score(ours, [right]).score
    assert 0 < corpus_bleu(ours, right, tokenize=tokenize) == pytest.approx(score)


def test_corpus_bleu_minds_case_as_its_signature_says():
    assert corpus_bleu(["The Tired Dog Slept Well"], ["the tired dog slept well"]) < 20


def test_corpus_bleu_of_right_predictions_is_exactly_100():
    assert corpus_bleu(["l' oca bianca dormì"], ["l' oca bianca dormì"], tokenize="none") == 100.0


def test_corpus_bleu_does_not_warn_of_words_that_are_cut_on_purpose(capfd, caplog):
    corpus_bleu(["il cane dormì ."] * 200, ["il cane dormì ."] * 200, tokenize="none")
    assert capfd.readouterr().err == caplog.text == ""


@given(st.integers(2, 1000))
def test_perplexity_of_a_uniform_choice_is_the_number_of_choices(n):
    assert perplexity(math.log(n)) == pytest.approx(n)


def test_perplexity_beyond_floats_is_infinite():
    assert perplexity(1000.0) == perplexity(math.inf) == math.inf


@pytest.mark.parametrize("nats", [-0.1, math.nan])
def test_perplexity_refuses_what_is_no_cross_entropy(nats):
    with pytest.raises(ValueError, match=f"expected a mean cross-entropy in nats, 0 or more, came {nats}"):
        perplexity(nats)


@pytest.mark.parametrize("metric", [exact_match, token_accuracy, corpus_bleu, rouge])
def test_empty_and_unequal_lists_are_refused(metric):
    with pytest.raises(ValueError, match="came 0 and 0"):
        metric([], [])
    with pytest.raises(ValueError, match="as many predictions as references, and at least one: came 1 and 2"):
        metric(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="came a single string: put it into a list"):
        metric("ab", ["a", "b"])


def test_token_accuracy_needs_a_word():
    with pytest.raises(ValueError, match="expected at least one word"):
        token_accuracy(["", " "], ["", ""])


def test_corpus_bleu_refuses_unknown_tokenizers():
    with pytest.raises(ValueError, match="tokenize must be one of 13a, intl, char, none, came 'moses'"):
        corpus_bleu(["a"], ["a"], tokenize="moses")


def test_rouge_by_hand():
    # words: 3 of 3 and of 5; neighbours: "mill burned" of 2 and of 4; longest row: the … mill burned
    found = rouge(["the mill burned"], ["the old mill burned down"])
    assert found == pytest.approx({"rouge1": 6 / 8, "rouge2": 2 / 6, "rougeL": 6 / 8})
    # the same words, in another order: every word, no neighbours, a row of one
    found = rouge(["d c b a"], ["a b c d"])
    assert found == pytest.approx({"rouge1": 1.0, "rouge2": 0.0, "rougeL": 1 / 4})


def test_rouge_is_the_mean_over_summaries_and_minds_neither_case_nor_punctuation():
    found = rouge(["The mill, burned!", "x"], ["the mill burned", "y"])
    assert found == pytest.approx({"rouge1": 0.5, "rouge2": 0.5, "rougeL": 0.5})


def test_rouge_counts_a_word_as_often_as_both_have_it():
    assert rouge(["rain rain rain"], ["rain and rain"])["rouge1"] == pytest.approx(4 / 6)


def test_rouge_takes_the_words_as_they_are():
    assert rouge(["mills"], ["mill"])["rouge1"] == 0.0  # no stemming
