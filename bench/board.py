"""The CPU-minute board: how low a loss on Shakespeare's characters can two cores reach in one minute?

    python bench/board.py [--seconds 60 180] [--entries NAME ...] [--json FILE] [--quick]

To take part, add a function like `nanogpt` and `muon` below to `ENTRIES`, run the board, and propose both the
function and the new bench/results/board.json. An entry gets the training text, a seed and `left`, which tells
the fraction of its time that is left; it returns a DecoderLM and its CharTokenizer. The rules:

- An entry learns from the given text and nothing else: no weights, no other text, no network. It uses this
  library, PyTorch, NumPy and the standard library, on two cores and in one process.
- The wall clock counts everything, from the start of Python to the saved model. A late entry is refused.
- The score is the loss on the validation part of Tiny Shakespeare, in nats per character, in windows side by
  side: the model reads 64 characters and predicts each from those before it in the window.
- A record is beaten by a lower mean over five seeds with p < 0.01 in a one-sided Welch t-test, on the same
  machine in one sitting, in which the entries take turns, seed by seed. The first entry is the first record.
"""

import json
import math
import os
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev, variance
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch
from torch import Tensor, nn

from bench.report import machine, result_file, write
from exformer import CharTokenizer, DecoderLM, DecoderLMConfig, Muon, TextWindows, load_model, save_model
from exformer.recipes import find_recipe
from exformer.recipes.datasets import CORPORA, Text
from exformer.recipes.malloc import disable_malloc_trim
from exformer.recipes.task import validation_batches
from exformer.training.loop import set_seed, training_steps
from exformer.training.optimizers import adamw, split_parameters
from exformer.training.validation import mean_loss

BUDGETS, SEEDS, CORES = (60, 180), 5, 2
WINDOW, BATCH, LIMIT = 64, 12, 0.01
RESERVE = 1.5  # seconds, to save the model and to end
QUICK, PATIENCE = 3, 120  # seconds that an entry of a quick run is told, and that it may take

Left = Callable[[], float]
Trained = tuple[DecoderLM, CharTokenizer]
Trial = tuple[float, float, float]  # loss, seconds, and seconds of all cores together


# --- The entries


def nanogpt(text: str, seed: int, left: Left) -> Trained:
    """nanoGPT: its recipe for a laptop's processor, its learning rate following the clock."""
    tokenizer, batches = read(text, seed)
    model = new_nanogpt(tokenizer.vocab_size, d_model=128, n_heads=4, n_layers=4, context=WINDOW)

    def lr(step: int) -> float:
        cosine = 0.1 + 0.9 * (1 + math.cos(math.pi * (1 - left()))) / 2
        return 1e-3 * min(step / 100, cosine)

    train(model, batches, left, DecoderLM.loss, [(nanogpt_adamw(model), lr)], clip_norm=1.0)
    return model, tokenizer


def new_nanogpt(vocab_size: int, *, d_model: int, n_heads: int, n_layers: int, context: int) -> DecoderLM:
    """Make nanoGPT's model (Karpathy 2022)."""
    sizes = {"d_model": d_model, "n_heads": n_heads, "n_layers": n_layers, "max_len": context}
    plain = {"dropout": 0.0, "bias": False, "scale_embedding": False}
    model = DecoderLM(DecoderLMConfig(vocab_size, d_ff=4 * d_model, **sizes, **plain))
    for name, p in model.named_parameters():
        if p.ndim == 2:
            before_sum = name.endswith(("w_o.weight", "w_2.weight"))
            nn.init.normal_(p, std=0.02 / math.sqrt(2 * n_layers) if before_sum else 0.02)
    return model


def nanogpt_adamw(model: nn.Module) -> torch.optim.Optimizer:
    """Make AdamW with weight decay for matrices alone."""
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99))


