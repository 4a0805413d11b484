"""The CPU-minute board: how well can a model learn Shakespeare's characters in a minute of two cores?

    python bench/board.py [--seconds 60 180] [--entries NAME ...] [--json FILE] [--quick]

An entry is a program of one file in bench/board_entries/. In an empty folder, on two cores, it is started as

    python ENTRY.py --train FILE --seed S --seconds 60 --out FOLDER

and must leave a model in FOLDER, as the library's `save_model` writes it: a `DecoderLM` with its
`CharTokenizer`, in safetensors and JSON. The clock on the wall counts, from the start of Python to its end:
imports, data and saving too. An entry that is not done in time, leaves no model, or fails is refused.

What counts is the validation loss of the model that it leaves, in nats per character; finding it is not part
of the time. The validation part of Tiny Shakespeare, its last tenth, is cut into windows side by side, as in
bench/shakespeare.py: a window of 65 characters begins at each multiple of 64; the model reads the first 64
and predicts the last 64, each from those before it in its window. So every character is predicted once, but
for the first and the up to 64 at the end that fill no window. All models are judged in these windows,
whatever length they were trained on: a longer context gains nothing here, and a model that can't read 64
characters is refused. FILE holds the training part and nothing else.

The rules:

- An entry is readable: one file, without weights or data of its own, without a network or other processes. It
  may import the standard library, NumPy, PyTorch and this library, but neither its texts and recipes nor a
  trained model. `check_source` finds the slips; for the rest a person reads the entry.
- A record is beaten if the mean loss over five seeds is lower with p < 0.01 in a one-sided Welch t-test. For
  that the record is run again, on the same machine, in the same sitting: the entries take turns, seed by seed
  (A B A B ...). Rows of other sittings are kept, with their machines, and compared with nothing here.
- The first entry of `ENTRIES` that runs in a sitting is its first record; each later one tries to beat the
  record that it finds. A new entry is added at the end.
"""

import ast
import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import atan, cos, exp, lgamma, pi, sqrt
from pathlib import Path
from shutil import copyfile
from statistics import mean, stdev, variance
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
if __name__ == "__main__":  # and not where a test imports this: lessons that run after it need the setting
    os.environ.pop("ATEN_CPU_CAPABILITY", None)  # that makes numbers the same on all machines

import torch  # noqa: E402

from bench.report import machine, result_file, write  # noqa: E402
from exformer.hub.pretrained import load_model  # noqa: E402
from exformer.models.decoder_lm import DecoderLM  # noqa: E402
from exformer.recipes import find_recipe  # noqa: E402
from exformer.recipes.datasets import CORPORA, Text  # noqa: E402
from exformer.recipes.task import validation_batches  # noqa: E402
from exformer.tokenizers.characters_and_words import CharTokenizer  # noqa: E402
from exformer.training.trainer import mean_loss  # noqa: E402

FOLDER = Path(__file__).parent / "board_entries"
#: Files of that folder, in the order in which they came.
ENTRIES = ("nanogpt", "muon")
BUDGETS, SEEDS, CORES = (60, 180), 5, 2
WINDOW, LIMIT = 64, 0.01
#: Of a quick run: seconds for an entry, and for how long it may really take; a busy machine starts slowly.
QUICK, PATIENCE = 3, 120

_PACKAGES = {"torch", "numpy", "exformer"}
_MODULES = {
    *("exformer.corpora", "exformer.recipes", "exformer_lessons", "exformer.cli"),  # texts
    *("asyncio", "ftplib", "http", "imaplib", "poplib", "smtplib", "socket", "ssl", "urllib"),  # a network
    *("concurrent", "ctypes", "multiprocessing", "subprocess"),  # other processes
    *("importlib", "pickle", "runpy"),  # code from elsewhere
}
_NAMES = {"__import__", "eval", "exec", "load_model", "tiny_shakespeare"}


class RefusalError(Exception):
    """An entry broke a rule; the message says which."""


@dataclass(frozen=True)
class Trial:
    """Hold what one training reached.

    Args:
        loss: On the validation part, in nats per character.
        seconds: From the start of Python to its end.
        processor_seconds: All cores together; much less than twice the seconds: others used the cores too.
    """

    loss: float
    seconds: float
    processor_seconds: float


# --- one training ---


