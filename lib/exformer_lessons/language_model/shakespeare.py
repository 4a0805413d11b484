"""Bits per character of Shakespeare's plays: counting, and two decoders.

    python -m exformer_lessons.language_model.shakespeare

writes ``shakespeare.json`` beside this file. Tiny Shakespeare is fetched, or read from the folder that
EXFORMER_DATA names: its first nine tenths are counted, the last tenth is the test.
"""

import json
import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import torch

from exformer import DecoderLM, load_model
from exformer.corpora.real import tiny_shakespeare
from exformer.nn.loss import nll

FILE = Path(__file__).with_suffix(".json")
CONTEXTS = (1, 3, 5, 7)  # characters
STRENGTH = 60.0  # of the shorter context, as in the lesson


def bits() -> dict[str, float]:
    """Return the bits per character that were measured, by model: first those of counting.

    >>> bits()["decoder, characters"] < bits()["8-gram of characters"]
    True
    """
    return json.loads(FILE.read_text(encoding="utf-8"))


def counting_bits(train: str, test: str, *, contexts: tuple[int, ...] = CONTEXTS) -> list[float]:
    """Return the bits per character of a test text under counting, for each length of context.

    Each context is mixed with the shorter ones, as if these had been seen ``STRENGTH`` times.

    >>> [round(x, 2) for x in counting_bits("abababab", "abab", contexts=(0, 1))]
    [1.0, 0.94]
    """
    p = [1 / len(set(train + test))] * len(test)
    found = []
    for length in range(max(contexts) + 1):
        followers: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for at in range(length, len(train)):
            followers[train[at - length : at]][train[at]] += 1
        totals = {context: sum(each.values()) for context, each in followers.items()}
        for at in range(length, len(test)):
            context = test[at - length : at]
            if context in totals:
                p[at] = (followers[context][test[at]] + STRENGTH * p[at]) / (totals[context] + STRENGTH)
        found.append(-sum(map(math.log2, p)) / len(test))
    return [found[length] for length in contexts]


@torch.no_grad()
def token_nats(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Return the loss of each token of a text, each predicted from at least half a window.

    Each window begins half its length after the last one, and its second half counts.
    """
    length = model.config.max_len
    windows = ids.unfold(0, length + 1, length // 2)  # (window, position)
    nats = torch.cat([nll(model(part[:, :-1]), part[:, 1:]) for part in windows.split(64)])
    return nats[:, length // 2 :].double()


def decoder_bits(name: str, test: str) -> float:
    """Return the bits per character of a test text under a shipped decoder."""
    loaded = load_model(name)
    if not isinstance(loaded.model, DecoderLM):
        raise TypeError(f"expected the name of a decoder, got {name!r}")
    ids = torch.tensor(loaded.tokenizer.encode(test))
    return token_nats(loaded.model, ids).mean().item() / math.log(2) * len(ids) / len(test)


def main() -> None:
    """Measure, and write the file."""
    train, test = tiny_shakespeare()
    found = {
        f"{n + 1}-gram of characters": x for n, x in zip(CONTEXTS, counting_bits(train, test), strict=True)
    }
    for name, model in {"characters": "shakespeare-char", "subwords": "shakespeare-bpe"}.items():
        found[f"decoder, {name}"] = decoder_bits(model, test)
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
