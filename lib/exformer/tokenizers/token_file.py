"""A tokenizer's content <-> a JSON file: nothing that can run code."""

import json
from pathlib import Path
from typing import Any

from exformer.storage.files import replace_file

_FORMAT = "exformer tokenizer 1"


def write_content(path: str | Path, *, kind: str, content: dict[str, Any]) -> None:
    """Write a file all at once: a reader sees the old file or the new one, never half of it.

    Args:
        path: Where to; a file that is there is replaced.
        kind: Of the tokenizer.
        content: What JSON can hold.
    """
    text = json.dumps({"format": _FORMAT, "kind": kind, **content}, ensure_ascii=False)
    replace_file(path, f"{text}\n".encode())


def kind_of_tokenizer(path: str | Path) -> str:
    """Return what kind of tokenizer a file holds.

    Args:
        path: The file.

    Raises:
        ValueError: If the file is not there or something else.
    """
    return str(_content(path).get("kind"))


def read_content(path: str | Path, *, kind: str) -> dict[str, Any]:
    """Read what :func:`write_content` wrote.

    Args:
        path: The file.
        kind: Of tokenizer that is wanted.

    Returns:
        The content. Whether it makes sense is for the caller to check.

    Raises:
        ValueError: If the file is not there, something else, or of another kind.
    """
    content = _content(path)
    if content.get("kind") != kind:
        raise ValueError(f"{path} holds a tokenizer of kind {content.get('kind')!r}, expected {kind!r}")
    return content


def _content(path: str | Path) -> dict[str, Any]:
    try:
        content: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # ValueError: also bytes that are no UTF-8
        raise ValueError(f"{path} is not a tokenizer file: expected JSON ({error})") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError(f"{path} is not a tokenizer file: expected the format {_FORMAT!r}")
    return content
