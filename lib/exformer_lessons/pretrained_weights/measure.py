"""Measure what wrong imports do to the shipped models.

    python -m exformer_lessons.pretrained_weights.measure [PART ...]

writes ``runs.json`` beside this file: all parts, or those that are named. All take ten minutes on one core.
Tiny Shakespeare and Multi30k are fetched, or read from the folder that EXFORMER_DATA names.
"""

import re
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from exformer import generate, load_model
from exformer.corpora.real import multi30k, tiny_shakespeare
from exformer.data.translation import encode_pairs
from exformer.nn.loss import nll
from exformer_lessons.language_model.shakespeare import token_nats
from exformer_lessons.measured import measure_parts, read_runs
from exformer_lessons.pretrained_weights.imports import WINDOW, WRONG, largest_gaps, last_layer, wrong_import

FILE = Path(__file__).with_name("runs.json")
NAMES = ("right", *WRONG, WINDOW)
LENGTHS = (1, 2, 3, 4, 8, 16, 32, 33, 48, 64)
PROMPT, N_TOKENS = "ROMEO:\n", 26
N_TEXTS, LONG = 30, 60  # texts and tokens for the count of words


def runs(part: str) -> dict[str, Any]:
    """Return what was measured: of "losses", "texts", "gaps", "layer" or "translators".

    >>> runs("losses")["shakespeare-bpe"]["right"] < runs("losses")["shakespeare-bpe"]["rotary halves"]
    True
    """
    return read_runs(FILE)[part]


def losses() -> dict[str, Any]:
    """Return the test loss of each import of both language models, and that of the right one by parts."""
    test, found = tiny_shakespeare()[1], {}
    for shipped in ("shakespeare-bpe", "shakespeare-char"):
        model, tokenizer, _ = load_model(shipped)
        ids, found[shipped] = torch.tensor(tokenizer.encode(test)), {}
        for name in NAMES:
            nats = token_nats(wrong_import(model, name), ids)
            found[shipped][name] = nats.mean().item()
            found[shipped] |= {"parts": [p.mean().item() for p in nats.chunk(20)]} if name == "right" else {}
            print(shipped, name, found[shipped][name], flush=True)
    return found


def texts() -> dict[str, Any]:
    """Return what each import of the larger model generates, and how many of its words are in the plays."""
    model, tokenizer, _ = load_model("shakespeare-bpe")
    known, found = set(re.findall(r"[a-z']+", tiny_shakespeare()[0].lower())), {}
    for name in NAMES:
        imported = wrong_import(model, name)
        how = {"temperature": 0.7}
        shown = [
            generate(imported, tokenizer, PROMPT, max_new_tokens=N_TOKENS, seed=s, **how) for s in range(5)
        ]
        long = generate(imported, tokenizer, [PROMPT] * N_TEXTS, max_new_tokens=LONG, seed=0, **how)
        words = [word for text in long for word in re.findall(r"[a-z']+", text.lower())[:-1]]
        found[name] = {"texts": shown, "words": sum(word in known for word in words) / max(1, len(words))}
        print(name, found[name]["words"], repr(shown[0]), flush=True)
    return found


def gaps() -> dict[str, Any]:
    """Return how far the logits of each import are from the right ones, by the length of the prompt."""
    found = {}
    for shipped in ("shakespeare-bpe", "shakespeare-char"):
        model = load_model(shipped).model
        found[shipped] = {
            name: {str(n): largest_gaps(wrong_import(model, name), model, n) for n in LENGTHS}
            for name in NAMES
        }
    return {
        s: {n: {k: float(f"{v:.3g}") for k, v in g.items()} for n, g in f.items()} for s, f in found.items()
    }


def layer() -> dict[str, Any]:
    """Return the loss without the last layer, and with one that is new, of five seeds; and what it adds."""
    test, found = tiny_shakespeare()[1][-40_000:], {}
    for shipped in ("shakespeare-bpe", "shakespeare-char"):
        model, tokenizer, _ = load_model(shipped)
        ids = torch.tensor(tokenizer.encode(test))
        found[shipped] = {"trained": _layer(model, ids)}
        for how in ("left out", "0.02", "default"):
            seeds = range(1 if how == "left out" else 5)
            five = []
            for seed in seeds:
                imported = wrong_import(model, "right")
                imported.load_state_dict(last_layer(model.state_dict(), how, seed=seed))
                five.append(_layer(imported, ids))
            found[shipped][how] = {k: [each[k] for each in five] for k in five[0]}
        print(shipped, found[shipped], flush=True)
    return found


@torch.no_grad()
def _layer(model: Any, ids: torch.Tensor) -> dict[str, float]:
    """Return the loss, and the length of what the last layer adds, relative to what it is added to."""
    seen: list[float] = []
    hook = model.layers[-1].register_forward_hook(
        lambda _, given, out: seen.append(
            ((out - given[0]).norm(dim=-1) / given[0].norm(dim=-1)).mean().item()
        )
    )
    loss = token_nats(model, ids).mean().item()
    hook.remove()
    return {"loss": loss, "added": mean(seen)}


def translators() -> dict[str, Any]:
    """Return the loss of the translators on 500 test sentences, where the mistake can be made."""
    found: dict[str, Any] = {}
    for shipped in ("multi30k-en-de", "multi30k-de-en"):
        loaded = load_model(shipped)
        model: Any = loaded.model
        source, target = loaded.tokenizer
        src, tgt = shipped.split("-")[1:]
        pairs = multi30k("test", src=src, tgt=tgt)[:500]
        batch, _ = encode_pairs(pairs, src_tokenizer=source, tgt_tokenizer=target)
        found[shipped] = {}
        for name in NAMES:
            if name in ("output tied", "ReLU for ReLU²", WINDOW):  # tied, with ReLU, shorter
                continue
            imported = wrong_import(model, name)
            with torch.no_grad():
                rows = zip(batch.src.split(50), batch.tgt_in.split(50), strict=True)
                logits = torch.cat([imported(a, b) for a, b in rows])
            counted = batch.tgt_out != model.config.pad_id
            found[shipped][name] = nll(logits, batch.tgt_out)[counted].mean().item()
            print(shipped, name, found[shipped][name], flush=True)
    return found


if __name__ == "__main__":
    measure_parts(FILE, losses, texts, gaps, layer, translators, exact=("gaps",))
