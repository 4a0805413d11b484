"""What the command ``exformer`` does, one function a command; each gets what was asked for."""

import argparse
import json
import sys
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from exformer.generation.generate import stream
from exformer.generation.translate import translate
from exformer.hub.pretrained import load_model
from exformer.hub.shipped import shipped_models
from exformer.recipes import find_recipe
from exformer.recipes.evaluate import judge, prepare
from exformer.recipes.run import run_recipe
from exformer.storage.files import check_writable, read_json, replace_file
from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.loading import load_tokenizer


def learn_pairs(asked: argparse.Namespace) -> None:
    """Learn byte pairs from files."""
    check_writable(asked.out, what="the tokenizer")  # learning takes minutes
    out, texts = Path(asked.out), []
    for name in asked.files:
        if out.is_file() and out.samefile(name):
            raise ValueError(f"--out {out} would replace the text that is learned from: choose another place")
        try:
            texts.append(Path(name).read_bytes().decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{name} is not text in UTF-8: {error}") from error
    shown = "learning byte pairs" if sys.stderr.isatty() else ""
    tokenizer = BPETokenizer.from_texts(texts, n_merges=asked.merges, progress=shown)
    tokenizer.save(out)


def train_model(asked: argparse.Namespace) -> None:
    """Train a model by a recipe."""
    seeds = {"seed": asked.seed, "teachers_seed": asked.teachers_seed}
    given = {name: seed for name, seed in seeds.items() if seed is not None}
    recipe = replace(find_recipe(asked.recipe), **given)
    run_recipe(recipe, asked.out, resume=asked.resume, progress=sys.stderr.isatty())


def score_models(asked: argparse.Namespace) -> None:
    """Score models, print what was found, and write it down."""
    names, found = dict.fromkeys(asked.models or shipped_models()), []
    # Scoring takes minutes: what can't be scored or written is to be found before the first model is.
    others = [] if asked.json is None else _scores_of_others(asked.json, names)
    for candidate in [prepare(name) for name in names]:
        found.append(judge(candidate, progress=sys.stderr.isatty()))
        for what, number in found[-1]["scores"].items():
            print(f"{candidate.name}: {what}: {number}")
    if asked.json is not None:
        replace_file(asked.json, (json.dumps(others + found, indent=1, ensure_ascii=False) + "\n").encode())


def encode_lines(asked: argparse.Namespace) -> None:
    """Write the ids of each line."""
    tokenizer = load_tokenizer(asked.tokenizer)
    for line in _lines():
        print(*tokenizer.encode(line))


def decode_lines(asked: argparse.Namespace) -> None:
    """Write the text of each line of ids."""
    tokenizer = load_tokenizer(asked.tokenizer)
    for line in _lines():
        try:
            ids = [int(word) for word in line.split()]
        except ValueError:
            raise ValueError(f"expected ids with spaces between them, came {line[:40]!r}") from None
        print(tokenizer.decode(ids))


def _scores_of_others(path: str, names: Collection[str]) -> list[dict[str, Any]]:
    """Read what a file of scores holds of models that are not scored now; it can be written anew."""
    check_writable(path, what="the scores")
    if not Path(path).is_file():
        return []
    try:
        found = read_json(path, what="a file of scores", kind=list)
        return [one for one in found if one["model"] not in names]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} holds no scores: choose another file") from error


def _lines() -> Iterator[str]:
    """Give the lines that come in, without their ends."""
    if sys.stdin is None:
        raise ValueError("the standard input is closed")
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"line {number} of the standard input is not text in UTF-8: {error}") from error
        yield text.removesuffix("\n").removesuffix("\r")


def go_on(asked: argparse.Namespace) -> None:
    """Continue a text, piece by piece."""
    model, tokenizer, _ = load_model(asked.model)
    pieces = stream(
        model,
        tokenizer,
        asked.prompt,
        max_new_tokens=asked.tokens,
        temperature=asked.temperature,
        top_k=asked.top_k,
        top_p=asked.top_p,
        seed=asked.seed,
    )
    print(asked.prompt, end="")
    for piece in pieces:
        print(piece, end="", flush=True)
    print()


def translate_lines(asked: argparse.Namespace) -> None:
    """Write the translation of each line."""
    model, tokenizer, _ = load_model(asked.model)
    title = "translating" if sys.stderr.isatty() else ""
    for text in translate(model, tokenizer, _lines(), beam=asked.beam, alpha=asked.alpha, progress=title):
        print(text)