def check_source(path: Path) -> str:
    """Return the first line of an entry's docstring; refuse imports and names that an entry may not have.

    Raises:
        RefusalError: If it has one.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            used = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            used = [f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names]
        else:
            used = []
            name = getattr(node, "attr", getattr(node, "id", ""))  # of attributes and of names
            if name in _NAMES:
                raise RefusalError(
                    f"{path.stem} uses {name}: an entry learns from the text it is given alone"
                )
        for module in used:
            first, name = module.split(".")[0], module.rsplit(".", 1)[-1]
            if first not in _PACKAGES | sys.stdlib_module_names:
                raise RefusalError(
                    f"{path.stem} imports {module}: expected numpy, torch, exformer, or the standard library"
                )
            if name in _NAMES or any(f"{module}.".startswith(f"{own}.") for own in _MODULES):
                raise RefusalError(
                    f"{path.stem} imports {module}: it has texts, weights, a network or processes"
                )
    return (ast.get_docstring(tree) or path.stem).split("\n")[0].rstrip(".")


def judge(path: Path, data: Text, *, seed: int, seconds: int, limit: float, cores: int = CORES) -> Trial:
    """Start an entry, wait for its model, and find the model's validation loss.

    Args:
        path: The entry's file.
        data: The entry is given the training part.
        seed: Of the entry.
        seconds: That it is told it has.
        limit: Seconds after which it is stopped.
        cores: That it may use.

    Raises:
        RefusalError: If there is no model in time, or not one that can be judged.
    """
    who = f"{path.stem}, seed {seed}"
    with TemporaryDirectory() as folder:
        here = Path(folder)
        for name in ("work", "nothing", "model"):
            (here / name).mkdir()
        program, train = here / "work" / path.name, here / "train.txt"
        copyfile(path, program)
        train.write_text(data.train, encoding="utf-8", newline="")
        command = [sys.executable, str(program), "--train", str(train), "--seed", str(seed)]
        command += ["--seconds", str(seconds), "--out", str(here / "model")]
        before, start = os.times(), time.perf_counter()
        try:
            with only_cores(cores):
                done = subprocess.run(
                    command,
                    cwd=here / "work",
                    env=environment(here / "nothing", cores),
                    timeout=limit,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                )
        except subprocess.TimeoutExpired:
            raise RefusalError(f"{who}: refused, it was not done after {limit:g} seconds") from None
        used, after = time.perf_counter() - start, os.times()
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise RefusalError(f"{who}: refused, it ended with code {done.returncode}: {last}")
        if not any((here / "model").iterdir()):
            raise RefusalError(f"{who}: refused, it left no model")
        try:
            loss = validation_loss(here / "model", data.val)
        except ValueError as error:
            raise RefusalError(f"{who}: refused, its model can't be judged: {error}") from error
    worked = after.children_user + after.children_system - before.children_user - before.children_system
    return Trial(loss, used, worked)


def validation_loss(folder: Path, text: str) -> float:
    """Return the loss of a saved model in nats per character, in windows of `WINDOW` side by side.

    Raises:
        ValueError: If there is no model, or one that can't be judged so.
    """
    model, tokenizer, _ = load_model(folder)
    if not isinstance(model, DecoderLM) or not isinstance(tokenizer, CharTokenizer):
        raise ValueError("expected a DecoderLM with a CharTokenizer")
    recipe = find_recipe("shakespeare-char")
    batches = validation_batches(recipe, Text("", text, {}), tokenizer, max_len=WINDOW)
    return mean_loss(model, batches, DecoderLM.loss)


def environment(nothing: Path, cores: int) -> dict[str, str]:
    """Return an entry's environment: the library, but no text of its, no network, no thread too many.

    Args:
        nothing: An empty folder.
        cores: How many threads torch may use.
    """
    nowhere = dict.fromkeys(("EXFORMER_DATA", "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"), str(nothing))
    closed = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(cores))
    own = {name: value for name, value in os.environ.items() if name != "ATEN_CPU_CAPABILITY"}
    return own | nowhere | closed | threads | {"PYTHONPATH": str(ROOT / "lib")}


@contextmanager
def only_cores(cores: int) -> Iterator[None]:
    """Let what is started here run on so many cores; where the system can't say so, on all."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


# --- records ---


def welch(new: Sequence[float], old: Sequence[float]) -> float:
    r"""Return p of the one-sided Welch t-test that the mean of the new is lower.

    .. math::
        t = \frac{\bar x_{old} - \bar x_{new}}{\sqrt{s_{new}^2/n_{new} + s_{old}^2/n_{old}}}
    """
    a, b = variance(new) / len(new), variance(old) / len(old)
    lower = mean(old) - mean(new)
    if a + b == 0:
        return 0.0 if lower > 0 else 1.0
    freedom = (a + b) ** 2 / (a**2 / (len(new) - 1) + b**2 / (len(old) - 1))
    return student_tail(lower / sqrt(a + b), freedom)


def student_tail(t: float, freedom: float) -> float:
    r"""Return how probable more than t is under Student's distribution.

    .. math::
        P(T > t) = \frac{1}{B(\frac12, \frac\nu2)} \int_{\arctan(t / \sqrt\nu)}^{\pi/2} \cos^{\nu-1} x \, dx

    Args:
        t: Any number.
        freedom: Degrees of freedom, at least 1.
    """
    pieces, begin = 10_000, atan(t / sqrt(freedom))
    width = (pi / 2 - begin) / pieces
    area = width * sum(cos(begin + (i + 0.5) * width) ** (freedom - 1) for i in range(pieces))
    return area * exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(pi)


