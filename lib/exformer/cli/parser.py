"""The commands of ``exformer`` and their options. Like ``main.py`` this module loads no PyTorch."""

import argparse
import re
from collections.abc import Callable
from typing import Any, NoReturn

from exformer.hub.shipped import shipped_models
from exformer.recipes import RECIPES

_MAX_LENGTH = 600  # characters, because a line of the input can be a megabyte


class _Parser(argparse.ArgumentParser):
    """A parser whose messages take one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {one_line(message)}; see {self.prog} --help\n")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each names the function that runs it."""
    parser = _Parser(prog="exformer", description="The library of The Executable Transformer, as a command.")
    group = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_tokenize(group)
    _add_generate(group)
    add = _command(
        group, "translate", "generate:translate_lines", "a line in, a line out", "--model NAME < in > out"
    )
    translators = ", ".join(shipped_models(kind="EncoderDecoder"))
    add("--model", required=True, metavar="NAME", help=f"a translator: a folder, or one of {translators}")
    add("--num-beams", type=int, default=1, metavar="N", help="candidates of beam search (1: greedy)")
    add(
        "--length-penalty",
        type=float,
        default=1.0,
        metavar="A",
        help="exponent of the length (1.0)",
    )
    _add_train(group)
    _add_bench(group)
    _add_hugging_face(group)
    what = "what an issue report should say about machine and installation; takes seconds"
    _command(group, "doctor", "doctor:report_environment", what, "")
    return parser


def _add_hugging_face(group: Any) -> None:
    add = _command(
        group,
        "import",
        "hugging_face:import_model",
        "read a folder of transformers: GPT-2, Llama, Mistral, Mixtral, BERT, Marian; or a Llama in GGUF",
        "gpt2/ --out models/gpt2; then: exformer generate --model models/gpt2",
    )
    add("folder", metavar="FOLDER", help="with config.json, model.safetensors, tokenizer.json; or FILE.gguf")
    add("--out", required=True, metavar="DIR", help="where the model is written")
    add = _command(
        group,
        "export",
        "hugging_face:export_model",
        "write a model as from_pretrained of transformers reads it",
        "--model models/gpt2 --hf gpt2-again/",
    )
    add("--model", required=True, metavar="NAME", help="a folder, or the name of one that is shipped")
    add("--hf", required=True, metavar="DIR", help="where the model is written")


def _add_tokenize(group: Any) -> None:
    cut = group.add_parser("tokenize", help="learn byte pairs; text to ids and back")
    kinds = cut.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add = _command(
        kinds,
        "train",
        "tokenize:learn_merges",
        "learn byte pairs from files",
        "book.txt --merges 1000 --out bpe.json",
    )
    add("files", nargs="+", metavar="FILE", help="text in UTF-8")
    add("--merges", type=int, required=True, metavar="N", help="how many pairs to join")
    add("--out", required=True, metavar="FILE", help="the tokenizer, as JSON")
    for name, run, what in (
        ("encode", "tokenize:encode_lines", "lines to ids"),
        ("decode", "tokenize:decode_lines", "ids to lines"),
    ):
        add = _command(kinds, name, run, what, "--tokenizer bpe.json < in > out")
        add("--tokenizer", required=True, metavar="FILE", help="what tokenize train wrote")


def _add_generate(group: Any) -> None:
    example = "--model NAME --prompt 'the keys' --temperature 0.8 --top-p 0.9 --seed 1"
    add = _command(group, "generate", "generate:continue_text", "continue a text", example)
    models = ", ".join(shipped_models(kind="DecoderLM"))
    add("--model", required=True, metavar="NAME", help=f"a language model: a folder, or one of {models}")
    add("--prompt", default="", metavar="TEXT", help="how the text begins")
    add("--tokens", type=int, metavar="N", help="most new tokens (as many as fit into the model's max_len)")
    add("--temperature", type=float, default=1.0, metavar="T", help="0 takes the most probable token (1.0)")
    add("--top-k", type=int, metavar="K", help="sample from the K most probable tokens")
    add("--top-p", type=float, metavar="P", help="sample from the fewest tokens that reach this probability")
    add("--min-p", type=float, metavar="P", help="sample from tokens of at least P times the largest one")
    add("--repetition-penalty", type=float, metavar="R", help="above 1: tokens come again less often")
    add("--stop", action="append", default=[], metavar="TEXT", help="end before it; may be given again")
    add("--seed", type=int, default=0, metavar="N", help="the same seed gives the same text (0)")


