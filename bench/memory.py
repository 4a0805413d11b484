"""Peak memory of training, each contender in a process of its own."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.context import BaseContext
from pathlib import Path

import torch

N_STEPS = 3
#: What takes seconds to import: the process from which all others are forked does it once.
LOADED = (
    *("torch", "x_transformers"),
    "transformers.models.gpt2.modeling_gpt2",
    "transformers.models.marian.modeling_marian",
)


def peak_bytes() -> int | None:
    """Return the peak memory of this process, or None where the system does not tell it (Windows)."""
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


def measure(contenders: Sequence[str], setting: object, *, kind: str, threads: int) -> dict[str, int | None]:
    """Train for a few steps, each contender in a fresh process, two at a time.

    Args:
        contenders: Their names.
        setting: The sizes.
        kind: Of the model, as `bench.suites` calls it.
        threads: How many threads torch may use in each.

    Returns:
        Bytes that a few steps add to what a process had after a tiny model had loaded all libraries, or None
        where the system does not say.

    Raises:
        RuntimeError: If one of these processes fails, or is ended by the system.
    """
    # A plain fork would hang: this process may have threads of torch.
    context = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(list(LOADED))
    train = partial(added_bytes, setting=setting, kind=kind)
    return measure_alone(contenders, train, context, before=partial(torch.set_num_threads, threads))


def measure_alone(
    contenders: Sequence[str],
    work: Callable[[str], int | None],
    context: BaseContext,
    *,
    before: Callable[[], None] | None = None,
) -> dict[str, int | None]:
    """Measure each contender in a fresh process, two at a time.

    Args:
        contenders: Their names.
        work: Gives the bytes that a contender adds to the process in which it is called.
        context: How processes start.
        before: What each process does first.

    Returns:
        What it gave for each.

    Raises:
        RuntimeError: If one of these processes fails, or is ended by the system.
    """

    def alone(contender: str) -> int | None:
        with ProcessPoolExecutor(1, context, before) as process:
            try:
                return process.submit(work, contender).result()
            except Exception as error:
                raise RuntimeError(f"the memory of {contender} was not measured") from error

    with ThreadPoolExecutor(2) as both:
        return dict(zip(contenders, both.map(alone, contenders), strict=True))


def added_bytes(contender: str, setting: object, kind: str) -> int | None:
    """Train for a few steps in this process; return the growth of its peak memory."""
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
