"""The reader's own texts: files -> training data, and a recipe whose sizes fit the amount of text."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from exformer.corpora.examples import Pair
from exformer.generation.generate import stream
from exformer.generation.translate import translate
from exformer.recipes.datasets import Pairs, Text
from exformer.recipes.evaluate import longest_translation
from exformer.recipes.recipe import Recipe
from exformer.recipes.run_folder import RunFolder
from exformer.recipes.zoo import BYTE_PAIRS, EN_DE_ALONE
from exformer.storage.text_files import decode_text, read_data
from exformer.tokenizers.loading import load_tokenizer
from exformer.tokenizers.text_normalization import normalize_line, normalize_text
from exformer.training.trainer import Trainer

#: Name of the recipe and of the corpus.
OWN_TEXT = "own text"
_LEAST_CHARACTERS, _LEAST_PAIRS, _LONGEST_LINE = 1000, 20, 2000  # the last one in bytes
_MOST_HELD_OUT = 200_000, 500  # characters of a text; pairs
_STEPS = 150, 20_000  # fewest and most
# The most bytes for each size, of a text or of the target sentences. The third line is that of the recipes
# shakespeare-bpe (1.1 MB) and multi30k-en-de-alone (2 MB), whose other settings are used for all.
_SIZES = (
    (50_000, {"d_model": 64, "n_heads": 2, "n_layers": 2}),
    (500_000, {"d_model": 96, "n_heads": 3, "n_layers": 3}),
    (10_000_000, {"d_model": 128, "n_heads": 4, "n_layers": 4}),
    (100_000_000, {"d_model": 256, "n_heads": 8, "n_layers": 6}),
    (math.inf, {"d_model": 512, "n_heads": 8, "n_layers": 8}),
)


def read_text(path: str | Path) -> Text:
    """Read a text to learn a language model from; its last tenth is held out.

    Raises:
        ValueError: If it is not UTF-8, or too short.
        OSError: If it can't be read.
    """
    text, sha256 = _read(path)
    if len(text) < _LEAST_CHARACTERS:
        raise ValueError(
            f"{path} has {len(text):,} characters: expected at least {_LEAST_CHARACTERS:,} to learn from"
        )
    cut = len(text) - min(len(text) // 10, _MOST_HELD_OUT[0])
    return Text(text[:cut], text[cut:], {"text": sha256})


def read_pairs(source: str | Path, target: str | Path) -> Pairs:
    """Read two files whose lines translate each other; a twentieth of the pairs is held out.

    Raises:
        ValueError: If a file is not UTF-8, the files have unlike numbers of lines, or too few, a line is
            empty or very long, or all pairs are alike.
        OSError: If a file can't be read.
    """
    texts = [_read(path) for path in (source, target)]
    hashes = {name: sha256 for name, (_, sha256) in zip(("source", "target"), texts, strict=True)}
    sides = [_split_lines(text, path) for (text, _), path in zip(texts, (source, target), strict=True)]
    if len(sides[0]) != len(sides[1]):
        raise ValueError(
            f"{source} has {len(sides[0]):,} lines and {target} {len(sides[1]):,}: expected a sentence in "
            "each line, and its translation in the same line of the other file"
        )
    pairs = [Pair(*both) for both in zip(*sides, strict=True)]
    if len(pairs) < _LEAST_PAIRS:
        raise ValueError(f"{source} has {len(pairs)} lines: expected at least {_LEAST_PAIRS} to learn from")
    n_held_out = min(-(-len(pairs) // 20), _MOST_HELD_OUT[1])
    chosen = np.random.default_rng(0).permutation(len(pairs))[:n_held_out]
    held_out = [pairs[number] for number in sorted(chosen)]
    known = {(pair.source, pair.target) for pair in held_out}  # a sentence may be in the files twice
    train = [pair for pair in pairs if (pair.source, pair.target) not in known]
    if not train:
        raise ValueError(
            f"the pairs of {source} and {target} are alike, so that all are held out: expected pairs that "
            "differ"
        )
    return Pairs(train, held_out, (), hashes)


def recipe_for(data: Pairs | Text, *, steps: int | None = None) -> Recipe:
    """Choose how to learn from a reader's own texts, by their amount.

    There is a merge of byte pairs for each kilobyte, and a text is read about 8 times, pairs 20 times.

    Args:
        data: As :func:`read_text` or :func:`read_pairs` gives it.
        steps: Number of steps; None: chosen by the amount of text.
    """
    if isinstance(data, Text):
        base, passes, longest = BYTE_PAIRS, 8, BYTE_PAIRS.model["max_len"]
        n_bytes = all_bytes = len(data.train.encode())
    else:
        base, passes = EN_DE_ALONE, 20
        sources, targets = (
            [len(getattr(pair, side).encode()) for pair in (*data.train, *data.val)]
            for side in ("source", "target")
        )
        n_bytes, all_bytes, longest = sum(targets), sum(sources) + sum(targets), max(sources + targets) + 1
    sizes = next(sizes for most, sizes in _SIZES if n_bytes <= most)
    large = sizes["d_model"] > base.model["d_model"]  # than the model for which the learning rates were found
    model = {
        **base.model,
        **sizes,
        "d_ff": sizes["d_model"] * base.model["d_ff"] // base.model["d_model"],
        "max_len": max(256 if large else base.model["max_len"], 2 ** (longest - 1).bit_length()),
        "dropout": 0.1 if large else base.model["dropout"],
    }
    tokens = 4 * base.tokens if large else base.tokens
    if steps is None:  # two bytes make a token, or more
        steps = min(max(_STEPS[0], passes * n_bytes // 2 // tokens), _STEPS[1])
    slower, training = 0.5 if large else 1.0, base.training
    return replace(
        base,
        name=OWN_TEXT,
        corpus=OWN_TEXT,
        model=model,
        n_merges=min(all_bytes // 1000, 8000),
        tokens=tokens,
        training=replace(
            training,
            steps=steps,
            warmup=max(1, min(training.warmup, steps // 10)),
            eval_interval=-(-steps // 10),
            average_last=min(training.average_last, 3),
            muon_lr=slower * training.muon_lr,
            lr=slower * training.lr,
            lr_by_module={name: slower * lr for name, lr in training.lr_by_module.items()},
        ),
    )


def describe(trainer: Trainer, data: Pairs | Text) -> str:
    """Describe the progress of a run: its loss, and a text or translations of held-out sentences."""
    loss = trainer.history[-1]["validation_loss"]
    lines = [f"step {trainer.step:,} of {trainer.config.steps:,}: validation loss {loss:.3f} nats per token"]
    tokenizer = load_tokenizer(RunFolder(trainer.folder).tokenizer)
    if isinstance(data, Pairs):
        pairs = data.val[:2]
        sources, most = [pair.source for pair in pairs], longest_translation(pairs, tokenizer)
        found = translate(trainer.model, (tokenizer, tokenizer), sources, max_new_tokens=most)
        lines += [f"{source} -> {target}" for source, target in zip(sources, found, strict=True)]
    else:
        lines += ["".join(stream(trainer.model, tokenizer, max_new_tokens=40, temperature=0.8, seed=0))]
    return "\n    ".join(line for text in lines for line in text.splitlines())


def _read(path: str | Path) -> tuple[str, str]:
    """Read a text in UTF-8 and normalize it; return it, and the SHA-256 of its bytes.

    The bytes are read once: a pipe gives them once, and a file may change in between.
    """
    data = read_data(path)
    text = decode_text(data, name=path).replace("\r\n", "\n")
    if "\r" in text and "\n" not in text:
        raise ValueError(f"{path}: its lines end with CR alone, expected LF or CRLF: convert the line ends")
    return normalize_text(text), hashlib.sha256(data).hexdigest()


def _split_lines(text: str, path: str | Path) -> Sequence[str]:
    """Split a text into sentences, one a line, and check each."""
    lines = [normalize_line(line) for line in text.removesuffix("\n").split("\n")]
    for number, line in enumerate(lines, start=1):
        if not line:
            raise ValueError(f"{path}, line {number} is empty: expected a sentence in each line")
        if (n_bytes := len(line.encode())) > _LONGEST_LINE:
            raise ValueError(
                f"{path}, line {number} has {n_bytes:,} bytes: expected a sentence of at most "
                f"{_LONGEST_LINE:,}; cut it, and its translation"
            )
    return lines
