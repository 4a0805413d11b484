"""The engine of the live figures on a page of its own, and the inputs on which it must be the library."""

import base64
import json
import random
import re
from functools import cache
from pathlib import Path

import numpy as np
import torch

from exformer import (
    BPETokenizer,
    DecoderLM,
    DecoderLMConfig,
    EncoderDecoder,
    EncoderDecoderConfig,
    EncoderLM,
    EncoderLMConfig,
    load_model,
)
from exformer.corpora.captions import captions
from exformer.hub.shipped import shipped_models
from exformer.models.rnn_encoder_decoder import RecurrentConfig, RecurrentEncoderDecoder
from exformer_lessons.checkpoints import lesson_models
from exformer_lessons.live.export import live_script, model_script

LIVE = Path(__file__).parents[3] / "book" / "live"
FOLDERS = shipped_models() | lesson_models()
KINDS = {name: json.loads((path / "model.json").read_text())["kind"] for name, path in FOLDERS.items()}
SHIPPED = list(KINDS)
TRANSLATORS = [name for name, kind in KINDS.items() if kind.endswith("EncoderDecoder")]
LANGUAGE_MODELS = [name for name, kind in KINDS.items() if kind == "DecoderLM"]
MODELS = ("decoder-lm", "encoder-lm", "encoder-decoder", "recurrent")
#: What the page can be asked, and numbers as they are in memory.
ASKED = """
const pack = ({ buffer, byteOffset, byteLength }) => {
  const bytes = new Uint8Array(buffer, byteOffset, byteLength);
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
};
const unpack = (text) => new Float32Array(exformer.bytesOf(text).buffer);
const run = (model, src, ids, options) => model.encode
  ? model.decode(ids, model.encode(src), options) : model.forward(ids, options);
const textOf = (tokenizer, prompt, steps) => {
  const ids = [...steps].map(({ id }) => id).filter((id) => id !== tokenizer.endId);
  return tokenizer.decode([...prompt, ...ids]).slice(tokenizer.decode(prompt).length);
};
"""


TRANSLATE = """async (name, texts) => {
    const { model, tokenizer } = await exformer.load(name);
    return texts.map((text) => textOf(tokenizer[1], [], exformer.translate(model, tokenizer, text)));
}"""
GENERATE = """async (name, asked) => {
    const { model, tokenizer } = await exformer.load(name);
    return asked.map(([text, options]) =>
        textOf(tokenizer, tokenizer.encode(text), exformer.generate(model, tokenizer, text, options)));
}"""


def as_options(options):
    """Return the names as JavaScript has them: top_p becomes topP."""
    return {re.sub("_(.)", lambda found: found[1].upper(), name): value for name, value in options.items()}


