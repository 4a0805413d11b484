"""Peak memory of training, each contender in a process of its own.

`python bench/memory.py KIND CONTENDER SETTING THREADS`, the setting as JSON, prints how many bytes a few
steps add to what the process had after a tiny model had loaded all libraries.
"""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
N_STEPS = 3


def peak_bytes() -> int | None:
    """Give the most memory this process has had, or None where the system does not say (Windows)."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage: Linux hands its maximum on from the process that started this one.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS: bytes


def measure(contender: str, setting: object, *, kind: str, threads: int) -> int | None:
    """Train for a few steps in a fresh process.

    Args:
        contender: Its name.
        setting: The sizes.
        kind: Of the model, as `bench.suites` calls it.
        threads: How many threads torch may use.

    Returns:
        Bytes that building and training add, or None where the system does not say.

    Raises:
        RuntimeError: If that process fails; the message ends with what it said.
    """
    command = [
        sys.executable,
        str(Path(__file__).resolve()),
        kind,
        contender,
        json.dumps(asdict(setting)),
        str(threads),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the memory of {contender} was not measured:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def added_bytes(contender: str, setting: object, *, kind: str) -> int | None:
    """Train for a few steps in this process, and say how much its peak grew."""
    from bench.setting import make_step
    from bench.suites import SUITES

    suite = SUITES[kind]

    def train(sizes: object) -> None:
        step = make_step(suite.contenders[contender](sizes))
        for batch in suite.make_batches(sizes)[:N_STEPS]:
            step(batch)

    train(suite.quick)  # what the first step of all loads is not the model's
    before = peak_bytes()
    train(setting)
    after = peak_bytes()
    return None if after is None else after - before


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    import torch

    from bench.suites import SUITES

    kind, name, sizes, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    sizes = type(SUITES[kind].quick)(**json.loads(sizes))
    print(json.dumps(added_bytes(name, sizes, kind=kind)))
