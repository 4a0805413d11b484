"""The command ``exformer``: cut text into tokens, train a model, go on with a text, translate lines.

Text comes in on the standard input and goes out on the standard output, in UTF-8; a mistake is one line on
the standard error and exit status 2.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import torch
from tqdm import tqdm

from exformer.bpe import BPETokenizer
from exformer.cached import CachedLM
from exformer.generation import evaluating, greedy, translate
from exformer.pretrained import Pretrained, load_model, load_tokenizer
from exformer.recipes import RECIPES, find_recipe
from exformer.recipes.run import run_recipe
from exformer.sampling import keep_top_k, keep_top_p, sample, temper
from exformer.tokenizer import WordTokenizer

_LINES_AT_ONCE = 32


class _Parser(argparse.ArgumentParser):
    """Say what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The words after ``exformer``; None for those of the process.

    Returns:
        The exit status: 0, or 2 after a mistake.
    """
    for stream in (sys.stdin, sys.stdout):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", newline="\n")
    asked = _parser().parse_args(arguments)
    try:
        asked.run(asked)
        sys.stdout.flush()
    except BrokenPipeError:  # who reads our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError) as error:
        print(f"exformer: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="exformer", description="The library of The Executable Transformer, as a command.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    cut = commands.add_parser("tokenize", help="learn byte pairs; text to ids and back")
    kinds = cut.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add = _command(
        kinds, "train", _learn, "learn byte pairs from files", "book.txt --merges 1000 --out bpe.json"
    )
    add("files", nargs="+", metavar="FILE", help="text in UTF-8")
    add("--merges", type=int, required=True, metavar="N", help="how many pairs to join")
    add("--out", required=True, metavar="FILE", help="the tokenizer, as JSON")
    for name, run, what in (("encode", _encode, "lines to ids"), ("decode", _decode, "ids to lines")):
        add = _command(kinds, name, run, what, "--tokenizer bpe.json < in > out")
        add("--tokenizer", required=True, metavar="FILE", help="what tokenize train wrote")
    example = "--model FOLDER --prompt 'the keys' --temperature 0.8 --top-p 0.9 --seed 1"
    add = _command(commands, "generate", _generate, "go on with a text", example)
    add("--model", required=True, metavar="FOLDER", help="a language model")
    add("--prompt", default="", metavar="TEXT", help="how the text begins")
    add("--temperature", type=float, default=1.0, metavar="T", help="0 takes the most probable token (1.0)")
    add("--top-k", type=int, metavar="K", help="draw from the K most probable tokens")
    add("--top-p", type=float, metavar="P", help="draw from the fewest tokens that reach this probability")
    add("--seed", type=int, default=0, metavar="N", help="the same seed gives the same text (0)")
    add("--tokens", type=int, metavar="N", help="at most so many new ones (as the model can)")
    add = _command(commands, "translate", _translate, "a line in, a line out", "--model FOLDER < in > out")
    add("--model", required=True, metavar="FOLDER", help="an encoder-decoder")
    add("--beam", type=int, default=1, metavar="N", help="candidates kept (1: greedy)")
    add("--alpha", type=float, default=1.0, metavar="A", help="how a beam makes up for length (1.0)")
    _add_train(commands)
    return parser


def _add_train(commands: Any) -> None:
    add = _command(commands, "train", _train, "train a model by a recipe", "multi30k-en-de --out DIR")
    add("recipe", metavar="RECIPE", help=", ".join(RECIPES))
    add("--out", required=True, metavar="DIR", help="folder of the run; the model will be in DIR/model")
    add("--resume", action="store_true", help="go on with the run in the folder, to the same weights")


def _command(group: Any, name: str, run: Callable, what: str, example: str) -> Callable:
    """Add a command with an example in its help; return what adds an option to it."""
    parser = group.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
    parser.epilog = f"example: {parser.prog} {example}"
    parser.set_defaults(run=run)
    return parser.add_argument


def _learn(asked: argparse.Namespace) -> None:
    texts = []
    for name in asked.files:
        with open(name, encoding="utf-8", newline="") as file:
            texts.append(file.read())
    shown = "learning byte pairs" if sys.stderr.isatty() else ""
    tokenizer = BPETokenizer.from_texts(texts, n_merges=asked.merges, progress=shown)
    tokenizer.save(asked.out)


def _train(asked: argparse.Namespace) -> None:
    run_recipe(find_recipe(asked.recipe), asked.out, resume=asked.resume, progress=sys.stderr.isatty())


def _encode(asked: argparse.Namespace) -> None:
    tokenizer = load_tokenizer(asked.tokenizer)
    for line in _lines():
        print(*tokenizer.encode(line))


def _decode(asked: argparse.Namespace) -> None:
    tokenizer = load_tokenizer(asked.tokenizer)
    for line in _lines():
        try:
            ids = [int(word) for word in line.split()]
        except ValueError:
            raise ValueError(f"expected ids with spaces between them, came {line[:40]!r}") from None
        print(tokenizer.decode(ids))


def _lines() -> Iterator[str]:
    """Give the lines that come in, without their ends."""
    for line in sys.stdin:
        yield line.removesuffix("\n").removesuffix("\r")


def _load(folder: str, tokenizer: str) -> Pretrained:
    found = load_model(folder)
    if tokenizer not in found.tokenizers:
        raise ValueError(f"{folder} holds a model of kind {found.card['kind']}, which can't do this")
    return found


def _generate(asked: argparse.Namespace) -> None:
    found = _load(asked.model, "tokenizer")
    if found.card["kind"] != "DecoderLM":
        raise ValueError(f"{asked.model} holds a model of kind {found.card['kind']}: expected a DecoderLM")
    tokenizer, room = found.tokenizers["tokenizer"], found.model.config.max_len
    ids = [*found.first_ids(), *tokenizer.encode(asked.prompt)]
    n_new = room - len(ids) if asked.tokens is None else asked.tokens
    if not 1 <= n_new <= room - len(ids):
        raise ValueError(
            f"prompt and new tokens must fit into {room}: the prompt takes {len(ids)}, --tokens is {n_new}"
        )
    options = {"eos_id": tokenizer.eos_id, "max_new_tokens": n_new}
    with evaluating(found.model):
        given = (CachedLM(found.model), torch.tensor([ids]))
        if asked.temperature == 0:
            (new,) = greedy(*given, **options)
        else:
            chance = torch.Generator().manual_seed(asked.seed)
            (new,) = sample(*given, **options, generator=chance, change=_change(asked))
    space = " " if asked.prompt and isinstance(tokenizer, WordTokenizer) else ""
    print(asked.prompt + space + tokenizer.decode(new))


def _change(asked: argparse.Namespace) -> Callable[[torch.Tensor], torch.Tensor]:
    """Make what is done to the scores before a draw."""

    def change(logits: torch.Tensor) -> torch.Tensor:
        logits = temper(logits, asked.temperature)
        logits = logits if asked.top_k is None else keep_top_k(logits, asked.top_k)
        return logits if asked.top_p is None else keep_top_p(logits, asked.top_p)

    return change


def _translate(asked: argparse.Namespace) -> None:
    found = _load(asked.model, "src_tokenizer")
    options = {"beam": asked.beam, "alpha": asked.alpha, **found.tokenizers}
    lines = list(_lines())
    out = [""] * len(lines)  # an empty line stays one
    order = sorted((n for n, line in enumerate(lines) if line.strip()), key=lambda n: len(lines[n]))
    for first in tqdm(range(0, len(order), _LINES_AT_ONCE), disable=None, desc="lines", unit_scale=32):
        rows = order[first : first + _LINES_AT_ONCE]
        texts = translate(found.model, [lines[row] for row in rows], **options)
        for row, text in zip(rows, texts, strict=True):
            out[row] = text
    for text in out:
        print(text)


if __name__ == "__main__":
    sys.exit(main())
