"""The clock of a run, which goes on where the run was interrupted."""

import time
from collections.abc import Mapping
from typing import Any


class Clock:
    """Measure the time of a run.

    Args:
        before: Notes with what :meth:`read` gave before the run was interrupted; empty at the beginning.
    """

    def __init__(self, before: Mapping[str, Any]) -> None:
        self._wall = time.monotonic() - before.get("wall_seconds", 0.0)
        self._processor = time.process_time() - before.get("processor_seconds", 0.0)

    def read(self) -> dict[str, float]:
        """Return the seconds of wall and processor time since the beginning."""
        return {
            "processor_seconds": round(time.process_time() - self._processor, 3),
            "wall_seconds": round(time.monotonic() - self._wall, 3),
        }
