"""What the command ``exformer`` does, one function a command; each gets what was asked for."""

import argparse
import json
import sys
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from exformer.generation.generate import stream
from exformer.generation.translate import translate
from exformer.hub.pretrained import load_model
from exformer.hub.shipped import shipped_models
from exformer.recipes import find_recipe
from exformer.recipes.datasets import Pairs, Text
from exformer.recipes.evaluate import judge, prepare
from exformer.recipes.own_text import describe, read_pairs, read_text, recipe_for
from exformer.recipes.run import run_recipe
from exformer.storage.files import check_writable, read_json, replace_file
from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.loading import load_tokenizer
from exformer.training.trainer import Trainer


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
    """Train a model by a recipe, or on the reader's own texts."""
    given = {name: getattr(asked, name) for name in ("seed", "teachers_seed", "steps")}
    given = {name: number for name, number in given.items() if number is not None}
    data = _own_data(asked)
    if data is None:
        recipe, show = replace(find_recipe(asked.recipe), **given), None
    else:
        recipe = replace(recipe_for(data, steps=asked.steps), **given)

        def show(trainer: Trainer) -> None:
            tqdm.write(describe(trainer, data), file=sys.stderr)

    device = asked.device or ("cuda" if torch.cuda.is_available() else "cpu")
    run_recipe(
        recipe,
        asked.out,
        data=data,
        resume=asked.resume,
        device=device,
        progress=sys.stderr.isatty(),
        on_measure=show,
    )


def _own_data(asked: argparse.Namespace) -> Pairs | Text | None:
    """Read the reader's own texts; None where there is a recipe."""
    ways = [asked.recipe is not None, asked.text is not None, asked.source is not None]
    if ways.count(True) != 1 or (asked.source is None) != (asked.target is None):
        raise ValueError("give one of: a RECIPE, --text FILE, or --source FILE with --target FILE")
    if asked.text is not None:
        return read_text(asked.text)
    return None if asked.source is None else read_pairs(asked.source, asked.target)


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