def _add_train(group: Any) -> None:
    add = _command(
        group,
        "train",
        "train:train_model",
        "train a model by a recipe, or on your own text",
        "--text book.txt --out DIR; then: exformer generate --model DIR/model. On several GPUs: accelerate "
        "launch --multi_gpu --num_processes 4 -m exformer train ...; on several machines too, with "
        "--num_machines, --machine_rank and --main_process_ip. A run may go on with another number",
    )
    add("recipe", nargs="?", metavar="RECIPE", help=", ".join(RECIPES))
    add("--text", metavar="FILE", help="learn a language model from a text in UTF-8")
    add("--source", metavar="FILE", help="learn a translator: sentences, one a line, in UTF-8")
    add("--target", metavar="FILE", help="their translations, in the same lines")
    add("--out", required=True, metavar="DIR", help="folder of the run; the model will be in DIR/model")
    add(
        "--resume",
        action="store_true",
        help="go on with the run in the folder, with its settings, to the same weights; with more --steps, a "
        "finished run goes on too",
    )
    add("--steps", type=int, metavar="N", help="instead of the recipe's, or of what fits the text")
    add("--seed", type=int, metavar="N", help="instead of the recipe's")
    add("--lr", type=float, metavar="R", help="peak learning rate of AdamW; others change by the same factor")
    add("--batch", type=int, metavar="N", help="target tokens in a batch")
    add("--d-model", type=int, metavar="N", help="width of the model")
    add("--n-layers", type=int, metavar="N", help="layers, of an encoder-decoder on each side")
    add("--n-heads", type=int, metavar="N", help="attention heads")
    add(
        "--max-len", type=int, metavar="N", help="longest sentence, or context of a language model, in tokens"
    )
    add("--dropout", type=float, metavar="P", help="probability of dropout")
    add("--teachers-seed", type=int, metavar="N", help="of all teachers, instead of the run's own seed")
    add("--device", choices=("cpu", "cuda"), help="on which one process computes (cuda where there is one)")


def _add_bench(group: Any) -> None:
    what = "score models on their test texts, and time them"
    add = _command(group, "bench", "train:score_models", what, "multi30k-en-de --json scores.json")
    names = ", ".join(shipped_models())
    add("models", nargs="*", metavar="NAME", help=f"{names}, or a folder; all that are shipped if left out")
    add("--json", metavar="FILE", help="where all is written; what it holds of models not named now stays")


def _command(group: Any, name: str, run: str, what: str, example: str) -> Callable[..., Any]:
    """Add a command with an example in its help; return what adds an option to it.

    ``run`` names the module of this package, loaded only where the command is given, and its function.
    """
    parser = group.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
    parser.epilog = f"example: {parser.prog} {example}"
    parser.set_defaults(run=run)

    def add(option: str, **settings: Any) -> None:
        if settings.get("type") is int:
            settings["type"] = _seed if option.endswith("seed") else _integer
        elif settings.get("type") is float:
            settings["type"] = _number
        elif settings.get("metavar") in ("NAME", "FILE", "DIR", "FOLDER"):
            settings["type"] = _path
        parser.add_argument(option, **settings)

    return add


def _integer(text: str) -> int:
    """Read a count in ASCII digits; int() takes underscores and the digits of any script."""
    number = _seed(text)
    if abs(number) >= 2**31:
        raise argparse.ArgumentTypeError(f"expected an integer of at most {2**31 - 1:,}, got {text}")
    return number


def _seed(text: str) -> int:
    if not re.fullmatch("-?[0-9]{1,20}", text):
        raise argparse.ArgumentTypeError(f"expected an integer, such as 12, got {text[:40]!r}")
    return int(text)


def _number(text: str) -> float:
    if not re.fullmatch(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|-?inf|nan", text, re.IGNORECASE):
        raise argparse.ArgumentTypeError(f"expected a number, such as 0.8, got {text[:40]!r}")
    return float(text)


def _path(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("expected a name, got an empty one")
    return text


def one_line(message: str) -> str:
    """Put a message into one line of bounded length; its end often names the remedy."""
    line = " ".join(message.split())
    return (
        line if len(line) <= _MAX_LENGTH else f"{line[: _MAX_LENGTH * 2 // 3]} … {line[-_MAX_LENGTH // 3 :]}"
    )
