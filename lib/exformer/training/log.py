"""The log of a training run: a file with one JSON object per step."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exformer.storage.files import read_json_lines, replace_file


class TrainingLog:
    """The log of a run: ``{"step": 1, "loss": 6.2, …}`` in each line."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def append(self, line: Mapping[str, Any]) -> None:
        """Append the line of a step."""
        with self.path.open("a", encoding="utf-8") as log:
            log.write(_to_json_line(line))

    def cut(self, *, done: int) -> list[dict[str, Any]]:
        """Remove the lines of steps after ``done``, which will be taken again; return the lines that stay.

        A machine that stops may leave half a line, and lack some before it: only checkpoints are flushed to
        the disk at once.

        Raises:
            ValueError: If the file is not text.
        """
        try:
            lines = read_json_lines(self.path, what="the log of a run") if self.path.exists() else []
        except ValueError as error:
            raise ValueError(f"{error}; delete it to go on without it") from error
        kept = [line for line in lines if isinstance(line.get("step"), int) and line["step"] <= done]
        replace_file(self.path, "".join(map(_to_json_line, kept)).encode())
        return kept


def _to_json_line(line: Mapping[str, Any]) -> str:
    return json.dumps(dict(line)) + "\n"
