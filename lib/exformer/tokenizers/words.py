"""Text <-> ids: a text cut into words at its spaces."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from exformer.tokenizers.text_normalization import normalize_text
from exformer.tokenizers.tokenizer import check_texts
from exformer.tokenizers.vocabulary import SPECIALS, Vocabulary, check_no_specials


class WordTokenizer:
    """Cut a text into words at its spaces.

    ``decode(encode(text))`` has one space between two words, and none at the ends.

    >>> tokenizer = WordTokenizer.from_texts(["il cane", "la volpe"])
    >>> tokenizer.vocabulary.tokens
    ('<pad>', '<s>', '</s>', 'cane', 'il', 'la', 'volpe')
    >>> tokenizer.encode("la volpe"), tokenizer.decode([5, 6])
    ([5, 6], 'la volpe')
    """

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary, self.vocab_size = vocabulary, len(vocabulary)
        self.pad_id, self.bos_id, self.eos_id = range(len(SPECIALS))

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> "WordTokenizer":
        """Make the vocabulary from texts; the words are sorted, so that ids depend on nothing else.

        Raises:
            ValueError: If ``texts`` is a single string, there is no word, or a text holds a special token.
        """
        check_texts(texts)
        return cls(
            Vocabulary.from_tokens(
                word for text in texts for word in check_no_specials(normalize_text(text)).split()
            )
        )

    def encode(self, text: str) -> list[int]:
        """Return the id of each word, without special tokens.

        Raises:
            ValueError: If words are unknown, or the text holds a special token.
        """
        return self.vocabulary.ids(check_no_specials(normalize_text(text)).split())

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text; special tokens are left out.

        Raises:
            ValueError: If an id is outside the vocabulary.
        """
        return " ".join(self.vocabulary.lookup(ids))

    def save(self, path: str | Path) -> None:
        """Write the tokenizer as a JSON file."""
        self.vocabulary.save(path, kind="word")

    @classmethod
    def load(cls, path: str | Path) -> "WordTokenizer":
        """Read a file that ``save`` wrote.

        Raises:
            ValueError: If the file is not of this kind, or damaged.
        """
        return cls(Vocabulary.load(path, kind="word"))
