"""Time one training step, and measure peak memory, of the library and of others that do the same.

    python bench/run.py [NAME ...] [--json FILE] [--threads N] [--clock wall|cpu] [--quick]

A step is forward, loss, backward and optimizer. All contenders run in this process, in turns, on the same
batches; ratios are taken round by round. Before the race all get the same weights and must find the same loss
and the same gradient. Memory is measured in a process for each. Races of other sizes stay in the file.
"""

import argparse
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
if __name__ == "__main__":  # and not where a test imports this: lessons that run after it need the setting
    os.environ.pop("ATEN_CPU_CAPABILITY", None)  # that makes numbers the same on all machines

import torch  # noqa: E402

from bench.equal_work import check_equal_work  # noqa: E402
from bench.memory import measure  # noqa: E402
from bench.report import heading, new_parser, new_result, read_arguments, table, write  # noqa: E402
from bench.setting import OPTIMIZER, make_step  # noqa: E402
from bench.suites import OURS, QUICK, SETTINGS, SUITES, Suite  # noqa: E402
from bench.timing import CLOCKS, best_peer, summarize, time_in_turns  # noqa: E402
from exformer.storage.files import read_json  # noqa: E402

WARMUP = 3  # rounds
MIN_ROUNDS = 8


def race(suite: Suite, setting: Any, *, clock: str) -> dict[str, Any]:
    """Train all contenders with one setting.

    Args:
        suite: The kind of model.
        setting: The sizes.
        clock: One of `CLOCKS`.

    Returns:
        What the JSON says of it; `peak_bytes` is left empty.
    """
    torch.manual_seed(0)
    batches = suite.make_batches(setting)
    contenders = {who: build(setting) for who, build in suite.contenders.items()}
    losses = check_equal_work(contenders, batches)
    trained = {who: make_step(contender) for who, contender in contenders.items()}
    steps = {who: lambda turn, step=step: step(batches[turn % len(batches)]) for who, step in trained.items()}
    timed = {"warmup": WARMUP, "min_rounds": MIN_ROUNDS, "budget_s": setting.budget_s, "clock": CLOCKS[clock]}
    seconds = time_in_turns(steps, **timed)
    summaries = summarize(seconds, ours=OURS)
    best = best_peer(summaries, ours=OURS)
    return {
        "setting": asdict(setting),
        "sizes": str(setting),
        "batches": suite.shapes(batches),
        "padded_share": suite.padded_share(batches),
        "rounds": len(seconds[OURS]),
        "best_peer": best,
        "ratio_to_best_peer": summaries[best].ratio,
        "contenders": {
            who: {
                **asdict(summaries[who]),
                "peak_bytes": None,
                "parameters": contenders[who].n_parameters(),
                "loss": losses[who],
                "seconds": seconds[who],
            }
            for who in contenders
        },
    }


def read_races(file: Path) -> list[dict[str, Any]]:
    """Read the earlier results in a file, before races that end there.

    Args:
        file: Where the result goes.

    Returns:
        Its races; none if there is no such file, or a pipe in its place.

    Raises:
        ValueError: If it holds something else, which must not be lost.
        OSError: If it can't be read.
    """
    if not file.is_file():  # a pipe would be waited for
        return []
    try:
        races = read_json(file, what="a file of races")["races"]
        names = [race["name"] for race in races if race["machine"] and race["optimizer"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} holds something else than races of training steps: move it away") from error
    if unknown := set(names) - {*SETTINGS, *QUICK}:
        raise ValueError(f"{file} holds {', '.join(sorted(unknown))}, which nobody races now: move it away")
    return races


def keep(file: Path, name: str, found: list[dict[str, Any]]) -> None:
    """Replace the races of one size in a file; those of other sizes stay."""
    races = [race for race in read_races(file) if race["name"] != name] + found
    order = [*SETTINGS, *QUICK]
    write({"races": sorted(races, key=lambda race: order.index(race["name"]))}, file)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = new_parser(__doc__, quick="a tiny model for a moment: does it all work?")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{' or '.join(SETTINGS)}; all if left out")
    args = read_arguments(parser, name="bench")
    if unknown := [name for name in args.names if name not in SETTINGS]:
        parser.error(f"there is no {', '.join(unknown)}; there is {', '.join(SETTINGS)}")
    try:
        read_races(args.json)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    return args


def main() -> None:
    """Run the benchmark, print the result and write it."""
    args = parse()
    chosen = QUICK if args.quick else {name: SETTINGS[name] for name in args.names or SETTINGS}
    run = new_result(args) | {"optimizer": OPTIMIZER, "warmup_rounds": WARMUP}
    print(heading(run))
    for name, (kind, sizes) in chosen.items():
        races = []
        for i, setting in enumerate(SUITES[kind].races(sizes)):
            found = {"name": name, **run, **race(SUITES[kind], setting, clock=args.clock)}
            if i == 0:  # memory once a size
                names = [OURS] if args.quick else list(SUITES[kind].contenders)
                for who, peak in measure(names, setting, kind=kind, threads=args.threads).items():
                    found["contenders"][who]["peak_bytes"] = peak
            races.append(found)
            print(table(found), flush=True)
        keep(args.json, name, races)  # at once: a run that is broken off has lost only one size


if __name__ == "__main__":
    main()
