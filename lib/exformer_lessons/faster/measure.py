"""Measure what the lesson on speed shows.

    python -m exformer_lessons.faster.measure [PART ...]

writes ``runs.json`` beside this file: all parts, or those that are named. All take about a quarter of an hour
on one thread. Times are seconds of the processor, taken in turns, and only their ratios are kept, round by
round: the machine may have had other work.
"""

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.ao.quantization import quantize_dynamic
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import linear, scaled_dot_product_attention

from exformer import DecoderLM, DecoderLMConfig, Sampling, load_model
from exformer.generation.generate import generate
from exformer.generation.speculative import speculate
from exformer_lessons.faster.counting import CountedDraft, overlaps, own_texts
from exformer_lessons.faster.recall import train_recall
from exformer_lessons.faster.rounding import (
    BLOCKS,
    divergence,
    rounded_model,
    with_one_large_channel,
)
from exformer_lessons.measured import measure_parts, read_runs

FILE = Path(__file__).with_name("runs.json")
SEEDS = range(5)
N_TOKENS = (1, 2, 4, 8, 16, 32, 64, 128)
LARGE = DecoderLMConfig(65, d_model=384, n_heads=6, d_ff=1536, n_layers=6, max_len=257, dropout=0.0)


def runs(part: str) -> dict[str, Any]:
    """Return what was measured, of a part by the name of its function."""
    return read_runs(FILE)[part]


def in_turns(ways: dict[Any, Callable[[], object]], *, rounds: int) -> dict[Any, list[float]]:
    """Time each way once a round, every other round backwards; return seconds by round."""
    seconds: dict[Any, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name in list(ways)[:: 1 - 2 * (turn % 2)]:
            begun = time.process_time()
            ways[name]()
            if turn:  # the first round warms up
                seconds[name].append(time.process_time() - begun)
    return seconds


def ratios(seconds: dict[Any, list[float]], *, to: Any) -> dict[str, list[float]]:
    """Return the smallest, the median and the largest ratio to one way, taken round by round."""
    found = {}
    for name, each in seconds.items():
        by_round = sorted(a / b for a, b in zip(each, seconds[to], strict=True))
        found[str(name)] = [by_round[0], median(by_round), by_round[-1]]
    return found


def matrix() -> dict[str, Any]:
    """Multiply a matrix of 64 MB by n vectors at once, in float32."""
    d = 4096
    w = torch.randn(d, d)
    vectors = {n: torch.randn(n, d) for n in N_TOKENS}
    seconds = in_turns({n: lambda x=x: linear(x, w) for n, x in vectors.items()}, rounds=40)
    best = {n: min(each) for n, each in seconds.items()}
    return {
        "ratios": ratios(seconds, to=1),
        "gigabytes per second": 4 * d * d / best[1] / 1e9,
        "operations per second": 2 * d * d * max(N_TOKENS) / best[max(N_TOKENS)] / 1e9,
    }


def rearranged() -> dict[str, Any]:
    """Multiply as `matrix` does, by a matrix that oneDNN has rearranged beforehand; times to one vector's."""
    d = 4096
    w = torch.randn(d, d)
    x = {n: torch.randn(n, d) for n in (1, 2, 16)}
    packed = {n: torch.ops.mkldnn._reorder_linear_weight(w, n) for n in (2, 16)}

    def prepared(n: int) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x[n], packed[n], None, "none", [], "")

    ways: dict[Any, Callable[[], object]] = {str(n): lambda n=n: linear(x[n], w) for n in x}
    ways |= {f"{n}, rearranged": lambda n=n: prepared(n) for n in packed}
    return {"ratios": ratios(in_turns(ways, rounds=40), to="1")}


def halved() -> dict[str, Any]:
    """Multiply a matrix by one vector of two bytes a number, bfloat16, and of four; times to four's."""
    w, x = torch.randn(4096, 4096), torch.randn(1, 4096)
    narrow_w, narrow_x = w.bfloat16(), x.bfloat16()
    ways: dict[Any, Callable[[], object]] = {
        "4 bytes": lambda: linear(x, w),
        "2 bytes": lambda: linear(narrow_x, narrow_w),
    }
    return {"ratios": ratios(in_turns(ways, rounds=100), to="4 bytes")}


def reading() -> dict[str, Any]:
    """Read 256 tokens at once, and generate 256, with a model of 10.7 million parameters (43 MB)."""
    model = DecoderLM(LARGE).eval()
    ids = torch.randint(65, (1, 256))

    @torch.no_grad()
    def read() -> None:
        model(ids)

    seconds = in_turns({"read": read, "write": partial(_write, model, ids)}, rounds=7)
    n = sum(p.numel() for p in model.parameters())
    return {"ratio": ratios(seconds, to="read")["write"], "parameters": n}


