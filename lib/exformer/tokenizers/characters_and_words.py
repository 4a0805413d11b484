"""Text <-> ids by a vocabulary: a text is cut into its characters, or into words at its spaces."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Self

from exformer.tokenizers.text_normalization import normalize_text
from exformer.tokenizers.tokenizer import check_texts, wrong_argument
from exformer.tokenizers.vocabulary import BOS_ID, EOS_ID, PAD_ID, SPECIALS, Vocabulary, check_no_specials


class VocabularyTokenizer:
    """Cut a text into tokens of a vocabulary, as :class:`CharTokenizer` and :class:`WordTokenizer` define.

    Args:
        vocabulary: The known tokens; :meth:`from_texts` collects them from texts.

    Raises:
        ValueError: If it is not a vocabulary but, for example, a text.
    """

    kind: ClassVar[str]  # the name in a file
    separator: ClassVar[str]  # between two tokens

    def __init__(self, vocabulary: Vocabulary):
        if not isinstance(vocabulary, Vocabulary):
            raise ValueError(wrong_argument(type(self), vocabulary, expected="a Vocabulary"))
        self.vocabulary, self.vocab_size = vocabulary, len(vocabulary)
        self.pad_id, self.bos_id, self.eos_id = PAD_ID, BOS_ID, EOS_ID

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> Self:
        """Collect the tokens of texts; they are sorted, so that ids depend on nothing else.

        Raises:
            ValueError: If ``texts`` is a single string, there is no token, or a text holds a special token.
        """
        check_texts(texts)
        return cls(Vocabulary.from_tokens(token for text in texts for token in cls._split(text)))

    @classmethod
    def _split(cls, text: str) -> Sequence[str]:
        text = check_no_specials(normalize_text(text))
        return text.split() if cls.separator else text

    def encode(self, text: str) -> list[int]:
        """Return the id of each token of a normalized text, without special tokens.

        Raises:
            ValueError: If tokens are unknown, or the text holds a special token.
        """
        return self.vocabulary.ids(self._split(text))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text; special tokens are left out.

        Raises:
            ValueError: If an id is not an integer or outside the vocabulary.
        """
        return self.separator.join(self.vocabulary.lookup(ids))

    def __repr__(self) -> str:
        """Name the kind, the size and the first tokens."""
        tokens = self.vocabulary.tokens[len(SPECIALS) :]
        more = ", …" if len(tokens) > 8 else ""
        return f"{type(self).__name__}({self.vocab_size} tokens: {', '.join(map(repr, tokens[:8]))}{more})"

    def save(self, path: str | Path) -> None:
        """Write the tokenizer as a JSON file."""
        self.vocabulary.save(path, kind=self.kind)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that ``save`` wrote.

        Raises:
            ValueError: If the file is not of this kind, or damaged.
        """
        return cls(Vocabulary.load(path, kind=cls.kind))


class CharTokenizer(VocabularyTokenizer):
    """Cut a text into its characters; ``decode(encode(text))`` is the normalized text.

    >>> tokenizer = CharTokenizer.from_texts(["il cane"])
    >>> tokenizer.vocabulary.tokens
    ('<pad>', '<s>', '</s>', ' ', 'a', 'c', 'e', 'i', 'l', 'n')
    >>> tokenizer.encode("lana"), tokenizer.decode([8, 4, 9, 4])
    ([8, 4, 9, 4], 'lana')
    """

    kind, separator = "character", ""


class WordTokenizer(VocabularyTokenizer):
    """Cut a text into words at its spaces; ``decode(encode(text))`` has one space between two words.

    >>> tokenizer = WordTokenizer.from_texts(["il cane", "la volpe"])
    >>> tokenizer.vocabulary.tokens
    ('<pad>', '<s>', '</s>', 'cane', 'il', 'la', 'volpe')
    >>> tokenizer.encode("la volpe"), tokenizer.decode([5, 6])
    ([5, 6], 'la volpe')
    """

    kind, separator = "word", " "
