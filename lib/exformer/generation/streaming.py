"""Tokens -> text, piece by piece: whole characters only, up to a stop string."""

from collections.abc import Sequence

from exformer.tokenizers.tokenizer import Tokenizer

_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"  # bytes of an incomplete character are decoded to it


class StreamedText:
    """A text that grows by tokens, and returns its characters as soon as they are certain.

    A token may end within a character, whose rest comes with the next ones, and a stop string may begin in
    one token and end in another: such characters are held back. All pieces together are the text of all
    tokens after the prompt, cut before the first stop string.

    Args:
        tokenizer: The tokenizer of the text.
        prompt: The tokens before the new ones, so that a word gets the space before it.
        stop: Strings before which the text ends.

    >>> from exformer import BPETokenizer
    >>> tokenizer = BPETokenizer([])  # a token per byte
    >>> text = StreamedText(tokenizer, stop=["END"])
    >>> [text.push(token) for token in tokenizer.encode("né EN")], text.close()
    (['n', '', 'é', ' ', '', ''], 'EN')
    """

    def __init__(self, tokenizer: Tokenizer, *, prompt: Sequence[int] = (), stop: Sequence[str] = ()) -> None:
        self.ended = False
        self._tokenizer, self._stop = tokenizer, stop
        # The newest tokens are decoded after a few older ones, whose characters have been returned.
        self._older, self._newest = list(prompt), list[int]()
        self._held = ""  # may be the beginning of a stop string

    def push(self, token: int) -> str:
        """Append a token; return the characters that have become certain."""
        if self.ended:
            return ""
        self._newest.append(token)
        text = self._decode_newest()
        if text.endswith(_INCOMPLETE):
            return ""
        if text:
            self._older, self._newest = self._newest, []
        return self._release(text, last=False)

    def close(self) -> str:
        """End the text; return what was held back."""
        if self.ended:
            return ""
        rest = self._release(self._decode_newest(), last=True)
        self.ended = True
        return rest

    def _decode_newest(self) -> str:
        older = self._tokenizer.decode(self._older)
        return self._tokenizer.decode(self._older + self._newest)[len(older) :]

    def _release(self, text: str, *, last: bool) -> str:
        text = self._held + text
        found = [text.index(stop) for stop in self._stop if stop in text]
        if found:
            self.ended = True
            return text[: min(found)]
        held = 0 if last else max((_overlap(text, stop) for stop in self._stop), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]


def _overlap(text: str, stop: str) -> int:
    """Count the characters at the end of a text with which a stop string may have begun."""
    return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)
