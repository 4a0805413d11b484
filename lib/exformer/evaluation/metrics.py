"""Measures of a model's outputs: exact match, BLEU and ROUGE of texts; perplexity and bits per byte."""

import math
from collections.abc import Sequence

import sacrebleu

from exformer.check_settings import check_choice

_BLEU_TOKENIZERS = ("13a", "intl", "char", "none")  # those of sacrebleu that need no download


def exact_match(predictions: Sequence[str], references: Sequence[str]) -> float:
    """Return the fraction of predictions, 0 to 1, that equal their reference exactly.

    Raises:
        ValueError: If the lists are empty, differ in length, or contain something other than strings.

    >>> exact_match(["il cane", "la volpe"], ["il cane", "il lupo"])
    0.5
    """
    _check(predictions, references)
    return sum(p == r for p, r in zip(predictions, references, strict=True)) / len(references)


def corpus_bleu(predictions: Sequence[str], references: Sequence[str], *, tokenize: str = "13a") -> float:
    r"""Return the BLEU score of all sentences together, 0 to 100, as sacrebleu computes it.

    .. math:: \text{BLEU} = 100 \cdot \min\left(1, e^{1 - r / c}\right)
        \cdot \left(p_1\, p_2\, p_3\, p_4\right)^{1/4}

    where p_n is the fraction of the predictions' n-grams that are in their references, and c and r are the
    lengths of all predictions and of all references. Upper and lower case differ.

    Args:
        predictions: Generated texts.
        references: The right texts, in the same order, one string for each.
        tokenize: How sacrebleu cuts text into words: "13a" as in most papers, "intl" by Unicode's classes,
            "char" into characters, "none" at spaces only.

    Raises:
        ValueError: If the lists are empty, differ in length, or contain something other than strings, or
            ``tokenize`` is none of those.

    Source:
        Papineni et al. 2002; Post 2018, "A Call for Clarity in Reporting BLEU Scores".

    >>> round(corpus_bleu(["il cane stanco dormì male"], ["il cane stanco dormì bene"]), 1)
    66.9
    """
    _check(predictions, references)
    bleu = _bleu(tokenize).corpus_score(list(predictions), [list(references)])
    return min(bleu.score, 100.0)  # rounding can take it a hair above


def bleu_signature(*, tokenize: str = "13a") -> str:
    """Return sacrebleu's signature of :func:`corpus_bleu`, which makes a score reproducible.

    Raises:
        ValueError: If ``tokenize`` is unknown.

    Source:
        Post 2018, section 3.

    >>> bleu_signature().split("|version")[0]
    'nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp'
    """
    bleu = _bleu(tokenize)
    bleu.corpus_score(["a"], [["a"]])  # the signature needs the number of references
    return str(bleu.get_signature())


def _bleu(tokenize: str) -> sacrebleu.BLEU:
    check_choice("tokenize", tokenize, _BLEU_TOKENIZERS)
    is_tokenized = tokenize == "none"  # force: sacrebleu would warn that the text is tokenized already
    return sacrebleu.BLEU(tokenize=tokenize, force=is_tokenized)


def rouge(predictions: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    r"""Return the mean ROUGE scores of summaries, each 0 to 1, as the package rouge-score computes them.

    Each is an F₁ of what a summary and its reference share: single words (``rouge1``), pairs of neighbors
    (``rouge2``), or the longest sequence of words that both have in this order (``rougeL``). It is made for
    English: only letters a to z, in either case, and digits count.

    .. math:: F_1 = \frac{2\,P\,R}{P + R}, \qquad
        P = \frac{\text{shared}}{\text{in the summary}}, \quad
        R = \frac{\text{shared}}{\text{in the reference}}

    Raises:
        ValueError: If the lists are empty, differ in length, or contain something other than strings, or
            rouge-score is not installed.

    Source:
        Lin 2004, sections 2 and 3.

    >>> round(rouge(["the mill burned"], ["the old mill burned down"])["rouge1"], 2)
    0.75
    """
    _check(predictions, references)
    try:
        from rouge_score.rouge_scorer import RougeScorer  # here: it takes a second, and few need it
    except ImportError as error:
        raise ValueError("ROUGE needs rouge-score: pip install 'exformer[scores]'") from error
    names = ["rouge1", "rouge2", "rougeL"]
    scorer = RougeScorer(names)
    found = [scorer.score(right, ours) for ours, right in zip(predictions, references, strict=True)]
    return {name: sum(scores[name].fmeasure for scores in found) / len(found) for name in names}


def perplexity(mean_nll: float) -> float:
    r"""Return the perplexity, the exponentiated mean negative log-likelihood: :math:`e^L`.

    A uniform choice among k tokens has the perplexity k.

    Args:
        mean_nll: L, the mean negative log-likelihood, in nats per token.

    Returns:
        1 or more; infinity where a float cannot hold it.

    Raises:
        ValueError: If the loss is negative or not a number.

    >>> import math
    >>> round(perplexity(math.log(8)))
    8
    """
    _check_nll(mean_nll)
    try:
        return math.exp(mean_nll)
    except OverflowError:
        return math.inf


def bits_per_byte(mean_nll: float, *, n_tokens: int, text: str) -> float:
    r"""Return the loss in bits per byte of text.

    .. math:: \frac{L}{\ln 2} \cdot \frac{\text{tokens}}{\text{bytes}}

    Unlike the loss per token, it compares models with different tokenizers.

    Args:
        mean_nll: L, the mean negative log-likelihood, in nats per token.
        n_tokens: Number of tokens of the text.
        text: The text; its bytes are those of UTF-8.

    Raises:
        ValueError: If the loss is negative or not a number, or the text is empty.

    >>> bits_per_byte(math.log(4), n_tokens=3, text="però")
    1.2
    """
    _check_nll(mean_nll)
    if not text:
        raise ValueError("expected a text of at least one character, got an empty one")
    return mean_nll / math.log(2) * n_tokens / len(text.encode())


def _check(predictions: Sequence[str], references: Sequence[str]) -> None:
    if isinstance(predictions, str) or isinstance(references, str):
        raise ValueError("expected two lists of sentences, got a single string: put it into a list")
    if not len(predictions) == len(references) > 0:
        raise ValueError(
            f"expected as many predictions as references, and at least one, "
            f"got {len(predictions)} and {len(references)}"
        )
    for name, texts in (("predictions", predictions), ("references", references)):
        for text in texts:
            if not isinstance(text, str):
                raise ValueError(f"expected {name} that are strings, one per sentence, got {text!r}")


def _check_nll(mean_nll: float) -> None:
    if not mean_nll >= 0:
        raise ValueError(f"expected a mean negative log-likelihood in nats, 0 or more, got {mean_nll}")