def muon(text: str, seed: int, left: Left) -> Trained:
    """Muon: the recipe shakespeare-char, its learning rates following the clock."""
    tokenizer, batches = read(text, seed)
    sizes = {"d_model": 128, "n_heads": 4, "d_ff": 512, "n_layers": 4, "max_len": WINDOW, "dropout": 0.0}
    block = {"positions": "rotary", "qk_norm": True, "zero_init": True, "activation": "squared_relu"}
    model = DecoderLM(DecoderLMConfig(tokenizer.vocab_size, **sizes, **block, tie_output=False))
    can = torch.cpu.get_capabilities()
    half = any(can.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))

    def loss(model: DecoderLM, batch: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            return model.loss(batch)

    matrices, rest = split_parameters(model)
    optimizers = [
        (Muon(matrices, momentum=0.9), lambda step: 0.03 * min(step / 10, left())),
        (adamw(rest, betas=(0.8, 0.95)), lambda step: 0.01 * min(step / 10, left())),
    ]
    train(model, batches, left, loss, optimizers)
    return model, tokenizer


ENTRIES = {"nanogpt": nanogpt, "muon": muon}  # in the order in which they came


def read(text: str, seed: int) -> tuple[CharTokenizer, TextWindows]:
    """Return a tokenizer of the text's characters, and random windows of its tokens."""
    set_seed(seed)
    tokenizer = CharTokenizer.from_texts([text])
    return tokenizer, TextWindows(torch.tensor(tokenizer.encode(text)), WINDOW, BATCH, seed)


def train(model: DecoderLM, data: TextWindows, left: Left, loss: Any, optimizers: Any, **more: Any) -> None:
    """Take steps until the time is over."""
    batches = map(data.batch, data.steps())
    for _ in training_steps(model, batches, loss_fn=loss, optimizers=optimizers, **more):
        if not left():
            break


# --- One training, in a process of its own


def run_entry(name: str, seed: str, start: str, seconds: str, text: str, out: str) -> None:
    """Train an entry and save its model: what the process of an entry does."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: torch.get_num_threads()])
    disable_malloc_trim()
    given, budget = Path(text).read_bytes().decode(), int(seconds) - RESERVE
    left = lambda: max(0.0, 1 - (time.time() - float(start)) / budget)  # noqa: E731
    save_model(out, *ENTRIES[name](given, int(seed), left), card={"seed": int(seed)})


def judge(name: str, data: Text, *, seed: int, seconds: int, limit: float, cores: int) -> Trial:
    """Let an entry train on the training part, for at most `limit` seconds, and evaluate what it saved."""
    with TemporaryDirectory() as folder:
        text, out = Path(folder, "train.txt"), Path(folder, "model")
        text.write_bytes(data.train.encode())
        env = {key: value for key, value in os.environ.items() if key != "ATEN_CPU_CAPABILITY"}
        env |= {"OMP_NUM_THREADS": str(cores), "PYTHONPATH": str(ROOT / "lib")}
        before, start = os.times(), time.time()
        command = [sys.executable, __file__, "--train", name, seed, start, seconds, text, out]
        subprocess.run([*map(str, command)], env=env, timeout=limit, check=True)
        used, after = time.time() - start, os.times()
        worked = after.children_user + after.children_system - before.children_user - before.children_system
        return validation_loss(out, data.val), used, worked


def validation_loss(folder: Path, text: str) -> float:
    """Return the loss of a saved model in nats per character, in windows of 64 side by side."""
    model, tokenizer, _ = load_model(folder)
    batches = validation_batches(
        find_recipe("shakespeare-char"), Text("", text, {}), tokenizer, max_len=WINDOW
    )
    return mean_loss(model, batches, DecoderLM.loss)


# --- Records


def welch(new: Sequence[float], old: Sequence[float]) -> float:
    """Return p of the one-sided Welch t-test that the mean of the new is lower."""
    a, b = variance(new) / len(new), variance(old) / len(old)
    lower = mean(old) - mean(new)
    freedom = (a + b) ** 2 / (a**2 / (len(new) - 1) + b**2 / (len(old) - 1))
    # The tail of Student's distribution: the integral of cos^(freedom - 1) from arctan(t / √freedom) to π/2.
    pieces, begin = 10_000, math.atan(lower / math.sqrt(a + b) / math.sqrt(freedom))
    width = (math.pi / 2 - begin) / pieces
    area = width * sum(math.cos(begin + (i + 0.5) * width) ** (freedom - 1) for i in range(pieces))
    return area * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)


def make_rows(trials: dict[str, list[Trial]], **common: Any) -> list[dict[str, Any]]:
    """Make the rows of one sitting and budget: what each entry reached, and whether it beat the record."""
    rows: list[dict[str, Any]] = []
    record: dict[str, Any] = {}
    for entry, own in trials.items():
        losses, seconds, worked = ([*each] for each in zip(*own, strict=True))
        title = (ENTRIES[entry].__doc__ or entry).rstrip(".")
        row = {"entry": entry, "title": title, **common, "losses": losses, "mean": mean(losses)}
        row |= {"sd": stdev(losses), "seconds": seconds, "processor_seconds": worked}
        p = welch(losses, record["losses"]) if record else None
        rows.append(row | {"against": record.get("entry"), "p": p, "record": False})
        if p is None or p < LIMIT:
            record = rows[-1]
    record["record"] = True
    return rows


def main() -> None:
    """Let the entries take turns, print what they reached, and write it beside what was there."""
    parser = ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=int, nargs="+", default=BUDGETS, metavar="N", help="60 and 180")
    parser.add_argument("--entries", nargs="+", default=[*ENTRIES], choices=ENTRIES, help="all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="bench/results/board.json")
    parser.add_argument("--quick", action="store_true", help="two seeds of three seconds: does it all work?")
    args = parser.parse_args()
    if min(args.seconds) < 1:
        parser.error(f"--seconds must be at least 1, got {min(args.seconds)}")
    file = result_file(parser, args.json, name="quick_board" if args.quick else "board")
    data = CORPORA["tiny shakespeare"]()
    seeds, cores = (2, 1) if args.quick else (SEEDS, CORES)
    sitting = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    common = {"sitting": sitting, "machine": machine(), "threads": cores, "clock": "wall"}
    for seconds in [QUICK] if args.quick else args.seconds:
        limit = PATIENCE if args.quick else seconds
        trials: dict[str, list[Trial]] = {entry: [] for entry in ENTRIES if entry in args.entries}
        for seed in range(seeds):
            for entry, own in trials.items():
                own.append(judge(entry, data, seed=seed, seconds=seconds, limit=limit, cores=cores))
                print(f"{seconds:4} s  {entry:12} seed {seed}  loss {own[-1][0]:.4f}", flush=True)
        rows = make_rows(trials, budget=seconds, **common)
        for row in rows:
            p = "" if row["p"] is None else f"  p {row['p']:.2g} against {row['against']}"
            p += "  the record" * row["record"]
            print(f"{seconds:4} s  {row['entry']:12} {row['mean']:.4f} ± {row['sd']:.4f}{p}")
        if file.is_file():  # rows of other budgets, entries and sittings stay
            old = json.loads(file.read_text(encoding="utf-8"))["rows"]
            rows += [row for row in old if row["budget"] != seconds or row["entry"] not in trials]
        rows.sort(key=lambda row: (row["budget"], [*ENTRIES, row["entry"]].index(row["entry"])))
        write({"window": WINDOW, "limit": LIMIT, "rows": rows}, file)


if __name__ == "__main__":
    run_entry(*sys.argv[2:]) if sys.argv[1:2] == ["--train"] else main()
