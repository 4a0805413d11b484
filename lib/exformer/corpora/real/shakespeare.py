"""Tiny Shakespeare: a megabyte of plays, on which character models are compared."""

from exformer.corpora.real.download import fetch
from exformer.corpora.real.manifest import FILES


def tiny_shakespeare() -> tuple[str, str]:
    """Return the training text and the validation text: the first nine tenths, and the last.

    Raises:
        ValueError, ConnectionError: As :func:`~exformer.corpora.real.download.fetch` does.

    Source:
        Karpathy 2015, char-rnn; the cut is nanoGPT's.
    """
    text = fetch(FILES["tinyshakespeare/input.txt"]).read_text(encoding="utf-8")
    cut = int(0.9 * len(text))
    return text[:cut], text[cut:]