def make_rows(trials: dict[str, list[Trial]], titles: dict[str, str], **common: Any) -> list[dict[str, Any]]:
    """Make the rows of one sitting and budget: what each entry reached, and whether it beat the record.

    Args:
        trials: Of each entry, one a seed, in the order of the entries.
        titles: Of each entry, in words.
        common: What all rows have in common: budget, machine and so on.
    """
    rows: list[dict[str, Any]] = []
    record: dict[str, Any] | None = None
    for entry, own in trials.items():
        losses = [trial.loss for trial in own]
        p = None if record is None else welch(losses, record["losses"])
        rows.append(
            {
                "entry": entry,
                "title": titles[entry],
                **common,
                "losses": losses,
                "mean": mean(losses),
                "sd": stdev(losses),
                "seconds": [trial.seconds for trial in own],
                "processor_seconds": [trial.processor_seconds for trial in own],
                "against": None if record is None else record["entry"],
                "p": p,
                "record": False,
            }
        )
        if p is None or p < LIMIT:
            record = rows[-1]
    if record is not None:
        record["record"] = True
    return rows


def merge(old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put new rows in the place of those of the same entry and budget, in order of budgets and entries."""
    rows = {(row["budget"], row["entry"]): row for row in [*old, *new]}
    order = {entry: place for place, entry in enumerate(ENTRIES)}
    return [rows[key] for key in sorted(rows, key=lambda key: (key[0], order.get(key[1], len(order))))]


def sit(
    entries: Sequence[str], data: Text, *, seconds: int, seeds: int, limit: float, cores: int
) -> tuple[dict[str, list[Trial]], list[str]]:
    """Let the entries train in turns, seed by seed.

    Returns:
        Their trials, and a sentence for each that was refused.
    """
    trials: dict[str, list[Trial]] = {entry: [] for entry in entries}
    refused = []
    for seed in range(seeds):
        for entry in [*trials]:
            path = FOLDER / f"{entry}.py"
            try:
                one = judge(path, data, seed=seed, seconds=seconds, limit=limit, cores=cores)
            except RefusalError as error:
                refused.append(str(error))
                del trials[entry]
                print(refused[-1], flush=True)
                continue
            trials[entry].append(one)
            print(
                f"{seconds:4} s  {entry:12} seed {seed}  loss {one.loss:.4f}  {one.seconds:6.1f} s used, "
                f"{one.processor_seconds:6.1f} s of processor time",
                flush=True,
            )
    return trials, refused


def read_arguments() -> Namespace:
    """Read the command line; be sure that the file can be written before the minutes it takes."""
    parser = ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=int, nargs="+", default=BUDGETS, metavar="N", help="60 and 180")
    parser.add_argument("--entries", nargs="+", default=ENTRIES, choices=ENTRIES, help="all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="bench/results/board.json")
    parser.add_argument("--quick", action="store_true", help="two seeds, seconds: does it all work?")
    args = parser.parse_args()
    args.seconds = [QUICK] if args.quick else args.seconds
    if min(args.seconds) < 1:
        parser.error(f"--seconds must be at least 1, got {min(args.seconds)}")
    args.entries = [entry for entry in ENTRIES if entry in args.entries]
    args.json = result_file(parser, args.json, name="quick_board" if args.quick else "board")
    return args


def main() -> None:
    """Run what is asked for, print it, write it down beside what was there."""
    args = read_arguments()
    titles = {}
    for entry in args.entries:
        try:
            titles[entry] = check_source(FOLDER / f"{entry}.py")
        except RefusalError as error:
            sys.exit(f"refused: {error}")
    data = CORPORA["tiny shakespeare"]()
    seeds, cores = (2, 1) if args.quick else (SEEDS, CORES)
    torch.set_num_threads(cores)
    sitting = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    common = {"sitting": sitting, "machine": machine(), "threads": cores, "clock": "wall"}
    refused = []
    for seconds in args.seconds:
        limit = PATIENCE if args.quick else seconds
        trials, sentences = sit(args.entries, data, seconds=seconds, seeds=seeds, limit=limit, cores=cores)
        refused += sentences
        rows = make_rows(trials, titles, budget=seconds, **common)
        there = json.loads(args.json.read_text(encoding="utf-8"))["rows"] if args.json.is_file() else []
        for row in rows:
            figures = f"{seconds:4} s  {row['entry']:12} {row['mean']:.4f} ± {row['sd']:.4f}"
            p = "" if row["p"] is None else f"  p {row['p']:.2g} against {row['against']}"
            print(f"{figures}{p}{'  the record' if row['record'] else ''}")
        if rows:
            write({"window": WINDOW, "limit": LIMIT, "rows": merge(there, rows)}, args.json)
    if refused:
        sys.exit("\n".join(refused))


if __name__ == "__main__":
    main()
