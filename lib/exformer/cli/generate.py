"""``exformer generate`` and ``exformer translate``: a shell around the functions of the same names."""

import argparse
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from exformer.cli.lines import read_lines, show_controls
from exformer.generation.generate import stream
from exformer.generation.sampling import Sampling
from exformer.generation.translate import translate
from exformer.hub.pretrained import load_model
from exformer.tokenizers.text_normalization import normalize_text

#: How messages of the functions name what the reader of the command knows by another name.
_NAMES = {
    "max_new_tokens": "--tokens",
    "temperature": "--temperature",
    "top_k": "--top-k",
    "top_p": "--top-p",
    "min_p": "--min-p",
    "repetition_penalty": "--repetition-penalty",
    "stop": "--stop",
    "seed": "--seed",
    "num_beams": "--num-beams",
    "length_penalty": "--length-penalty",
    "prompt 1": "--prompt",
    "sentence": "line",
}


def continue_text(args: argparse.Namespace) -> None:
    """Continue a text, and write each piece as soon as it is known."""
    model, tokenizer, _ = load_model(args.model)
    with _command_messages(remedy="fewer --tokens need less"):
        pieces = stream(
            model,
            tokenizer,
            args.prompt,
            max_new_tokens=args.tokens,
            stop=args.stop,
            seed=args.seed,
            **{name: getattr(args, name) for name in Sampling.names()},
        )
        print(show_controls(normalize_text(args.prompt)), end="")
        for piece in pieces:
            print(show_controls(piece), end="", flush=True)
    print()


def translate_lines(args: argparse.Namespace) -> None:
    """Write the translation of each line."""
    model, tokenizer, _ = load_model(args.model)
    lines = list(read_lines())
    title = "translating" if sys.stderr.isatty() else ""
    with _command_messages(remedy="a smaller --num-beams needs less"):
        beams = {"num_beams": args.num_beams, "length_penalty": args.length_penalty}
        for text in translate(model, tokenizer, lines, **beams, progress=title):
            print(show_controls(str(text)).replace("\n", " "))  # a line in, a line out


@contextmanager
def _command_messages(*, remedy: str) -> Iterator[None]:
    """Let messages speak of options and lines, and name the remedy if the memory does not suffice."""
    try:
        yield
    except ValueError as error:
        begin = "|".join(map(re.escape, _NAMES))  # the subject of a message, and names that are no words
        text = re.sub(rf"^({begin})\b|\b(max_new_tokens)\b", lambda found: _NAMES[found[0]], str(error))
        raise ValueError(re.sub(r"see (translate|generate)\(\)", r"see exformer \1", text)) from error
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not re.search("memory|bad_alloc", str(error)):
            raise
        raise ValueError(f"there is not enough memory: {remedy}") from error
