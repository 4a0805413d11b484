"""The result as tables to read; the JSON holds the same and every round."""

import os
import platform
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from bench.timing import CLOCKS
from exformer.recipes.machine_facts import processor_name
from exformer.storage.files import check_writable, write_json

PACKAGES = ("exformer", "torch", "transformers", "x-transformers", "numpy")
RATIO = "ours / it: median, over the rounds, of our time divided by its time; below 1 we are faster"
COLUMNS = ("", "ms a step", "ours / it", "middle half", "peak MB", "parameters", "loss")


def machine() -> dict[str, Any]:
    """Describe the machine and the packages."""
    return {
        "cpu": processor_name(),
        "cores": os.cpu_count(),
        "vector_instructions": torch.backends.cpu.get_cpu_capability(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def new_result(args: Namespace, *, packages: Sequence[str] = ()) -> dict[str, Any]:
    """Set the number of threads, and begin the result with the machine and the clock.

    Args:
        args: Of `read_arguments`.
        packages: Whose versions count, beside `PACKAGES`.
    """
    result = {"machine": machine() | {package: version(package) for package in packages}}
    if "threads" in args:
        torch.set_num_threads(args.threads)
        result["threads"] = args.threads
    return result | {"clock": args.clock}


def legend(result: dict[str, Any], *, packages: Sequence[str], threads: str = "thread(s)") -> str:
    """Return what all races of texts have in common, and how to read their lines.

    Args:
        result: As `new_result` gave it.
        packages: Whose versions are named.
        threads: Words for whose threads they are.
    """
    m = result["machine"]
    return f"""\
{m["cpu"]}, {", ".join(f"{package} {m[package]}" for package in packages)}
{result["threads"]} {threads}, {result["clock"]} clock
{RATIO}
in brackets the middle half of the rounds"""


def spread(timing: dict[str, Any]) -> str:
    """Format the ratio to a peer, with the middle half of the rounds."""
    return f"{timing['ratio']:.3f}  ({timing['ratio_low']:.3f} to {timing['ratio_high']:.3f})"


def heading(result: dict[str, Any]) -> str:
    """Return what all races have in common, and how to read the columns."""
    m = result["machine"]
    return f"""\
{m["cpu"]}, {m["cores"]} cores, {m["vector_instructions"]}, {m["system"]}, Python {m["python"]}
{", ".join(f"{package} {m[package]}" for package in PACKAGES)}
{result["threads"]} thread(s), {result["clock"]} clock, {result["optimizer"]}

Dropout, where there is any, acts on the embeddings and on each sublayer's output, in every model; the further
dropouts of nn.Transformer are switched off. x-transformers has the biases added that it lacks. The loss is
F.cross_entropy, but exformer.nn.loss for ours.
  ms a step     median of the rounds, the first {result["warmup_rounds"]} left out: the whole step
  ours / it     median, over the rounds, of our time divided by its time; below 1 we are faster
  middle half   of the rounds had a ratio between these
  peak MB       what building and training added to a process of its own
  loss          with our weights, without dropout, before the race: the same as far as rounding and, in GPT-2
                as configured, an approximation let it be, or there is no race"""


def table(race: dict[str, Any]) -> str:
    """Format one race.

    Args:
        race: One of the JSON's races.

    Returns:
        Lines: its name, a row for each contender, the ratio to the fastest peer.
    """
    rows = [COLUMNS, *(_row(name, found) for name, found in race["contenders"].items())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    ]
    read = " and ".join(race["batches"][0])
    n_tokens = sum(rows * width for batch in race["batches"] for rows, width in batch.values())
    return "\n".join(
        (
            f"\n{race['name']}: {race['sizes']}",
            f"{race['rounds']} rounds; {n_tokens // len(race['batches'])} tokens a batch ({read}), "
            f"{race['padded_share']:.0%} of them padding",
            *lines,
            f"ours / best peer ({race['best_peer']}): {race['ratio_to_best_peer']:.3f}",
        )
    )


def _row(name: str, found: dict[str, Any]) -> tuple[str, ...]:
    return (
        name,
        f"{1000 * found['median_s']:.1f}",
        f"{found['ratio']:.3f}",
        f"{found['ratio_low']:.3f} to {found['ratio_high']:.3f}",
        "" if found["peak_bytes"] is None else f"{found['peak_bytes'] / 1e6:.0f}",
        f"{found['parameters']:,}",
        f"{found['loss']:.5f}",
    )


def new_parser(doc: str, *, quick: str, threads: str = "of torch (1)") -> ArgumentParser:
    """Make a parser with the options that all benchmarks have.

    Args:
        doc: Of the benchmark; its first line says what it does.
        quick: Help of ``--quick``.
        threads: Help of ``--threads``; none if empty.
    """
    parser = ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="for all rounds; bench/results/ if left out"
    )
    if threads:
        parser.add_argument("--threads", type=int, default=1, metavar="N", help=threads)
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu: others on the machine count less"
    )
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser


def read_arguments(parser: ArgumentParser, *, name: str) -> Namespace:
    """Parse the command line, and check that the result can be written before the minutes it takes."""
    args = parser.parse_args()
    if getattr(args, "threads", 1) < 1:
        parser.error(f"--threads must be at least 1, got {args.threads}")
    args.json = result_file(parser, args.json, name="quick_" * args.quick + name)
    return args


def result_file(parser: ArgumentParser, given: Path | None, *, name: str) -> Path:
    """Check that a result can be written, before the minutes that it takes; return its file.

    Args:
        parser: Ends the program, with what is wrong, if nothing can be written there.
        given: By the user, or None.
        name: Of the file in `bench/results/` if none was given.
    """
    file = given or Path(__file__).parent / "results" / f"{name}.json"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        check_writable(file, what="the result")
    except (ValueError, OSError) as error:
        parser.error(str(error))
    return file


def write(result: dict[str, Any], file: Path) -> None:
    """Write a result as JSON, the seconds of all rounds with six digits, and print where it is.

    Args:
        result: What JSON can hold.
        file: Where to; its folder is made if need be. What was there stays until all is written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, _shortened(result), indent=1)
    print(f"\nall rounds: {file}", flush=True)


def _shortened(value: Any, name: str = "") -> Any:
    """Return JSON in which whatever stands below "seconds" has six digits."""
    if isinstance(value, dict):
        return {key: _shortened(part, name if name == "seconds" else key) for key, part in value.items()}
    if isinstance(value, list):
        return [_shortened(part, name) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) and name == "seconds" else value
