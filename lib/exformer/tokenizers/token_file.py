"""The content of a tokenizer <-> a JSON file, which can run no code."""

from pathlib import Path
from typing import Any

from exformer.storage.files import read_json, write_json

_FORMAT = "exformer tokenizer 1"


def write_content(path: str | Path, *, kind: str, content: dict[str, Any]) -> None:
    """Write the content of a tokenizer as JSON in one step: the old file stays until the new one is complete.

    Args:
        path: The file; one that exists is replaced.
        kind: The kind of tokenizer: "word", "character" or "byte-pair".
        content: Values that JSON can hold.
    """
    write_json(path, {"format": _FORMAT, "kind": kind, **content}, ensure_ascii=False)


def kind_of_tokenizer(path: str | Path) -> str:
    """Return the kind of tokenizer that a file holds.

    Raises:
        ValueError: If there is no such file, or it is not a tokenizer.
    """
    return str(_content(path).get("kind"))


def read_content(path: str | Path, *, kind: str) -> dict[str, Any]:
    """Read what :func:`write_content` wrote for a tokenizer of this kind; the caller checks the content.

    Raises:
        ValueError: If there is no such file, or it is not a tokenizer of this kind.
    """
    content = _content(path)
    if content.get("kind") != kind:
        raise ValueError(f"{path} holds a tokenizer of kind {content.get('kind')!r}, expected {kind!r}")
    return content


def _content(path: str | Path) -> dict[str, Any]:
    content = read_json(path, what="a tokenizer file")
    if content.get("format") != _FORMAT:
        raise ValueError(f"{path} is not a tokenizer file: expected the format {_FORMAT!r}")
    return content
