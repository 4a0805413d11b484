"""Real texts: Multi30k (English, German, French captions) and Tiny Shakespeare."""

from exformer.corpora.real.multi30k_captions import multi30k, tokenized_references
from exformer.corpora.real.shakespeare import tiny_shakespeare

__all__ = ["multi30k", "tiny_shakespeare", "tokenized_references"]
