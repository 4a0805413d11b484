"""What the command ``exformer`` does, one function a command; each gets what was asked for."""

import argparse
import json
import sys
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from exformer.generation.autoregressive import greedy
from exformer.generation.cached import CachedLM
from exformer.generation.logits import apply_temperature, keep_top_k, keep_top_p
from exformer.generation.sampling import sample
from exformer.generation.translate import translate_many
from exformer.hub.pretrained import Pretrained, load_model, shipped_models
from exformer.models.evaluating import evaluating
from exformer.recipes import find_recipe
from exformer.recipes.judge import judge, prepare
from exformer.recipes.run import run_recipe
from exformer.storage.files import check_place, replace_file
from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.loading import load_tokenizer
from exformer.tokenizers.words import WordTokenizer


def learn_pairs(asked: argparse.Namespace) -> None:
    """Learn byte pairs from files."""
    check_place(asked.out, what="the tokenizer")  # learning takes minutes
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
    check_place(path, what="the scores")
    if not Path(path).is_file():
        return []
    try:
        return [one for one in json.loads(Path(path).read_text("utf-8-sig")) if one["model"] not in names]
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


def _load(folder: str, tokenizer: str) -> Pretrained:
    found = load_model(folder)
    if tokenizer not in found.tokenizers:
        raise ValueError(f"{folder} holds a model of kind {found.card['kind']}, which can't do this")
    return found


def go_on(asked: argparse.Namespace) -> None:
    """Go on with a text."""
    found = _load(asked.model, "tokenizer")
    if found.card["kind"] != "DecoderLM":
        raise ValueError(f"{asked.model} holds a model of kind {found.card['kind']}: expected a DecoderLM")
    tokenizer, first = found.tokenizers["tokenizer"], found.first_ids()
    ids = [*first, *tokenizer.encode(asked.prompt)]
    n_new = _count_new(asked.tokens, room=found.model.config.max_len, taken=len(ids), first=len(first))
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
                return _narrow(apply_temperature(logits, asked.temperature), asked)

            (new,) = sample(*given, **options, generator=chance, change=change)
    space = " " if asked.prompt and isinstance(tokenizer, WordTokenizer) else ""
    print(asked.prompt + space + tokenizer.decode(new))


def _count_new(tokens: int | None, *, room: int, taken: int, first: int) -> int:
    """Return how many tokens may come, where those of the prompt are taken."""
    most = room - taken
    why = f"prompt and new tokens must fit into {room}: the prompt takes {taken}, {first} of them put before "
    why += "every text by this model"
    if most < 1:
        raise ValueError(f"{why}; shorten the prompt")
    if tokens is not None and not 1 <= tokens <= most:
        raise ValueError(f"{why}; --tokens must lie from 1 to {most}, came {tokens}")
    return most if tokens is None else tokens


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
