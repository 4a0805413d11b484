"""A file -> the tokenizer that was saved in it, of any kind."""

from pathlib import Path

from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.characters_and_words import CharTokenizer, WordTokenizer
from exformer.tokenizers.hugging_face import HuggingFaceTokenizer
from exformer.tokenizers.token_file import kind_of_tokenizer
from exformer.tokenizers.tokenizer import Tokenizer

_TOKENIZERS = {
    tokenizer.kind: tokenizer
    for tokenizer in (WordTokenizer, CharTokenizer, BPETokenizer, HuggingFaceTokenizer)
}


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Read the file that the ``save`` of any tokenizer wrote.

    Raises:
        ValueError: If there is no such file, or it is damaged or of an unknown kind.
    """
    kind = kind_of_tokenizer(path)
    if kind not in _TOKENIZERS:
        raise ValueError(f"{path}: the kind must be one of {', '.join(_TOKENIZERS)}, got {kind!r}")
    return _TOKENIZERS[kind].load(path)
