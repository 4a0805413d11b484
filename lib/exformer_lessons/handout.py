"""Hand out notebooks: no outputs, no solutions, and in each the address of its repository."""

import json
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from posixpath import normpath
from typing import Any

from exformer_lessons import __version__
from exformer_lessons.notebook import find, labs, readable_folder

#: What is folded away, such as a solution.
DETAILS = re.compile(r"^<details>$.*?^</details>$\n*", flags=re.M | re.S)
#: Code, where brackets are no link, or a link: its words and its address.
_LINK = re.compile(
    r"(?P<code>^```.*?^```$|`[^`\n]+`(?!\]))|\[(?P<words>[^][]+)\]\((?P<address>[^()\s]+)\)", re.M | re.S
)
_REPO = re.compile(r'^REPO = "(.*)"$', flags=re.M)


def address_of(notebook: Mapping[str, Any]) -> str:
    """Return the address in a set-up cell, such as ``https://github.com/ada/book@1f0c…``, or nothing."""
    found = [_REPO.search("".join(cell["source"])) for cell in notebook["cells"] if _is_setup(cell)]
    return found[0][1] if found and found[0] else ""


def with_address(notebook: Mapping[str, Any], address: str) -> dict[str, Any]:
    """Return a notebook whose set-up cell installs the packages from an address."""
    cells = []
    for cell in notebook["cells"]:
        if _is_setup(cell):
            source = _REPO.sub(lambda _: f'REPO = "{address}"', "".join(cell["source"]))
            cell = cell | {"source": source.splitlines(keepends=True)}
        cells.append(cell)
    return dict(notebook) | {"cells": cells}


def handout(notebook: Mapping[str, Any], name: str, *, together: Collection[str]) -> dict[str, Any]:
    """Return a notebook without outputs and solutions.

    What is folded away (``<details>``) is taken out, exercises are as they were given, folded code stays
    folded. Links between notebooks that are handed out together stay as they are. Other links into the book
    lead to its repository, and where that is not known only their words are left.

    Args:
        notebook: The notebook, as its file has it.
        name: Its path under ``notebooks``.
        together: Such paths of all notebooks that are handed out.
    """
    cells, (url, _, commit) = [], address_of(notebook).partition("@")
    files = url and f"{url}/blob/{commit or 'HEAD'}"
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            source = DETAILS.sub("", source).rstrip()
            source = _LINK.sub(lambda link: _link(link, name, together, files), source)
            if not source:
                continue
            cell = cell | {"source": source.splitlines(keepends=True)}
        else:
            cell = cell | {"outputs": [], "execution_count": None}
        cells.append(cell)
    return dict(notebook) | {"cells": cells}


def own_folder() -> Path:
    """Return where the lessons of this version are written if the reader names no folder."""
    return Path.home() / f"transformer-lessons-{__version__}"


def serve(command: Sequence[str] = (), folder: str | Path | None = None) -> None:
    """Write the lessons where they are not yet, then become a JupyterHub's server for one user.

    Args:
        command: What the hub runs; none stands for ``jupyterhub-singleuser``.
        folder: Where the reader's notebooks are; None: :func:`own_folder`.

    Raises:
        FileNotFoundError: If there is no such command.
    """
    folder = Path(folder or own_folder()).expanduser()
    try:
        written, kept = hand_out([], folder, keep=True)
        print(f"Lessons in {folder}: {len(written)} new, {len(kept)} kept.", flush=True)
    except OSError as error:  # a full disk: the server must start, or nobody can make room
        print(f"Not all lessons are in {folder}: {error}", file=sys.stderr, flush=True)
    words = [*command] or ["jupyterhub-singleuser"]
    os.execvp(words[0], words)


def hand_out(
    names: Sequence[str], folder: str | Path, *, address: str = "", keep: bool = False
) -> tuple[list[Path], list[Path]]:
    """Write notebooks to hand out.

    Args:
        names: Lessons, such as ``05`` or ``tokens``; none stands for all, and the labs.
        folder: Where they are written.
        address: Of the repository, for notebooks that do not say theirs.
        keep: Whether a file that is there already stays as it is.

    Returns:
        The files that were written, and those that were kept.
    """
    root = readable_folder()
    found = find(names, root) + ([] if names else labs(root))
    together = {path.relative_to(root / "notebooks").as_posix(): path for path in found}
    written, kept = [], []
    for name, path in together.items():
        target = Path(folder, name)
        if keep and target.exists():
            kept.append(target)
            continue
        notebook = json.loads(path.read_text(encoding="utf-8"))
        notebook = with_address(notebook, address_of(notebook) or address)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(as_text(handout(notebook, name, together=together)), encoding="utf-8", newline="\n")
        written.append(target)
    return written, kept


def as_text(notebook: Mapping[str, Any]) -> str:
    """Write a notebook as its file has it."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _is_setup(cell: Mapping[str, Any]) -> bool:
    return "setup" in cell["metadata"].get("tags", [])


def _link(link: re.Match[str], name: str, together: Collection[str], files: str) -> str:
    if link["code"] or re.match(r"[a-z]+:|#", link["address"]):
        return link[0]
    target, mark, anchor = link["address"].partition("#")
    path = normpath(f"notebooks/{name}/../{target}")
    if path.removeprefix("notebooks/") in together:
        return link[0]
    return f"[{link['words']}]({files}/{path}{mark}{anchor})" if files else link["words"]
