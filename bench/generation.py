"""Time generation: greedy texts beside GPT-2's `generate`, translations by beam search beside Marian's.

    python bench/generation.py [--json FILE] [--threads N] [--clock wall|cpu] [--quick]

All run in this process, in turns, with equal weights; ratios are taken round by round. Only equal work is
timed: before the race, all must generate the same tokens. Greedy texts have 256 new tokens, by a language
model of 10.7 million parameters, one text alone and 16 at a time.

One text alone takes about as long as reading the weights once per token. Which layout of the weights a
processor reads faster decides the ratio to GPT-2 there, so GPT-2 also runs with its weights in our layout.
"""

import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
if __name__ == "__main__":  # and not where a test imports this: lessons that run after it need the setting
    os.environ.pop("ATEN_CPU_CAPABILITY", None)  # that makes numbers the same on all machines

import torch  # noqa: E402

from bench.encoder_decoder import QUICK, SETTINGS  # noqa: E402
from bench.generation_peers import Writer, beam_writers, greedy_writers, spread_out  # noqa: E402
from bench.report import legend, new_parser, new_result, read_arguments, spread, write  # noqa: E402
from bench.timing import CLOCKS, summarize, time_in_turns  # noqa: E402
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig  # noqa: E402

OURS, NO_CACHE = "exformer", "exformer, no cache"
TIMED = {"warmup": 0, "min_rounds": 3, "budget_s": 15.0}  # generating the texts that are compared warms up
ONCE = {"warmup": 0, "min_rounds": 2, "budget_s": 0.0}  # without a cache a text takes long
#: nanoGPT's model of Shakespeare's characters.
GPT = DecoderLMConfig(65, d_model=384, n_heads=6, d_ff=1536, n_layers=6, max_len=320, dropout=0.0)
SMALL_GPT = replace(GPT, d_model=24, n_heads=3, d_ff=48, n_layers=2)
TRANSLATOR = replace(SETTINGS["encoder-decoder-d128"], batch_size=16, dropout=0.0)
N_PROMPT, N_NEW, N_WORDS = 8, 256, 24


def race(writers: dict[str, Writer], *, clock: str, timed: dict[str, Any]) -> dict[str, Any]:
    """Time the generation of the same texts.

    Args:
        writers: The generators by name, ours first.
        clock: One of `CLOCKS`.
        timed: Options of `time_in_turns`.

    Returns:
        The entry of the JSON file.

    Raises:
        ValueError: If the texts differ.
    """
    texts = {who: write() for who, write in writers.items()}
    for who, found in texts.items():
        if found != texts[OURS]:
            n = sum(a != b for a, b in zip(found, texts[OURS], strict=True))
            raise ValueError(f"{who} generates {n} of {len(found)} other texts: this is not the same work")
    steps = {who: lambda turn, write=write: write() for who, write in writers.items()}
    seconds = time_in_turns(steps, clock=CLOCKS[clock], **timed)
    return {
        "texts": len(texts[OURS]),
        "symbols": sum(map(len, texts[OURS])),
        "rounds": len(seconds[OURS]),
        "contenders": {
            who: {**asdict(summary), "seconds": seconds[who]}
            for who, summary in summarize(seconds, ours=OURS).items()
        },
    }


def races(*, clock: str, quick: bool) -> dict[str, Any]:
    """Run all races, and print each as soon as it is over.

    Args:
        clock: One of `CLOCKS`.
        quick: Whether to take tiny models, to see whether everything works.

    Returns:
        One result for each race, by name.
    """
    timed, once = ({"warmup": 0, "min_rounds": 2, "budget_s": 0.0},) * 2 if quick else (TIMED, ONCE)
    n_new, setting = (7, replace(QUICK, dropout=0.0)) if quick else (N_NEW, TRANSLATOR)
    torch.manual_seed(0)
    model = DecoderLM(SMALL_GPT if quick else GPT).eval()
    spread_out(model)
    found = {}
    for batch in (1, 16):
        prompts = torch.randint(1, model.config.vocab_size, (batch, N_PROMPT))
        writers = greedy_writers(model, prompts, n_new=n_new)
        without = {who: writers[who] for who in (OURS, NO_CACHE)}
        del writers[NO_CACHE]
        found[f"greedy, batch {batch}"] = race(writers, clock=clock, timed=timed)
        report(f"greedy, batch {batch}", found)
        if batch == 1:
            found["greedy, the cache"] = race(without, clock=clock, timed=once)
            report("greedy, the cache", found)
    writers = beam_writers(setting, n_new=n_new if quick else N_WORDS)
    found["beam of 4"] = race(writers, clock=clock, timed=timed)
    report("beam of 4", found)
    return found


def report(name: str, found: dict[str, Any]) -> None:
    """Print one race."""
    result = found[name]
    print(f"\n{name}: {result['texts']} text(s), {result['symbols']} symbols, {result['rounds']} rounds")
    for who, timing in result["contenders"].items():
        line = f"  {who:20}{timing['median_s']:8.3f} s"
        print(line if who == OURS else f"{line}  ours / it {spread(timing)}", flush=True)


def main() -> None:
    """Run the races, print the results and write them to a file."""
    parser = new_parser(__doc__, quick="tiny models, few symbols: does it all work?")
    args = read_arguments(parser, name="generation")
    result = new_result(args)
    print(legend(result, packages=("torch", "transformers")))
    result["gpt"], result["translator"] = asdict(GPT), asdict(TRANSLATOR)
    result["races"] = races(clock=args.clock, quick=args.quick)
    write(result, args.json)


if __name__ == "__main__":
    main()
