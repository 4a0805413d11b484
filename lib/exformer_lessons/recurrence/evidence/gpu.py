"""Time a training step of an LSTM layer on a GPU, and of a layer that multiplies as much without waiting.

``python lib/exformer_lessons/recurrence/evidence/gpu.py`` prints the milliseconds; ``gpu.json`` keeps them.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

TIMES = Path(__file__).with_name("gpu.json")
WIDTH, LENGTHS, TEXTS = 512, (512, 2_048, 8_192), (1, 32)


def times() -> dict[str, Any]:
    """Return the recorded milliseconds, by number of texts, layer and length."""
    return json.loads(TIMES.read_text(encoding="utf-8"))


def milliseconds(step: Callable[[], object], n: int = 11) -> float:
    """Return the median time of a step, after three to warm up."""
    import torch

    found = []
    for i in range(n + 3):
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        step()
        ended.record()
        torch.cuda.synchronize()
        found += [begun.elapsed_time(ended)] if i >= 3 else []
    return round(sorted(found)[n // 2], 3)


def measure() -> dict[str, Any]:
    """Time both layers, forward and backward, in float32: an LSTM has eight matrices of width by width."""
    import torch
    from torch import nn

    lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True).cuda()
    linear = nn.Linear(2 * WIDTH, 4 * WIDTH).cuda()
    found: dict[str, Any] = {"GPU": torch.cuda.get_device_name(), "torch": torch.__version__.split("+")[0]}
    for texts in TEXTS:
        rows = found.setdefault(f"{texts} at once", {"LSTM": {}, "as much work without waiting": {}})
        for n in LENGTHS:
            x = torch.randn(texts, n, WIDTH, device="cuda", requires_grad=True)
            both = torch.randn(texts, n, 2 * WIDTH, device="cuda", requires_grad=True)
            rows["LSTM"][str(n)] = milliseconds(lambda: lstm(x)[0].sum().backward())  # noqa: B023
            rows["as much work without waiting"][str(n)] = milliseconds(
                lambda: linear(both).tanh().sum().backward()  # noqa: B023
            )
    return found


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
