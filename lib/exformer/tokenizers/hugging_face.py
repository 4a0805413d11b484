"""A ``tokenizer.json`` of Hugging Face as a tokenizer of ours, by the library ``tokenizers``."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from exformer.tokenizers.text_normalization import normalize_text
from exformer.tokenizers.token_file import read_content, write_content
from exformer.tokenizers.vocabulary import check_ids

#: Tokens that fill up, begin or end a text in known tokenizers, where no id is given.
_SPECIAL = {
    "pad": ("<pad>", "[PAD]", "<|pad|>", "<|endoftext|>", "</s>"),
    "bos": ("<s>", "[CLS]", "<|begin_of_text|>", "<|endoftext|>", "<pad>"),
    "eos": ("</s>", "[SEP]", "<|end_of_text|>", "<|endoftext|>"),
}


class HuggingFaceTokenizer:
    """Cut a text as a ``tokenizer.json`` says, after the normalization that all tokenizers of ours share.

    A special token within a text is plain text.

    Args:
        content: What the file holds.
        vocab_size: Tokens of the model, which can be more than those of the tokenizer; the latter if None.
        pad_id: The padding; None: the token of a usual name, such as ``<pad>``.
        bos_id: The token before a text; likewise.
        eos_id: The token after a text; likewise. Generation ends at each of several, of which the first is
            the attribute ``eos_id`` and all are ``eos_ids``.

    Raises:
        ValueError: If ``tokenizers`` is not installed, it can't read the content, a special token is unknown,
            or the model has fewer tokens than the tokenizer.
    """

    kind: ClassVar[str] = "hugging-face"

    def __init__(
        self,
        content: str,
        *,
        vocab_size: int | None = None,
        pad_id: int | None = None,
        bos_id: int | None = None,
        eos_id: int | Sequence[int] | None = None,
    ) -> None:
        try:
            import tokenizers
        except ImportError:
            raise ValueError(
                "a tokenizer.json is read by the library tokenizers: pip install 'exformer[tokenizers]'"
            ) from None
        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(content)
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"tokenizers can't read the content of tokenizer.json: {error}") from error
        self._tokenizer.encode_special_tokens = True  # as plain text
        self._tokenizer.no_padding()  # some files, as those of sentence encoders, ask for texts of one length
        self._tokenizer.no_truncation()
        self.content = content
        size = self._tokenizer.get_vocab_size()
        self.vocab_size = size if vocab_size is None else vocab_size
        if self.vocab_size < size:
            raise ValueError(f"the tokenizer has {size} tokens, the model {vocab_size}: they do not fit")
        self.pad_id = self._special("pad", pad_id)
        self.bos_id = self._special("bos", bos_id)
        several = list(eos_id) if isinstance(eos_id, Sequence) else [eos_id]
        self.eos_ids = [self._special("eos", each) for each in several or [None]]
        self.eos_id = self.eos_ids[0]

    def encode(self, text: str) -> list[int]:
        """Return the ids of a normalized text, without special tokens.

        Raises:
            ValueError: If the text is not a string, or holds half a surrogate pair.
        """
        return self._tokenizer.encode(normalize_text(text), add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens.

        Raises:
            ValueError: If an id is not an integer or outside the vocabulary.
        """
        special = {self.pad_id, self.bos_id, *self.eos_ids}
        numbers = [each for each in check_ids(ids, vocab_size=self.vocab_size) if each not in special]
        return self._tokenizer.decode(numbers, skip_special_tokens=True)

    def save(self, path: str | Path) -> None:
        """Write the tokenizer as a file that :meth:`load` reads."""
        names = ("content", "vocab_size", "pad_id", "bos_id", "eos_id", "eos_ids")
        write_content(path, kind=self.kind, content={name: getattr(self, name) for name in names})

    @classmethod
    def load(cls, path: str | Path) -> "HuggingFaceTokenizer":
        """Read what :meth:`save` wrote.

        Raises:
            ValueError: If there is no such file, or it is damaged.
        """
        found = read_content(path, kind=cls.kind)
        ids = {name: found.get(name) for name in ("vocab_size", "pad_id", "bos_id", "eos_id")}
        ends = found.get("eos_ids", [ids["eos_id"]])  # older files have one
        numbers = [*ids.values(), *ends] if isinstance(ends, list) and ends else [None]
        if not isinstance(found.get("content"), str) or not all(type(x) is int for x in numbers):
            raise ValueError(f"{path} is damaged: expected the content of a tokenizer.json and four integers")
        try:
            return cls(found["content"], **ids | {"eos_id": ends})
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def _special(self, role: str, given: int | None) -> int:
        """Return the id of a special token: that which is given, or that of a usual name."""
        usual = (self._tokenizer.token_to_id(token) for token in _SPECIAL[role])
        found = given if given is not None else next((i for i in usual if i is not None), None)
        if found is None or not 0 <= found < self.vocab_size:
            raise ValueError(
                f"the tokenizer has no {role} token: expected one of {', '.join(_SPECIAL[role])}, or "
                f"{role}_token_id below {self.vocab_size} in config.json, got {found}"
            )
        return found
