"""How long a run takes, and on what machine."""

import platform
import time
from collections.abc import Mapping
from typing import Any

import torch


class Clock:
    """Measure how long a run takes, over all its parts.

    Args:
        before: What :meth:`read` gave at the end of the last part.
    """

    def __init__(self, before: Mapping[str, float]) -> None:
        self._wall = time.monotonic() - before.get("wall_seconds", 0.0)
        self._processor = time.process_time() - before.get("processor_seconds", 0.0)

    def read(self) -> dict[str, float]:
        """Return the seconds of wall and processor since the beginning."""
        return {
            "processor_seconds": round(time.process_time() - self._processor, 3),
            "wall_seconds": round(time.monotonic() - self._wall, 3),
        }


def machine(device: torch.device) -> dict[str, Any]:
    """Say on what a run was made.

    Args:
        device: That computed.
    """
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"device": name, "threads": torch.get_num_threads(), "torch": torch.__version__}