def scripts(*wanted):
    """Return the files of the engine in the order in which a page loads them, by their lines "// needs:"."""
    found = []

    def add(name):
        path = LIVE / f"{name}.js"
        for needs in re.findall(r"^// needs: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            for each in needs.split(","):
                add(each.strip())
        if path not in found:
            found.append(path)

    for name in wanted:
        add(name)
    return found


def write_page(folder):
    """Write the page with the engine, its models beside it; return its path."""
    files = {}
    for name in SHIPPED:
        path = folder / f"{name}.js"
        if not path.exists():
            path.write_text(live_script(name)[1], encoding="utf-8")
        files[name] = path.as_uri()
    path = folder / "small.js"
    if not path.exists():
        path.write_text("".join(small_scripts()), encoding="utf-8")
    names = (*MODELS, "weights", "tokenizers", "generate", "beam")
    lines = [
        "<!doctype html><meta charset='utf-8'><title>engine</title>",
        f"<script>{ASKED}</script>",
        *(f"<script src='{path.as_uri()}'></script>" for path in (*scripts(*names), folder / "small.js")),
        f"<script>exformer.files = {json.dumps(files)};</script>",
    ]
    path = folder / "engine.html"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def numbers(text):
    """Return the numbers that a page has packed."""
    return torch.from_numpy(np.frombuffer(base64.b64decode(text), np.float32).copy())


def pack(tensor):
    """Pack numbers for a page."""
    return base64.b64encode(tensor.float().contiguous().numpy().tobytes()).decode()


@cache
def shipped(name):
    """Return a model, its tokenizer or pair of them."""
    return load_model(FOLDERS[name])[:2]


# --- Fifty inputs a model


@cache
def sentences(name, side="source"):
    """Return fifty sentences for a translator: captions, some two in a line, or words that it knows."""
    if name.startswith("multi30k"):
        lines = [getattr(pair, side if name == "multi30k-en-de" else OTHER[side]) for pair in captions()]
        return lines + [f"{a} {b}" for a, b in zip(lines[:10], lines[20:30], strict=True)]
    rng = random.Random(0)
    words = shipped(name)[1][side == "target"].vocabulary.tokens[3:]
    return [" ".join(rng.choices(words, k=rng.randrange(2, 14))) for _ in range(50)]


OTHER = {"source": "target", "target": "source"}


@cache
def prompts(name):
    """Return fifty beginnings of a text; some fill what a model can look back on, or soon will."""
    _, tokenizer = shipped("shakespeare-bpe")
    words = [tokenizer.decode([index]) for index in range(600, tokenizer.vocab_size)]
    text = "".join(words + words[::-1])
    _, tokenizer = shipped(name)
    ids = tokenizer.encode("".join(each for each in text if each.isalpha() or each in " ,.'"))
    lengths = sorted((3, 3, 6, 6, 9, 9, 12, 24, 50, 80) * 5)  # many alike, which the library reads at once
    return [tokenizer.decode(ids[17 * i : 17 * i + length]) for i, length in enumerate(lengths)]


@cache
def inputs(name):
    """Return the ids that a model reads: pairs of source, or None, and text."""
    _, tokenizer = shipped(name)
    if name in TRANSLATORS:
        src, tgt = tokenizer
        return [
            ([*src.encode(a), src.eos_id], [tgt.bos_id, *tgt.encode(b)])
            for a, b in zip(sentences(name), sentences(name, "target"), strict=True)
        ]
    return [(None, [tokenizer.bos_id, *tokenizer.encode(text)][:64]) for text in prompts(name)]


@torch.no_grad()
def library_logits(model, src, ids):
    """Return the library's logits (position, vocab_size)."""
    ids = torch.tensor([ids])
    if src is None:
        return model(ids)[0]
    src = torch.tensor([src])
    return model.decode(ids, memory=model.encode(src), src=src)[0]


# --- Small models with random weights: every switch of a configuration


def _transformers():
    """Yield each setting by itself, and some combinations."""
    yield from ({"positions": each} for each in ("sinusoidal", "learned", "rotary", "alibi", "none"))
    yield from ({"activation": each} for each in ("relu", "gelu", "silu", "squared_relu", "swiglu"))
    yield from ({"norm": "rms", "pre_norm": each} for each in (True, False))
    yield from ({"bias": False, "norm": each} for each in ("layer", "rms"))
    yield from ({"pre_norm": each, "qk_norm": True} for each in (True, False))
    yield from ({"n_kv_heads": each, "positions": "rotary", "qk_norm": True} for each in (1, 2))
    yield {"n_heads": 6, "positions": "alibi", "n_kv_heads": 3}  # no power of two
    yield {"d_model": 12, "n_heads": 2, "d_ff": 20}  # no multiple of what the kernel takes at once
    yield {"d_model": 20, "n_heads": 1, "d_ff": 7, "n_layers": 1, "positions": "sinusoidal"}
    yield {"norm": "rms", "activation": "swiglu", "positions": "rotary", "bias": False, "n_kv_heads": 1}


def _configs():
    size = {"d_model": 24, "n_heads": 4, "d_ff": 40, "n_layers": 2, "max_len": 16}
    for switches in _transformers():
        yield DecoderLM, DecoderLMConfig(259, **size | switches)
    yield DecoderLM, DecoderLMConfig(259, **size, tie_output=False)
    for switches in (*_transformers(), {"n_segments": 3}):
        yield EncoderLM, EncoderLMConfig(259, **size | switches)
    for switches in (*_transformers(), {"tie_output": False}, {"share_embeddings": True}):
        yield EncoderDecoder, EncoderDecoderConfig(259, 259, **size | switches)
    for cell in ("rnn", "lstm", "gru"):
        for attention in (True, False):
            config = RecurrentConfig(
                259, 259, d_model=24, n_layers=1 + attention, cell=cell, attention=attention
            )
            yield RecurrentEncoderDecoder, config


@cache
def small_models():
    """Return models by name; all their weights are random, those of norms and biases too."""
    models = {}
    for seed, (kind, config) in enumerate(_configs()):
        rng = torch.Generator().manual_seed(seed)
        model = kind(config).eval()
        for name, value in model.named_parameters():
            # Every third model has so small vectors that the ε of its normalizations counts.
            size = 1e-3 if seed % 3 == 2 and "embedding.weight" in name else 0.3
            centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            value.data = centre + size * torch.randn(value.shape, generator=rng)
        models[f"{seed} {kind.__name__}"] = model
    return models


def small_scripts():
    """Return the scripts of all small models."""
    tokenizer = BPETokenizer([])
    for name, model in small_models().items():
        pair = isinstance(model, EncoderDecoder | RecurrentEncoderDecoder)
        yield model_script(name, model, (tokenizer, tokenizer) if pair else tokenizer)


def small_input(name):
    """Return source, or None, and text for a small model."""
    rng = torch.Generator().manual_seed(int(name.split()[0]) + 1000)
    src, ids = torch.randint(1, 259, (2, 11), generator=rng).tolist()
    return (src[:7] if name.endswith("EncoderDecoder") else None), ids
