"""Text <-> ids: a text cut into its characters."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from exformer.tokenizers.text_normalization import normalize_text
from exformer.tokenizers.tokenizer import check_texts
from exformer.tokenizers.vocabulary import SPECIALS, Vocabulary, check_no_specials


class CharTokenizer:
    """Cut a text into its characters; ``decode(encode(text))`` is the text.

    >>> tokenizer = CharTokenizer.from_texts(["il cane"])
    >>> tokenizer.vocabulary.tokens
    ('<pad>', '<s>', '</s>', ' ', 'a', 'c', 'e', 'i', 'l', 'n')
    >>> tokenizer.encode("lana"), tokenizer.decode([8, 4, 9, 4])
    ([8, 4, 9, 4], 'lana')
    """

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary, self.vocab_size = vocabulary, len(vocabulary)
        self.pad_id, self.bos_id, self.eos_id = range(len(SPECIALS))

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> "CharTokenizer":
        """Make the vocabulary from texts; the characters are sorted, so that ids depend on nothing else.

        Raises:
            ValueError: If ``texts`` is a single string, there is no character, or a text holds a special
                token.
        """
        check_texts(texts)
        return cls(
            Vocabulary.from_tokens(each for text in texts for each in check_no_specials(normalize_text(text)))
        )

    def encode(self, text: str) -> list[int]:
        """Return the id of each character, without special tokens.

        Raises:
            ValueError: If characters are unknown, or the text holds a special token.
        """
        return self.vocabulary.ids(check_no_specials(normalize_text(text)))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text; special tokens are left out.

        Raises:
            ValueError: If an id is outside the vocabulary.
        """
        return "".join(self.vocabulary.lookup(ids))

    def save(self, path: str | Path) -> None:
        """Write the tokenizer as a JSON file."""
        self.vocabulary.save(path, kind="character")

    @classmethod
    def load(cls, path: str | Path) -> "CharTokenizer":
        """Read a file that ``save`` wrote.

        Raises:
            ValueError: If the file is not of this kind, or damaged.
        """
        return cls(Vocabulary.load(path, kind="character"))