def batches() -> dict[str, Any]:
    """Generate 1, 8 and 64 texts at once, 256 tokens each, with the model of `reading`; times to one."""
    model = DecoderLM(LARGE).eval()
    ids = torch.randint(65, (64, 256))
    ways: dict[Any, Callable[[], object]] = {n: partial(_write, model, ids[:n]) for n in (1, 8, 64)}
    return {"ratios": ratios(in_turns(ways, rounds=5), to=1)}


def eight_bits() -> dict[str, Any]:
    """Store weights as integers of 8 bits, with a scale per tensor: a matrix by a vector, and generating.

    PyTorch also rounds the vectors, each time anew, and multiplies integers.
    """
    large = DecoderLM(LARGE).eval()
    ids = torch.randint(65, (1, 256))
    layer, x = torch.nn.Sequential(torch.nn.Linear(4096, 4096)), torch.randn(1, 4096)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions of PyTorch leave this to another package
        small_layer, small = (quantize_dynamic(each, {torch.nn.Linear}) for each in (layer, large))

    @torch.no_grad()
    def multiply(by: torch.nn.Module) -> None:
        by(x)

    products: dict[Any, Callable[[], object]] = {
        "32 bits": partial(multiply, layer),
        "8 bits": partial(multiply, small_layer),
    }
    texts: dict[Any, Callable[[], object]] = {
        "32 bits": partial(_write, large, ids),
        "8 bits": partial(_write, small, ids),
    }
    return {
        "matrix": ratios(in_turns(products, rounds=100), to="32 bits")["8 bits"],
        "generating": ratios(in_turns(texts, rounds=7), to="32 bits")["8 bits"],
    }


def blocks() -> dict[str, Any]:
    """Let 4,096 queries of one head attend to 4,096 keys: all scores stored, and in blocks; times to blocks'.

    Both are PyTorch's own, in float32 and without a mask.
    """
    q, k, v = torch.randn(3, 1, 1, 4096, 64)

    @torch.no_grad()
    def attend(way: SDPBackend) -> None:
        with sdpa_kernel(way):
            scaled_dot_product_attention(q, k, v)

    ways: dict[Any, Callable[[], object]] = {
        "stored": partial(attend, SDPBackend.MATH),
        "in blocks": partial(attend, SDPBackend.FLASH_ATTENTION),
    }
    return {"ratio": ratios(in_turns(ways, rounds=20), to="in blocks")["stored"]}


def uncached() -> dict[str, Any]:
    """Generate 256 tokens with the model of `reading`, with a cache and without; times to those with one."""
    model = DecoderLM(LARGE).eval()
    ids = torch.randint(65, (1, 256))

    @torch.no_grad()
    def without() -> None:
        for t in range(256):
            model(ids[:, : t + 1])

    seconds = in_turns({"with": partial(_write, model, ids), "without": without}, rounds=7)
    return {"ratio": ratios(seconds, to="with")["without"]}


@torch.no_grad()
def _write(model: DecoderLM, ids: Tensor) -> None:
    """Read a text token by token with a cache, as if it were generated."""
    cache = model.new_cache()
    for token in ids.split(1, dim=1):
        model(token, cache=cache)


def passes() -> dict[str, Any]:
    """Time passes of both models and the products of their matrices alone; times to one token's pass."""
    large = DecoderLM(LARGE).eval()
    found = {}
    for name, model in (("shipped", _shakespeare()[0]), ("larger", large)):
        ids = torch.arange(25)[None]
        ways: dict[Any, Callable[[], object]] = {f"pass {n}": _pass(model, ids, n) for n in (1, 2, 5)}
        ways |= {f"matrices {n}": _matrices(model, n) for n in (1, 2, 5)}
        found[name] = ratios(in_turns(ways, rounds=40), to="pass 1")
    return found


def _pass(model: DecoderLM, ids: Tensor, n: int, *, times: int = 10) -> Callable[[], None]:
    """Return what reads n tokens after 20 others, some times."""

    @torch.no_grad()
    def read() -> None:
        for _ in range(times):
            model(ids[:, 20 : 20 + n], cache=cache)
            cache.truncate(20)

    with torch.no_grad():
        cache = model.new_cache()
        model(ids[:, :20], cache=cache)
    return read


def _matrices(model: DecoderLM, n: int, *, times: int = 10) -> Callable[[], None]:
    """Return what multiplies each matrix of a model by n vectors, some times."""
    found = [each.weight.detach() for each in model.modules() if isinstance(each, torch.nn.Linear)]
    inputs = [torch.randn(n, w.size(1)) for w in found]

    def multiply() -> None:
        for _ in range(times):
            for x, w in zip(inputs, found, strict=True):
                linear(x, w)

    return multiply


def _shakespeare() -> tuple[Any, Any]:
    """Return the shipped language model and its tokenizer."""
    return load_model("shakespeare-bpe")[:2]


