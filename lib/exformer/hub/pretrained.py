"""A trained model <-> a folder: weights and their card, and the tokenizers that belong to them."""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor, nn

from exformer.hub.shipped import WEIGHTS, find_model
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.models.encoder_lm import EncoderLM, EncoderLMConfig
from exformer.models.rnn_encoder_decoder import RecurrentConfig, RecurrentEncoderDecoder
from exformer.models.unwrap import unwrap
from exformer.nn.config import TransformerConfig, derive_sizes
from exformer.nn.lora import check_merged
from exformer.nn.positions.rotary import RopeScaling
from exformer.storage.check_weights import check_weights
from exformer.storage.files import make_folder
from exformer.storage.safetensors_file import (
    pack_weights,
    read_card,
    read_tensors,
    replaced_weights,
)
from exformer.storage.upgrade import upgrade_weights
from exformer.tokenizers.loading import load_tokenizer
from exformer.tokenizers.tokenizer import Tokenizer

# A file from a stranger must not fill the memory. Weights show how large a model is, not its longest text.
_MOST = {"max_len": 2**17}
_MOST_OF_OTHERS = 2**24
#: By the name on a card: the class of a model, and that of its configuration.
_CLASSES: dict[str, tuple[type[nn.Module], type]] = {
    "DecoderLM": (DecoderLM, DecoderLMConfig),
    "EncoderLM": (EncoderLM, EncoderLMConfig),
    "EncoderDecoder": (EncoderDecoder, EncoderDecoderConfig),
    "RecurrentEncoderDecoder": (RecurrentEncoderDecoder, RecurrentConfig),
}


class Pretrained(NamedTuple):
    """A trained model and what belongs to it; it unpacks into these three.

    Args:
        model: In evaluation mode.
        tokenizer: A ``Tokenizer``; of a translator the pair (source, target).
        card: What is known of the weights: recipe, seed, data, time, scores.
    """

    model: nn.Module
    tokenizer: Any
    card: dict[str, Any]


def save_model(
    folder: str | Path,
    model: nn.Module,
    tokenizer: Tokenizer | tuple[Tokenizer, Tokenizer],
    *,
    card: Mapping[str, Any],
    dtype: torch.dtype | None = None,
) -> None:
    """Write a model, its tokenizer and its card into a folder, as :func:`load_model` reads them.

    If the disk is full, an older model stays as it was. The card is written last, and an old card is removed
    first: if writing is interrupted, the folder has no card, and :func:`load_model` says so.

    Args:
        folder: The folder to write to; it is created if need be.
        model: A ``DecoderLM``, ``EncoderLM``, ``EncoderDecoder`` or ``RecurrentEncoderDecoder``.
        tokenizer: Of the model; of a translator the pair (source, target).
        card: Facts about the weights that JSON can hold; kind and config are always the model's.
        dtype: Of the weights in the file, see :func:`~exformer.storage.safetensors_file.pack_weights`.

    Raises:
        ValueError: If the model is of another kind, or has one tokenizer where it needs two, or of another
            size, or as :func:`~exformer.storage.safetensors_file.pack_weights`; then nothing is written.

    >>> from exformer import load_model
    >>> import tempfile
    >>> model, tokenizer, card = load_model("shakespeare-char")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(folder, model, tokenizer, card={"seed": card["seed"]})
    ...     load_model(folder).card["kind"]
    'DecoderLM'
    """
    model = unwrap(model)
    check_merged(model)
    kind = type(model).__name__
    if kind not in _CLASSES:
        raise ValueError(f"model must be one of {', '.join(_CLASSES)}, got {kind}")
    names = _tokenizer_names(type(model.config))
    given = tokenizer if isinstance(tokenizer, tuple) else (tokenizer,)
    if len(given) != len(names):
        raise ValueError(f"{kind} needs {' and '.join(names)}, got {len(given)}")
    tokenizers = dict(zip(names, given, strict=True))
    _check_sizes(tokenizers, model.config, where=f"the {kind} to save")
    own = {"kind": kind, "config": asdict(model.config)}
    weights, text = pack_weights(model, card={**own, **card, **own}, dtype=dtype)
    folder = make_folder(folder, what="the model")
    with replaced_weights(folder / WEIGHTS, weights, text):
        for name, each in tokenizers.items():
            each.save(folder / f"{name}.json")


