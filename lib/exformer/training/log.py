"""The log of a training run: a file with one JSON object per step."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exformer.storage.files import replace_file


class TrainingLog:
    """Read and write the log of a run: ``{"step": 1, "loss": 6.2, …}`` in each line."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def append(self, line: Mapping[str, Any]) -> None:
        """Write the line of a step."""
        with self.path.open("a", encoding="utf-8") as log:
            log.write(json.dumps(dict(line)) + "\n")

    def cut(self, *, done: int) -> list[dict[str, Any]]:
        """Take out what was done after a step, and is to be done again; return the lines that stay.

        A machine that stops may leave half a line, and lack some before it: only checkpoints are pushed to
        the disk at once.

        Raises:
            ValueError: If the file is no text.
        """
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.path} is damaged: expected lines of JSON ({error}); delete it to go on without it"
            ) from error
        kept = [line for line in lines if _step(line) <= done]
        replace_file(self.path, "".join(f"{line}\n" for line in kept).encode())
        return [json.loads(line) for line in kept]


def _step(line: str) -> float:
    """Read the step of a line; one that is not whole comes after all others."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return math.inf