def drafts() -> dict[str, Any]:
    """Count 3-grams in more and more of the model's own texts: 1 - TV, and tokens per pass."""
    model, tokenizer = _shakespeare()
    first, length = model.config.begin_id, model.config.max_len
    fresh = own_texts(model, first, n=60, length=length, seed=1_000)
    own = own_texts(model, first, n=4_800, length=length, seed=0).tolist()
    found: dict[str, dict[str, Any]] = {}
    for n_texts in (75, 300, 1_200, 4_800):
        for n in (1, 2, 3):
            draft = CountedDraft(own[:n_texts], vocab_size=tokenizer.vocab_size, n=n)
            found[f"{n} {n_texts}"] = {"overlap": overlaps(model, draft, fresh).mean().item()}
            if n == 3:
                by_k = {k: [per_pass(model, draft, k=k, seed=s) for s in SEEDS] for k in (1, 2, 4, 8)}
                found[f"{n} {n_texts}"]["per pass"] = by_k
            print(n_texts, n, found[f"{n} {n_texts}"], flush=True)
    return found


def per_pass(model: Any, draft: CountedDraft, *, k: int, seed: int) -> list[float]:
    """Return tokens per pass and the fraction of accepted proposals that were checked, in 20 texts."""
    n_new = model.config.max_len - 1
    tokens = passes = checked = 0
    for number in range(20):
        rng = torch.Generator().manual_seed(1_000 * seed + number)
        uniform = iter(torch.rand(n_new * (2 * k + 1), generator=rng, dtype=torch.float64))
        options = {"n_drafts": k, "max_new_tokens": n_new, "sampling": Sampling(), "uniform": uniform}
        steps = [*speculate(model, [model.config.begin_id], draft=draft, **options)]
        whole = [each for each in steps[:-1] if each]  # the last one is cut by the length
        tokens += sum(map(len, whole))
        passes += len(whole)
        checked += sum(min(len(each), k) for each in whole)
    return [tokens / passes, (tokens - passes) / checked]


def speed() -> dict[str, Any]:
    """Time texts with a draft and without, in turns."""
    model, tokenizer = _shakespeare()
    first, length = model.config.begin_id, model.config.max_len
    own = own_texts(model, first, n=4_800, length=length, seed=0).tolist()
    draft = CountedDraft(own, vocab_size=tokenizer.vocab_size)

    def write(**options: Any) -> None:
        for seed in range(10):
            generate(model, tokenizer, "", max_new_tokens=length - 1, seed=seed, **options)

    ways: dict[Any, Any] = {"plain": write}
    ways |= {str(k): lambda k=k: write(draft=draft, n_drafts=k) for k in (1, 2, 4, 8)}
    return ratios(in_turns(ways, rounds=9), to="plain")


def bits() -> dict[str, Any]:
    """Round the shipped model's matrices; the mean KL divergence from it, on five sets of its own texts."""
    model, _ = _shakespeare()
    sets = [own_texts(model, model.config.begin_id, n=40, length=64, seed=2_000 + s) for s in SEEDS]
    found: dict[str, Any] = {}
    for name, base in (("as it is", model), ("one large channel", with_one_large_channel(model))):
        found[name] = {
            block: {
                str(b): [divergence(model, rounded_model(base, bits=b, block=block), each) for each in sets]
                for b in (8, 6, 5, 4, 3, 2)
            }
            for block in BLOCKS
        }
        found[name]["not rounded"] = max(divergence(model, base, each) for each in sets)
        print(name, found[name], flush=True)
    return found


RATES = (1e-2, 2e-2, 4e-2)
SIDES = {"softmax 32": (False, 32), "fixed 32": (True, 32), "fixed 64": (True, 64)}


def recall() -> dict[str, Any]:
    """Train each kind of attention at three learning rates, five seeds each."""
    found: dict[str, Any] = {name: {} for name in SIDES}
    for name, (is_linear, d_model) in SIDES.items():
        for lr in RATES:
            found[name][f"{lr:g}"] = [
                train_recall(linear=is_linear, d_model=d_model, lr=lr, seed=seed) for seed in SEEDS
            ]
            print(name, lr, found[name][f"{lr:g}"][0], flush=True)
    return found


def longer() -> dict[str, Any]:
    """Train the fixed states four times as long, at two learning rates."""
    return {
        name: {
            f"{lr:g}": train_recall(linear=True, d_model=SIDES[name][1], lr=lr, seed=0, steps=2400)
            for lr in (7e-3, 2e-2)
        }
        for name in ("fixed 32", "fixed 64")
    }


if __name__ == "__main__":
    measure_parts(
        FILE,
        *(matrix, rearranged, halved, reading, batches, eight_bits, uncached, blocks),
        *(passes, drafts, speed, bits, recall, longer),
    )
