"""The data of recipes: texts in parts, and the hashes that identify them."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from exformer.corpora.english_italian import split
from exformer.corpora.examples import Pair
from exformer.corpora.real import multi30k, tiny_shakespeare, tokenized_references
from exformer.corpora.real.manifest import FILES


@dataclass(frozen=True)
class Pairs:
    """Sentences with translations.

    Args:
        train: The training set.
        val: The validation set.
        test: The test set.
        hashes: SHA-256 of each file, by name; where there are no files, of the texts.
        language: Language of the targets, such as "de"; empty where there are no tokenized references.
        references: The targets of ``test`` as papers score them: lower-cased and cut into words.
    """

    train: Sequence[Pair]
    val: Sequence[Pair]
    test: Sequence[Pair]
    hashes: dict[str, str]
    language: str = ""
    references: Sequence[str] = field(default=())


@dataclass(frozen=True)
class Text:
    """A long text.

    Args:
        train: The training text.
        val: The validation text.
        hashes: As for :class:`Pairs`.
    """

    train: str
    val: str
    hashes: dict[str, str]


def hash_texts(texts: Sequence[str] | Sequence[tuple[str, str]]) -> str:
    """Return the SHA-256 of texts that have no file, or of pairs of texts, as JSON.

    Args:
        texts: The texts, whose order counts.
    """
    return hashlib.sha256(json.dumps(list(texts), ensure_ascii=False).encode()).hexdigest()


def licenses(names: Iterable[str]) -> list[str]:
    """Return the licenses of files of the manifest, which models that learned from them must mind.

    Args:
        names: Names of files; other texts, such as translations by a teacher, are left out.

    >>> licenses(["tinyshakespeare/input.txt", "translations"])
    ['plays of Shakespeare, in the public domain, put together by Karpathy 2015']
    """
    return sorted({FILES[name].license for name in names if name in FILES})


def _multi30k(src: str, tgt: str) -> Pairs:
    parts = {part: multi30k(part, src=src, tgt=tgt) for part in ("train", "val", "test")}
    ends = (f".{src}.gz", f".{tgt}.gz", f".tok.{tgt}")
    names = [name for name in FILES if name.startswith("multi30k/") and name.endswith(ends)]
    return Pairs(
        **parts,
        hashes={name: FILES[name].sha256 for name in names},
        language=tgt,
        references=tokenized_references(tgt),
    )


def _shakespeare() -> Text:
    train, val = tiny_shakespeare()
    name = "tinyshakespeare/input.txt"
    return Text(train, val, {name: FILES[name].sha256})


def _english_italian() -> Pairs:
    """Make 2,000 training sentences, and 100 others."""
    parts = split(2000, n_test=100, seed=0)
    hashes = {}
    for name, pairs in (("train", parts.train), ("test", parts.test)):
        hashes[f"english-italian {name}"] = hash_texts([(pair.source, pair.target) for pair in pairs])
    return Pairs(parts.train, parts.test[:50], parts.test[50:], hashes)


#: The corpora: functions that return the data, by name.
CORPORA: dict[str, Callable[[], Pairs | Text]] = {
    "multi30k en-de": partial(_multi30k, "en", "de"),
    "multi30k de-en": partial(_multi30k, "de", "en"),
    "tiny shakespeare": _shakespeare,
    "english-italian": _english_italian,
}
