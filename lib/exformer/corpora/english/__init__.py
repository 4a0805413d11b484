"""An English language with known probabilities: every language model has a floor to be measured against."""

from exformer.corpora.english.hidden import hidden_distribution
from exformer.corpora.english.labels import (
    KINDS,
    NUMBERS,
    JudgedSentence,
    LabeledSentence,
    judged_sample,
    labeled_sample,
)
from exformer.corpora.english.language import (
    entropy,
    entropy_per_token,
    expected_length,
    first_error,
    is_grammatical,
    nats_per_token,
    prefix_distribution,
    sentence_probability,
    sentences,
)
from exformer.corpora.english.lexicon import WORDS
from exformer.corpora.english.minimal_pairs import MinimalPair, agreement_items, coreference_items
from exformer.corpora.english.parsing import END
from exformer.corpora.english.sampling import sample, split

__all__ = [
    "END",
    "KINDS",
    "NUMBERS",
    "WORDS",
    "JudgedSentence",
    "LabeledSentence",
    "MinimalPair",
    "agreement_items",
    "coreference_items",
    "entropy",
    "entropy_per_token",
    "expected_length",
    "first_error",
    "hidden_distribution",
    "is_grammatical",
    "judged_sample",
    "labeled_sample",
    "nats_per_token",
    "prefix_distribution",
    "sample",
    "sentence_probability",
    "sentences",
    "split",
]
