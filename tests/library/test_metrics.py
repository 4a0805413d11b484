"""Metrics: cases by hand, sacrebleu itself, and what is refused."""

import math
import sys

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from exformer.evaluation.metrics import (
    bits_per_byte,
    bleu_signature,
    corpus_bleu,
    exact_match,
    perplexity,
    rouge,
)


@pytest.mark.parametrize(
    ("predictions", "references", "exact"),
    [
        (["il cane"], ["il cane"], 1.0),
        (["il cane", "la volpe", "l' oca"], ["il cane", "la mucca", "l' oca"], 2 / 3),
        (["Il cane"], ["il cane"], 0.0),
        (["il cane "], ["il cane"], 0.0),
        ([""], ["il cane"], 0.0),
    ],
)
def test_exact_match_by_hand(predictions, references, exact):
    assert exact_match(predictions, references) == pytest.approx(exact)


@given(st.lists(st.text(alphabet="ab ", max_size=9), min_size=1, max_size=5))
def test_right_predictions_have_the_best_score(some):
    assert exact_match(some, some) == 1.0


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


def test_corpus_bleu_of_right_predictions_is_exactly_100():
    assert corpus_bleu(["l' oca bianca dormì"], ["l' oca bianca dormì"], tokenize="none") == 100.0


def test_corpus_bleu_tells_upper_from_lower_case():
    # 3 of 5 words, 2 of 4 pairs, 1 of 3 triples, none of 2 quadruples, which counts as half of one
    bleu = 100 * (3 / 5 * 2 / 4 * 1 / 3 * 0.5 / 2) ** (1 / 4)
    assert corpus_bleu(["THE DOG slept very well"], ["the dog slept very well"]) == pytest.approx(bleu)


def test_corpus_bleu_of_tokenized_words_is_silent(capfd, caplog):
    corpus_bleu(["il cane dormì ."] * 200, ["il cane dormì ."] * 200, tokenize="none")
    assert capfd.readouterr().err == caplog.text == ""


@given(st.integers(2, 1000))
def test_perplexity_of_a_uniform_choice_is_the_number_of_choices(n):
    assert perplexity(math.log(n)) == pytest.approx(n)


def test_perplexity_beyond_floats_is_infinite():
    assert perplexity(1000.0) == perplexity(math.inf) == math.inf


@pytest.mark.parametrize("nats", [-0.1, math.nan])
def test_perplexity_refuses_what_is_no_cross_entropy(nats):
    with pytest.raises(ValueError, match=f"expected a mean negative log-likelihood .* 0 or more, got {nats}"):
        perplexity(nats)
    with pytest.raises(ValueError, match=f"0 or more, got {nats}"):
        bits_per_byte(nats, n_tokens=1, text="a")


def test_bits_per_byte_by_hand():
    # two tokens of 3 bits each; "è" has two bytes
    assert bits_per_byte(3 * math.log(2), n_tokens=2, text="è!") == pytest.approx(2.0)
    with pytest.raises(ValueError, match="expected a text of at least one character, got an empty one"):
        bits_per_byte(1.0, n_tokens=0, text="")


@pytest.mark.parametrize("metric", [exact_match, corpus_bleu, rouge])
def test_empty_and_unequal_lists_are_refused(metric):
    with pytest.raises(ValueError, match="got 0 and 0"):
        metric([], [])
    with pytest.raises(ValueError, match="as many predictions as references, and at least one, got 1 and 2"):
        metric(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="got a single string: put it into a list"):
        metric("ab", ["a", "b"])
    with pytest.raises(ValueError, match="got a single string: put it into a list"):
        metric(["a", "b"], "ab")  # as long as the list


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("metric", [exact_match, corpus_bleu, rouge])
def test_lists_of_anything_but_strings_are_refused(metric):
    with pytest.raises(ValueError, match=r"expected references that are strings, .* got \['b', 'c'\]"):
        metric(["a"], [["b", "c"]])
    with pytest.raises(ValueError, match="expected predictions that are strings, one per sentence, got None"):
        metric(["a", None], ["a", "b"])


def test_rouge_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
    with pytest.raises(ValueError, match=r"ROUGE needs rouge-score: pip install 'exformer\[scores\]'"):
        rouge(["a"], ["a"])


def test_corpus_bleu_refuses_unknown_tokenizers():
    with pytest.raises(ValueError, match="tokenize must be one of 13a, intl, char, none, got 'moses'"):
        corpus_bleu(["a"], ["a"], tokenize="moses")


def test_rouge_by_hand():
    # words: 3 of 3 and of 5; neighbours: "mill burned" of 2 and of 4; longest row: the … mill burned
    found = rouge(["the mill burned"], ["the old mill burned down"])
    assert found == pytest.approx({"rouge1": 6 / 8, "rouge2": 2 / 6, "rougeL": 6 / 8})
    # the same words, in another order: every word, no neighbours, a row of one
    found = rouge(["d c b a"], ["a b c d"])
    assert found == pytest.approx({"rouge1": 1.0, "rouge2": 0.0, "rougeL": 1 / 4})


def test_rouge_is_a_mean_without_case():
    found = rouge(["The mill, burned!", "x"], ["the mill burned", "y"])
    assert found == pytest.approx({"rouge1": 0.5, "rouge2": 0.5, "rougeL": 0.5})


def test_rouge_counts_a_word_as_often_as_both_have_it():
    assert rouge(["rain rain rain"], ["rain and rain"])["rouge1"] == pytest.approx(4 / 6)


def test_rouge_takes_the_words_as_they_are():
    assert rouge(["mills"], ["mill"])["rouge1"] == 0.0  # no stemming


@pytest.mark.parametrize("tokenize", ["13a", "intl", "char", "none"])
def test_a_signature_names_how_texts_are_cut(tokenize):
    assert f"|tok:{tokenize}|" in bleu_signature(tokenize=tokenize)
    assert bleu_signature(tokenize=tokenize).startswith("nrefs:1|case:mixed|")
