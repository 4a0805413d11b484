"""Time byte-pair encoding beside Hugging Face's and OpenAI's, and beside recounting all pairs for each merge.

    python bench/byte_pairs.py [FILE ...] [--json FILE] [--threads N] [--clock wall|cpu] [--quick]

Without a FILE the texts are the Python manual, Tiny Shakespeare where it can be had, and 5 million
characters of Python's own sources. Each is given as one string.
All run in this process, in turns, and ratios are taken round by round. There is no race between different
results: merges and ids must be the same.
"""

import argparse
import multiprocessing
import os
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.byte_pair_peers import ids_of, learn_by_recounting, merges_of, tiktoken_of, train_hugging_face  # noqa: E402
from bench.memory import measure_alone, peak_bytes  # noqa: E402
from bench.report import legend, new_parser, new_result, read_arguments, spread, write  # noqa: E402
from bench.timing import CLOCKS, summarize, time_in_turns  # noqa: E402
from exformer.corpora.real import tiny_shakespeare  # noqa: E402
from exformer.tokenizers.bpe import BPETokenizer  # noqa: E402
from exformer.tokenizers.vocabulary import SPECIALS  # noqa: E402

OURS, PEER, OTHER, SLOW = "exformer", "tokenizers", "tiktoken", "recounting"
TIMED = {"warmup": 0, "min_rounds": 3, "budget_s": 6.0}  # comparing their ids warms up
LINES = (("training", "training"), ("encoding", "encoding"), ("encoding_new", "encoding, nothing remembered"))


def texts_without_files() -> dict[str, str]:
    """Return texts that come with every Python, and Tiny Shakespeare."""
    from pydoc_data.topics import topics

    try:
        plays = {"Tiny Shakespeare": "".join(tiny_shakespeare())}
    except ConnectionError as error:
        print(f"Tiny Shakespeare is left out: {error}")
        plays = {}

    paths = sorted(Path(os.__file__).parent.rglob("*.py"))
    sources = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in paths)
    manual = "\n".join(topics[name] for name in sorted(topics))
    return {"Python manual": manual, **plays, "Python sources": sources[:5_000_000]}


def race(text: str, *, n_merges: int, clock: str, timed: dict[str, Any]) -> dict[str, Any]:
    """Train all tokenizers, or take trained ones, and encode one text.

    Args:
        text: One string.
        n_merges: How many merges to learn.
        clock: One of `CLOCKS`.
        timed: Options of `time_in_turns`.

    Returns:
        For each of the works the seconds of all, and for each peer the ratio and its spread.

    Raises:
        ValueError: If their merges or ids differ.
    """
    ours, peer = BPETokenizer.from_texts([text], n_merges=n_merges), train_hugging_face(text, n_merges)
    other, ids = tiktoken_of(ours), ours.encode(text)
    same_ids = ids == ids_of(peer, text) == [i + len(SPECIALS) for i in other.encode_ordinary(text)]
    if ours.merges != merges_of(peer) or not same_ids:
        raise ValueError("the merges or ids differ: these tokenizers do not do the same work")

    def encode_new(turn: int) -> None:
        BPETokenizer(ours.merges).encode(text)

    def peer_encodes_new(turn: int) -> None:
        peer.model._clear_cache()
        ids_of(peer, text)

    remembers_nothing = {OTHER: lambda turn: other.encode_ordinary(text)}
    works = {
        "training": {
            OURS: lambda turn: BPETokenizer.from_texts([text], n_merges=n_merges),
            PEER: lambda turn: train_hugging_face(text, n_merges),
        },
        "encoding": {
            OURS: lambda turn: ours.encode(text),
            PEER: lambda turn: ids_of(peer, text),
            **remembers_nothing,
        },
        "encoding_new": {OURS: encode_new, PEER: peer_encodes_new, **remembers_nothing},
    }
    found = {"characters": len(text), "merges": len(ours.merges)}
    for work, steps in works.items():
        seconds = time_in_turns(steps, clock=CLOCKS[clock], **timed)
        summaries = summarize(seconds, ours=OURS)
        ratios = {who: asdict(summary) for who, summary in summaries.items() if who != OURS}
        found[work] = {"peers": ratios, "seconds": seconds}
    return found


