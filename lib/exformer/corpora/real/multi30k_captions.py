"""Multi30k: captions of photographs in English, German and French."""

import gzip

from exformer.corpora.examples import Pair
from exformer.corpora.real.download import fetch
from exformer.corpora.real.manifest import FILES

_LANGUAGES = ("en", "de", "fr")
_PARTS = {"train": "train", "val": "val", "test": "test_2016_flickr"}


def multi30k(part: str, *, src: str, tgt: str) -> list[Pair]:
    """Return captions and their translations, unchanged.

    Args:
        part: "train" (29,000 pairs), "val" (1,014) or "test" (1,000: flickr 2016).
        src: Language to translate from: "en", "de" or "fr".
        tgt: Language to translate to, another one.

    Raises:
        ValueError: If there is no such part or language, or a file is not the right one.
        ConnectionError: If a file cannot be downloaded.

    Source:
        Elliott et al. 2016, Multi30K: Multilingual English-German Image Descriptions.
    """
    if part not in _PARTS:
        raise ValueError(f"part must be train, val or test, got {part!r}")
    if src == tgt or not {src, tgt} <= {*_LANGUAGES}:
        raise ValueError(f"src and tgt must be two of en, de and fr, got {src!r} and {tgt!r}")
    texts = [_lines(f"multi30k/{_PARTS[part]}.{language}.gz") for language in (src, tgt)]
    return [Pair(source, target) for source, target in zip(*texts, strict=True)]


def tokenized_references(language: str) -> list[str]:
    """Return the lines of the 2016 test set as papers score them: lower-cased, normalized, cut by Moses.

    Raises:
        ValueError, ConnectionError: As :func:`multi30k` does.
    """
    if language not in _LANGUAGES:
        raise ValueError(f"language must be en, de or fr, got {language!r}")
    return _lines(f"multi30k/test_2016_flickr.lc.norm.tok.{language}")


def _lines(name: str) -> list[str]:
    """Return the lines of a file; only line feeds end a line, because some captions hold other separators."""
    data = fetch(FILES[name]).read_bytes()
    text = gzip.decompress(data) if name.endswith(".gz") else data
    return [line.strip() for line in text.decode("utf-8").rstrip("\n").split("\n")]
