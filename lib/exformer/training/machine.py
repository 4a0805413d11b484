"""The machine under a run: its clock, what it is, and memory that is kept from step to step."""

import ctypes
import platform
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

# Of glibc's malloc.h. Without them a large tensor goes back to the system when it is freed.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_NEVER = 2**31 - 1


class Clock:
    """Measure how long a run takes, from what :meth:`read` gave before it was interrupted."""

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
    """Describe the machine on which a run was made."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"device": name, "threads": torch.get_num_threads(), "torch": torch.__version__}


def processor_name() -> str:
    """Return the name of the processor as the system knows it, or else its kind, such as ``x86_64``."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text(encoding="utf-8").splitlines()
        named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        return named[0] if named else platform.machine()
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return platform.processor() or platform.machine()


def keep_freed_memory() -> None:
    """Let this process keep what it frees, so that the next step finds its memory ready.

    The system gives memory in pages of 4 KiB, each cleared at its first touch, and a step of training asks
    for the same large tensors as the step before. Measured on steps of ``multi30k-en-de-alone`` in eight
    processes in turn, one thread each: 0.65 s of processor time in place of 0.74 s, 12% less. Nothing is
    done where the C library is not glibc.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_MAX, 0)
        libc.mallopt(_TRIM_THRESHOLD, _NEVER)