def added_bytes(who: str, text: str, n_merges: int) -> int | None:
    """Train in this process; return the growth of its peak memory, or None where the system does not tell."""
    before = peak_bytes()
    if who == OURS:
        BPETokenizer.from_texts([text], n_merges=n_merges)
    else:
        train_hugging_face(text, n_merges)
    return None if before is None else peak_bytes() - before


def memory(text: str, n_merges: int) -> dict[str, int | None]:
    """Measure the memory that each training adds to a process of its own."""
    # A forked process would take what its parent has freed, and hide what it adds.
    context = multiprocessing.get_context("spawn")
    return measure_alone((OURS, PEER), partial(added_bytes, text=text, n_merges=n_merges), context)


def race_with_recounting(text: str, *, n_merges: int, clock: str) -> dict[str, Any]:
    """Train once by recounting, which takes minutes, and as often as it needs to be timed by ours.

    Raises:
        ValueError: If the merges differ.
    """
    now = CLOCKS[clock]
    start = now()
    slow = learn_by_recounting(text, n_merges)
    slow_s = now() - start
    seconds = []
    for _ in range(3):
        start = now()
        ours = BPETokenizer.from_texts([text], n_merges=n_merges)
        seconds.append(now() - start)
    if ours.merges != slow:
        raise ValueError("the merges differ from those of counting all pairs anew")
    ours_s = sorted(seconds)[1]
    return {"characters": len(text), "ratio": ours_s / slow_s, "seconds": {OURS: ours_s, SLOW: slow_s}}


def parse() -> argparse.Namespace:
    """Read the command line."""
    threads, quick = "of the peer (1); ours has one", "little text, few merges: does it all work?"
    parser = new_parser(__doc__, quick=quick, threads=threads)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="texts in UTF-8")
    args = read_arguments(parser, name="byte_pairs")
    if missing := [str(file) for file in args.files if not file.is_file()]:
        parser.error(f"there is no file {', '.join(missing)}")
    return args


def main() -> None:
    """Run the benchmark, print the result and write it."""
    args = parse()
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)  # read when the peer first needs its threads
    texts = {file.name: file.read_text(encoding="utf-8") for file in args.files} or texts_without_files()
    n_merges, timed = 4096, TIMED
    if args.quick:
        texts = {name: text[:20_000] for name, text in texts.items()}
        n_merges, timed = 100, TIMED | {"min_rounds": 2, "budget_s": 0.1}
    result = new_result(args, packages=(PEER, OTHER)) | {"races": []}
    print(legend(result, packages=("python", PEER, OTHER), threads="thread(s) of the peer"))
    for name, text in texts.items():
        found = {"name": name, **race(text, n_merges=n_merges, clock=args.clock, timed=timed)}
        print(f"\n{name}: {found['characters']:,} characters, {found['merges']} merges, ours / it")
        for work, title in LINES:
            for who, timing in found[work]["peers"].items():
                print(f"  {title:30}{who:12}{spread(timing)}", flush=True)
        found["peak_bytes"] = memory(text, n_merges)
        megabytes = [f"{who} {n / 1e6:.0f} MB" for who, n in found["peak_bytes"].items() if n is not None]
        print(
            f"  training adds to a process: {', '.join(megabytes) or 'this system does not say'}", flush=True
        )
        result["races"].append(found)
    shortest = min(texts, key=lambda name: len(texts[name]))
    slow = race_with_recounting(texts[shortest], n_merges=n_merges, clock=args.clock)
    result["recounting"] = {"name": shortest, **slow}
    print(f"\n{shortest}: training, ours / counting all pairs anew: 1 / {1 / slow['ratio']:.0f}")
    write(result, args.json)


if __name__ == "__main__":
    main()
