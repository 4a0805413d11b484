"""A model -> a script from which the book's live figures, or any page, build it in the browser."""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from exformer.hub.shipped import find_model
from exformer.models.encoder_lm import EncoderLM
from exformer.nn.lora import check_merged
from exformer.storage.files import make_folder, replace_file
from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.characters_and_words import CharTokenizer, WordTokenizer
from exformer.tokenizers.tokenizer import Tokenizer
from exformer.tokenizers.unicode_table import LETTERS, NUMBERS
from exformer_lessons.checkpoints import lesson_models, load_lesson_model

#: What of a card is told to readers of a page.
_TOLD = ("parameters", "steps", "seed", "scores", "data_licenses")
#: Settings that the page's engine reads, that show in the weights, or that matter in training alone. Of all
#: others it has the default only.
_ANY = (
    *("src_vocab_size", "tgt_vocab_size", "vocab_size", "d_model", "n_heads", "n_kv_heads", "d_ff"),
    *("n_layers", "max_len", "pre_norm", "qk_norm", "bias", "qkv_bias", "o_bias", "tie_output"),
    *("share_embeddings", "begin_id", "pad_id", "n_segments", "cell", "attention"),
    *("dropout", "attention_dropout", "zero_init", "experts_per_token", "balance_weight"),
)
#: Settings of which it has some values.
_SOME = {
    "norm": ("layer", "rms"),
    "activation": ("relu", "gelu", "silu", "squared_relu", "swiglu"),
    "positions": ("sinusoidal", "learned", "rotary", "alibi", "none"),
}


def live_script(name_or_folder: str | Path) -> tuple[str, str]:
    r"""Write a model as a script: weights, configuration, tokenizers, and what its card says of it.

    The script calls ``exformer.provide(name, header, base64)``, which ``book/live/weights.js`` defines.
    Weights are written in half precision where that loses nothing, as in the models that come with the
    library, and else in float32.

    Args:
        name_or_folder: As for :func:`~exformer.hub.pretrained.load_model`.

    Returns:
        The model's name and the script.

    Raises:
        ValueError: If there is no such model, or its tokenizer is of a kind that the page does not have.

    >>> name, script = live_script("shakespeare-char")
    >>> name, script[:35]
    ('shakespeare-char', 'exformer.provide("shakespeare-char"')
    """
    model, tokenizer, card = load_lesson_model(name_or_folder)
    name = find_model(lesson_models().get(str(name_or_folder), name_or_folder)).resolve().name
    return name, model_script(name, model, tokenizer, card)


def model_script(
    name: str,
    model: nn.Module,
    tokenizer: Tokenizer | tuple[Tokenizer, Tokenizer],
    card: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """Write a model that is in memory as :func:`live_script` does.

    Args:
        name: That the page asks for.
        model: A ``DecoderLM``, ``EncoderLM``, ``EncoderDecoder`` or ``RecurrentEncoderDecoder``.
        tokenizer: Of the model; of a translator the pair (source, target).
        card: What is known of it.

    Returns:
        The script.

    Raises:
        ValueError: If a tokenizer or a setting is one that the page does not have.
    """
    _check_settings(model)
    tensors = {key: tensor.detach() for key, tensor in model.state_dict().items()}
    numbers = torch.cat([tensor.flatten().float() for tensor in tensors.values()])
    halves = numbers.half()
    dtype, kept = ("float16", halves) if torch.equal(halves.float(), numbers) else ("float32", numbers)
    tokenizers = [_content(each) for each in (tokenizer if isinstance(tokenizer, tuple) else (tokenizer,))]
    header = {
        "kind": type(model).__name__,
        "config": vars(model.config),
        "card": {key: card[key] for key in _TOLD if key in card},
        "dtype": dtype,
        "tensors": [[key, *tensor.shape] for key, tensor in tensors.items()],
        "tokenizers": tokenizers[:1] if tokenizers[0] == tokenizers[-1] else tokenizers,
    }
    encoded = base64.b64encode(kept.numpy().tobytes()).decode()
    parts = (json.dumps(part, ensure_ascii=True, separators=(",", ":")) for part in (name, header, encoded))
    return f"exformer.provide({','.join(parts)});\n"


def _check_settings(model: nn.Module) -> None:
    """Check that the page computes what the model does."""
    check_merged(model)
    own: Any = model.config
    config, defaults = vars(own), {field.name: (field.default,) for field in fields(own)}
    known = defaults | _SOME | {name: (config[name],) for name in _ANY if name in config}
    if isinstance(model, EncoderLM):
        known["tie_output"] = (True,)
    if "d_head" in config:
        known["d_head"] = (config["d_model"] // config["n_heads"],)
    if others := {name: value for name, value in config.items() if value not in known[name]}:
        raise ValueError(f"a page does not compute with these settings: {others}")


def export_live(name_or_folder: str | Path, folder: str | Path) -> Path:
    """Write the script of a model into a folder, with the hash of its contents in its name.

    Args:
        name_or_folder: As for :func:`~exformer.hub.pretrained.load_model`.
        folder: Where to; it is made if it is not there.

    Returns:
        The file, such as ``shakespeare-char.1f0c2a9be8d4.js``: a page that names it never gets another one.

    Raises:
        ValueError: As :func:`live_script`.
    """
    name, script = live_script(name_or_folder)
    data = script.encode()
    path = make_folder(folder, what="the script") / f"{name}.{hashlib.sha256(data).hexdigest()[:12]}.js"
    replace_file(path, data)
    return path


def _content(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return what a page needs of a tokenizer."""
    if isinstance(tokenizer, BPETokenizer):
        unicode = {"letters": " ".join(LETTERS.split()), "numbers": " ".join(NUMBERS.split())}
        merges = [index for pair in tokenizer.merges for index in pair]
        return {"kind": "byte-pair", "merges": merges, "unicode": unicode}
    for known, kind in ((CharTokenizer, "character"), (WordTokenizer, "word")):
        if isinstance(tokenizer, known):
            return {"kind": kind, "symbols": tokenizer.vocabulary.tokens[3:]}
    raise ValueError(f"a page has no tokenizer of the kind {type(tokenizer).__name__}")
