"""A part of the slow tests in each run, another part at another commit; EVERYTHING=1 runs all of them."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from exformer_lessons.sabotage import last_commit

_Thing = TypeVar("_Thing")


def rotating_part(things: Sequence[_Thing], *, parts: int) -> list[_Thing]:
    """Return one of every ``parts`` things: which one depends on the commit, also in a shallow clone."""
    if os.environ.get("EVERYTHING") == "1":
        return list(things)
    chosen = int(last_commit(Path(__file__).parent) or "0", 16) % parts
    return [thing for number, thing in enumerate(things) if number % parts == chosen]
