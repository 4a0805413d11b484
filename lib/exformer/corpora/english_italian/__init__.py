"""English and Italian by one synchronous grammar: translations are known, held-out combinations are new."""

from exformer.corpora.english_italian.combinations import PronounFacts, held_out, pronoun_facts
from exformer.corpora.english_italian.grammar import CONSTRUCTIONS
from exformer.corpora.english_italian.parser import ENGLISH_WORDS, normalize, translate
from exformer.corpora.english_italian.sampling import count_sentences, pronoun_pairs, sample, split

__all__ = [
    "CONSTRUCTIONS",
    "ENGLISH_WORDS",
    "PronounFacts",
    "count_sentences",
    "held_out",
    "normalize",
    "pronoun_facts",
    "pronoun_pairs",
    "sample",
    "split",
    "translate",
]
