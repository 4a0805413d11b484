"""How good are the sentences? Exact match, words in place, BLEU, ROUGE; and perplexity, from the loss."""

import math
from collections.abc import Sequence

import sacrebleu

_BLEU_TOKENIZERS = ("13a", "intl", "char", "none")  # those of sacrebleu that need no download


def exact_match(predictions: Sequence[str], references: Sequence[str]) -> float:
    """Return the share of predictions that equal their reference, letter by letter.

    Args:
        predictions: What a model wrote.
        references: What is right, in the same order.

    Returns:
        0 to 1.

    Raises:
        ValueError: If the lists are empty or differ in length.

    >>> exact_match(["il cane", "la volpe"], ["il cane", "il lupo"])
    0.5
    """
    _check(predictions, references)
    return sum(p == r for p, r in zip(predictions, references, strict=True)) / len(references)


def token_accuracy(predictions: Sequence[str], references: Sequence[str]) -> float:
    """Return the share of words that stand where the reference has them.

    A place that only one of the two sentences has counts as wrong: the divisor is the length of the longer.
    One word left out early makes all words after it wrong.

    Args:
        predictions: What a model wrote; words are cut at spaces.
        references: What is right, in the same order.

    Returns:
        0 to 1, over all sentences together.

    Raises:
        ValueError: If the lists are empty or differ in length, or no sentence has a word.

    >>> token_accuracy(["il cane stanca"], ["il cane stanco dormì"])
    0.5
    """
    _check(predictions, references)
    rows = [(p.split(), r.split()) for p, r in zip(predictions, references, strict=True)]
    places = sum(max(len(p), len(r)) for p, r in rows)
    if places == 0:
        raise ValueError("expected at least one word in predictions or references, came only empty sentences")
    return sum(a == b for p, r in rows for a, b in zip(p, r, strict=False)) / places


def corpus_bleu(predictions: Sequence[str], references: Sequence[str], *, tokenize: str = "13a") -> float:
    """Return the BLEU score of all sentences together, as sacrebleu computes it.

    Geometric mean of the precisions of 1- to 4-grams, times a penalty where the predictions are too short.

    Args:
        predictions: What a model wrote.
        references: What is right, in the same order; one for each.
        tokenize: How sacrebleu cuts text into words: "13a" as in most papers, "intl" by Unicode's classes,
            "char" into characters, "none" at spaces only.

    Returns:
        0 to 100.

    Raises:
        ValueError: If the lists are empty or differ in length, or ``tokenize`` is none of those.

    Source:
        Papineni et al. 2002; Post 2018, "A Call for Clarity in Reporting BLEU Scores".

    >>> round(corpus_bleu(["il cane stanco dormì"], ["il cane stanco dormì"]))
    100
    """
    _check(predictions, references)
    bleu = _bleu(tokenize).corpus_score(list(predictions), [list(references)])
    return min(bleu.score, 100.0)  # rounding can take it a hair above


def bleu_signature(*, tokenize: str = "13a") -> str:
    """Return how sacrebleu names what :func:`corpus_bleu` does, for others to do the same.

    Args:
        tokenize: As for :func:`corpus_bleu`.

    Raises:
        ValueError: As for :func:`corpus_bleu`.

    Source:
        Post 2018, section 3.

    >>> bleu_signature().split("|version")[0]
    'nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp'
    """
    bleu = _bleu(tokenize)
    bleu.corpus_score(["a"], [["a"]])  # only then it knows how many references there are
    return str(bleu.get_signature())


def _bleu(tokenize: str) -> sacrebleu.BLEU:
    if tokenize not in _BLEU_TOKENIZERS:
        raise ValueError(f"tokenize must be one of {', '.join(_BLEU_TOKENIZERS)}, came {tokenize!r}")
    is_cut = tokenize == "none"  # sacrebleu warns of text that is cut into words, but here it is meant
    return sacrebleu.BLEU(tokenize=tokenize, force=is_cut)


def rouge(predictions: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    r"""Return the mean ROUGE scores of summaries, as the package rouge-score computes them.

    Each is an F₁ of what a summary and its reference share: single words (``rouge1``), pairs of neighbours
    (``rouge2``), or the longest row of words that both have in this order (``rougeL``). It is made for
    English: nothing but the letters a to z, without their case, and digits counts.

    .. math:: F_1 = \frac{2\,P\,R}{P + R}, \qquad
        P = \frac{\text{shared}}{\text{in the summary}}, \quad
        R = \frac{\text{shared}}{\text{in the reference}}

    Args:
        predictions: What a model wrote.
        references: What is right, in the same order; one for each.

    Returns:
        The three scores, each 0 to 1.

    Raises:
        ValueError: If the lists are empty or differ in length.

    Source:
        Lin 2004, sections 2 and 3.

    >>> round(rouge(["the mill burned"], ["the old mill burned down"])["rouge1"], 2)
    0.75
    """
    from rouge_score.rouge_scorer import RougeScorer  # here: it takes a second, and few need it

    _check(predictions, references)
    names = ["rouge1", "rouge2", "rougeL"]
    scorer = RougeScorer(names)
    found = [scorer.score(right, ours) for ours, right in zip(predictions, references, strict=True)]
    return {name: sum(scores[name].fmeasure for scores in found) / len(found) for name in names}


def perplexity(mean_nats: float) -> float:
    """Return exp(mean_nats): among how many equally probable symbols the model is in doubt.

    Args:
        mean_nats: Cross-entropy, in nats a token.

    Returns:
        1 or more; infinity where a float cannot hold it.

    Raises:
        ValueError: If the cross-entropy is negative or not a number.

    >>> perplexity(0.0)
    1.0
    """
    if not mean_nats >= 0:
        raise ValueError(f"expected a mean cross-entropy in nats, 0 or more, came {mean_nats}")
    try:
        return math.exp(mean_nats)
    except OverflowError:
        return math.inf


def _check(predictions: Sequence[str], references: Sequence[str]) -> None:
    if isinstance(predictions, str) or isinstance(references, str):
        raise ValueError("expected two lists of sentences, came a single string: put it into a list")
    if not len(predictions) == len(references) > 0:
        raise ValueError(
            f"expected as many predictions as references, and at least one: "
            f"came {len(predictions)} and {len(references)}"
        )