def load_model(name_or_folder: str | Path) -> Pretrained:
    """Read a model that comes with the library, or one from a folder; no code in it is executed.

    Args:
        name_or_folder: A name of :func:`~exformer.hub.shipped.shipped_models`, or a folder that
            :func:`save_model` wrote; where there are both, the folder.

    Returns:
        The model in evaluation mode, with weights in PyTorch's default dtype; its tokenizer, or for a
        translator the pair (source, target); its card.

    Raises:
        ValueError: If the name is empty, or something is missing, damaged, or does not fit together.

    >>> model, tokenizer, card = load_model("shakespeare-bpe")
    >>> model.config.max_len, tokenizer.vocab_size, card["seed"]
    (64, 1259, 0)
    """
    folder = find_model(name_or_folder)
    path = folder / WEIGHTS
    card = read_card(path)
    kind = card.get("kind")
    if not isinstance(kind, str) or kind not in _CLASSES:
        raise ValueError(f"{folder}: the kind of model must be one of {', '.join(_CLASSES)}, got {kind!r}")
    build, configure = _CLASSES[kind]
    config = _config(configure, card.get("config"), folder=folder)
    tokenizers = {name: load_tokenizer(folder / f"{name}.json") for name in _tokenizer_names(configure)}
    _check_sizes(tokenizers, config, where=folder)
    tokenizer, *others = tokenizers.values()
    if isinstance(config, DecoderLMConfig) and config.begin_id is None:
        config = replace(config, begin_id=_begin_id(card, tokenizer, folder=folder))
    tensors = upgrade_weights(read_tensors(path)[0])
    _check_room(config, tensors, path=path)
    model = build(config).eval()
    check_weights(tensors, model, path=path)
    model.load_state_dict(tensors)
    return Pretrained(model, (tokenizer, *others) if others else tokenizer, card)


def _tokenizer_names(configure: type) -> list[str]:
    """Return the names of a model's tokenizers, one for each vocabulary of its configuration."""
    names = [each.name for each in fields(configure)]
    return [name.replace("vocab_size", "tokenizer") for name in names if name.endswith("vocab_size")]


def _begin_id(card: Mapping[str, Any], tokenizer: Tokenizer, *, folder: Path) -> int | None:
    """Return the token that begins every text of a language model, where its card names a text that does.

    A model that was trained on windows of a long text has never seen <s>.
    """
    begin = card.get("begin")
    if begin is None:
        return None
    if not isinstance(begin, str) or not begin:
        raise ValueError(f"{folder}: the card's begin must be a text of a character or more, got {begin!r}")
    return tokenizer.encode(begin)[-1]


def _check_room(config: Any, tensors: Mapping[str, Tensor], *, path: Path) -> None:
    """Check that the model of a configuration is no larger than the file, before memory is allocated."""
    vocab_size = max(getattr(config, f.name) for f in fields(config) if f.name.endswith("vocab_size"))
    if isinstance(config, TransformerConfig):  # queries and outputs; two maps
        hidden = (config.n_experts or 1) * config.d_ff
        layer = 2 * config.d_model * (config.n_heads * config.d_head + hidden)
    else:
        layer = 2 * config.d_model**2
    least = config.n_layers * layer + vocab_size * config.d_model
    found = sum(tensor.numel() for tensor in tensors.values())
    if least > found:
        raise ValueError(
            f"{path} does not fit the model: {found:,} numbers, the card's config makes {least:,} or more"
        )


def _check_sizes(tokenizers: Mapping[str, Tokenizer], config: Any, *, where: str | Path) -> None:
    """Check that the tokenizers have as many tokens as the model."""
    for name, tokenizer in tokenizers.items():
        wanted = getattr(config, name.replace("tokenizer", "vocab_size"))
        if tokenizer.vocab_size != wanted:
            raise ValueError(
                f"{where}: {name} has {tokenizer.vocab_size} tokens, the model was made for {wanted}"
            )


def _config(configure: type, found: Any, *, folder: Path) -> Any:
    """Build a configuration from what a card says."""
    known = {field.name: field.type for field in fields(configure)}
    if not isinstance(found, dict) or not found.keys() <= known.keys():
        raise ValueError(f"{folder}: the card's config must have settings of {configure.__name__}")
    found = dict(found)
    for name, value in found.items():
        kind = known[name]
        kinds = get_args(kind) or (kind,)
        if isinstance(value, dict) and RopeScaling in kinds:
            found[name] = _config(RopeScaling, value, folder=folder)
        elif type(value) not in kinds and not (type(value) is int and float in kinds):
            expected = getattr(kind, "__name__", kind)
            raise ValueError(f"{folder}: config has {name} {value!r}, expected {expected}")
        most = _MOST.get(name, _MOST_OF_OTHERS)
        if type(value) is int and value > most:
            raise ValueError(f"{folder}: config has {name} {value}, expected at most {most}")
    try:
        config = configure(**found)  # the card has all sizes, also those that nobody chose
        return derive_sizes(config) if isinstance(config, TransformerConfig) else config
    except (TypeError, ValueError) as error:
        raise ValueError(f"{folder}: the card's config makes no model: {error}") from error
