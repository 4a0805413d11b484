"""A tokenizer's file -> the tokenizer, of whatever kind it is."""

from pathlib import Path

from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.characters_and_words import CharTokenizer, WordTokenizer
from exformer.tokenizers.token_file import kind_of_tokenizer
from exformer.tokenizers.tokenizer import Tokenizer

_TOKENIZERS = {tokenizer.kind: tokenizer for tokenizer in (WordTokenizer, CharTokenizer, BPETokenizer)}


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Read the file that a tokenizer's ``save`` wrote, of whatever kind it is.

    Raises:
        ValueError: If the file is not there, of no known kind, or damaged.
    """
    kind = kind_of_tokenizer(path)
    if kind not in _TOKENIZERS:
        raise ValueError(f"{path}: the kind must be one of {', '.join(_TOKENIZERS)}, got {kind!r}")
    return _TOKENIZERS[kind].load(path)
