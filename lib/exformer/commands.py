"""What the command ``exformer`` does, one function a command; each gets what was asked for."""

import argparse
import json
import os
import sys
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from exformer.bpe import BPETokenizer
from exformer.cached import CachedLM
from exformer.files import replace_file
from exformer.generation import evaluating, greedy, translate_many
from exformer.pretrained import Pretrained, load_model, load_tokenizer, shipped_models
from exformer.recipes import find_recipe
from exformer.recipes.judge import judge
from exformer.recipes.run import run_recipe
from exformer.sampling import keep_top_k, keep_top_p, sample, temper
from exformer.tokenizer import WordTokenizer


def learn_pairs(asked: argparse.Namespace) -> None:
    """Learn byte pairs from files."""
    texts = []
    for name in asked.files:
        try:
            texts.append(Path(name).read_bytes().decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{name} is not text in UTF-8: {error}") from error
    shown = "learning byte pairs" if sys.stderr.isatty() else ""
    tokenizer = BPETokenizer.from_texts(texts, n_merges=asked.merges, progress=shown)
    tokenizer.save(asked.out)


def train_model(asked: argparse.Namespace) -> None:
    """Train a model by a recipe."""
    seeds = {"seed": asked.seed, "teachers_seed": asked.teachers_seed}
    given = {name: seed for name, seed in seeds.items() if seed is not None}
    recipe = replace(find_recipe(asked.recipe), **given)
    run_recipe(recipe, asked.out, resume=asked.resume, progress=sys.stderr.isatty())


def score_models(asked: argparse.Namespace) -> None:
    """Score models, print what was found, and write it down."""
    names, found = dict.fromkeys(asked.models or shipped_models()), []
    for name in names:  # scoring takes minutes: what can't be scored or written is to be found before
        _find(name)
    others = [] if asked.json is None else _scores_of_others(asked.json, names)
    for name in names:
        found.append(judge(name, progress=sys.stderr.isatty()))
        for what, number in found[-1]["scores"].items():
            print(f"{name}: {what}: {number}")
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
    place = Path(path).resolve()
    if place.is_dir():
        raise ValueError(f"{path or 'the name of the file'} is a folder: expected a file for the scores")
    if not place.parent.is_dir():
        raise ValueError(f"there is no folder for {path}")
    if not os.access(place if place.exists() and not place.is_file() else place.parent, os.W_OK):
        raise ValueError(f"{path} may not be written: choose another place")
    if not place.is_file():
        return []
    try:
        return [one for one in json.loads(place.read_text("utf-8-sig")) if one["model"] not in names]
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


def _find(name: str) -> Pretrained:
    """Load a model; an empty name is none, though a path would take it for the folder we are in."""
    if not name:
        raise ValueError(f"expected a folder or one of {', '.join(shipped_models())}, came an empty name")
    return load_model(name)


def _load(folder: str, tokenizer: str) -> Pretrained:
    found = _find(folder)
    if tokenizer not in found.tokenizers:
        raise ValueError(f"{folder} holds a model of kind {found.card['kind']}, which can't do this")
    return found


def go_on(asked: argparse.Namespace) -> None:
    """Go on with a text."""
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
    if not -(2**63) <= asked.seed < 2**64:  # what PyTorch takes
        raise ValueError(f"--seed must lie from -2**63 to 2**64 - 1, came {asked.seed}")
    _narrow(torch.zeros(1, tokenizer.vocab_size), asked)  # refuses what is wrong, also where none is drawn
    options = {"eos_id": tokenizer.eos_id, "max_new_tokens": n_new}
    with evaluating(found.model):
        given = (CachedLM(found.model), torch.tensor([ids]))
        if asked.temperature == 0:
            (new,) = greedy(*given, **options)
        else:
            chance = torch.Generator().manual_seed(asked.seed)

            def change(logits: torch.Tensor) -> torch.Tensor:
                return _narrow(temper(logits, asked.temperature), asked)

            (new,) = sample(*given, **options, generator=chance, change=change)
    space = " " if asked.prompt and isinstance(tokenizer, WordTokenizer) else ""
    print(asked.prompt + space + tokenizer.decode(new))


def _narrow(logits: torch.Tensor, asked: argparse.Namespace) -> torch.Tensor:
    """Leave the symbols that may be drawn."""
    logits = logits if asked.top_k is None else keep_top_k(logits, asked.top_k)
    return logits if asked.top_p is None else keep_top_p(logits, asked.top_p)


def translate_lines(asked: argparse.Namespace) -> None:
    """Write the translation of each line."""
    found = _load(asked.model, "src_tokenizer")
    options = {"beam": asked.beam, "alpha": asked.alpha, **found.tokenizers}
    title = "translating" if sys.stderr.isatty() else ""
    for text in translate_many(found.model, list(_lines()), progress=title, **options):
        print(text)
