"""A part of the slow tests in each run, another part at another commit; EVERYTHING=1 runs all of them."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

_Thing = TypeVar("_Thing")


def rotating_part(things: Sequence[_Thing], *, parts: int) -> list[_Thing]:
    """Return one of every ``parts`` things: which one depends on the commit, also in a shallow clone."""
    if os.environ.get("EVERYTHING") == "1":
        return list(things)
    chosen = int(last_commit(Path(__file__).parent) or "0", 16) % parts
    return [thing for number, thing in enumerate(things) if number % parts == chosen]


def last_commit(root: Path) -> str:
    """Return the short name of the last commit; nothing where git is silent."""
    command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
