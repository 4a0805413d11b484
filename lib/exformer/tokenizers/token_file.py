"""A tokenizer's content <-> a JSON file: nothing that can run code."""

import json
from pathlib import Path
from typing import Any

from exformer.storage.files import read_json, replace_file

_FORMAT = "exformer tokenizer 1"


def write_content(path: str | Path, *, kind: str, content: dict[str, Any]) -> None:
    """Write a tokenizer's content as JSON, all at once: the old file stays until the new one is whole.

    Args:
        path: Where to; a file that is there is replaced.
        kind: The kind of tokenizer: "word", "character" or "byte-pair".
        content: What JSON can hold.
    """
    text = json.dumps({"format": _FORMAT, "kind": kind, **content}, ensure_ascii=False)
    replace_file(path, f"{text}\n".encode())


def kind_of_tokenizer(path: str | Path) -> str:
    """Return what kind of tokenizer a file holds.

    Raises:
        ValueError: If the file is not there or something else.
    """
    return str(_content(path).get("kind"))


def read_content(path: str | Path, *, kind: str) -> dict[str, Any]:
    """Read what :func:`write_content` wrote for a tokenizer of this kind.

    Whether the content makes sense is for the caller to check.

    Raises:
        ValueError: If the file is not there, something else, or of another kind.
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
