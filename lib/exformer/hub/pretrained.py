"""A trained model <-> a folder: weights and their card, and the tokenizers that belong to them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_args

import torch
from torch import nn

from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.models.encoder_lm import EncoderLM, EncoderLMConfig
from exformer.storage.state_dict import check_weights, pack_weights, read_card, read_tensors, replaced_weights
from exformer.storage.upgrade import upgrade_weights
from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.characters import CharTokenizer
from exformer.tokenizers.loading import load_tokenizer
from exformer.tokenizers.tokenizer import Tokenizer
from exformer.tokenizers.words import WordTokenizer

_WEIGHTS = "model.safetensors"
_SHIPPED = Path(__file__).parents[1] / "shipped"
# A file from a stranger must not fill the memory. Weights show how large a model is, not its longest text.
_MOST = {"max_len": 2**17}
_MOST_OF_OTHERS = 2**24
_TOKENIZERS = {"word": WordTokenizer, "character": CharTokenizer, "byte-pair": BPETokenizer}
#: Kind of model: its class, its configuration, and the tokenizers it needs.
_KINDS: dict[str, tuple[type[nn.Module], type, tuple[str, ...]]] = {
    "DecoderLM": (DecoderLM, DecoderLMConfig, ("tokenizer",)),
    "EncoderLM": (EncoderLM, EncoderLMConfig, ("tokenizer",)),
    "EncoderDecoder": (EncoderDecoder, EncoderDecoderConfig, ("src_tokenizer", "tgt_tokenizer")),
}


@dataclass(frozen=True)
class Pretrained:
    """Hold a trained model and what belongs to it.

    Args:
        model: In evaluation mode.
        tokenizers: By name: ``tokenizer``, or ``src_tokenizer`` and ``tgt_tokenizer``.
        card: What is known of the weights: recipe, seed, data, time, scores.
    """

    model: nn.Module
    tokenizers: dict[str, Tokenizer]
    card: dict[str, Any]

    def first_ids(self) -> list[int]:
        """Return what a language model reads before every text: <s>, or the text that its card names.

        A model that was trained on windows of a long text has never seen <s>.

        Raises:
            ValueError: If this is no language model, or the card's ``begin`` is no text with symbols.
        """
        if "tokenizer" not in self.tokenizers:
            raise ValueError(f"a language model begins a text, a {type(self.model).__name__} needs a source")
        tokenizer, begin = self.tokenizers["tokenizer"], self.card.get("begin")
        if begin is None:
            return [tokenizer.bos_id]
        if not isinstance(begin, str) or not begin:
            raise ValueError(f"the card's begin must be a text of at least one character, came {begin!r}")
        return tokenizer.encode(begin)


def save_model(
    folder: str | Path,
    model: nn.Module,
    *,
    tokenizers: Mapping[str, Tokenizer],
    card: Mapping[str, Any],
    dtype: torch.dtype | None = None,
) -> None:
    """Write a model, its tokenizers and its card into a folder, as :func:`load_model` reads them.

    A full disk leaves an older model as it was. The card comes last, and an old one is taken away before:
    where this is cut, the folder has none, and :func:`load_model` refuses it.

    Args:
        folder: Where to; it is made if need be.
        model: A ``DecoderLM``, ``EncoderLM`` or ``EncoderDecoder``.
        tokenizers: Those of the model, by name, see :class:`Pretrained`.
        card: What is known of the weights, as JSON can hold it; kind and config are the model's in any case.
        dtype: Of the weights in the file, see :func:`~exformer.storage.state_dict.save_weights`.

    Raises:
        ValueError: If the model is of another kind, a tokenizer is missing, too many or of another size than
            the model, or as :func:`~exformer.storage.state_dict.pack_weights`; then nothing is written.
    """
    kind = type(model).__name__
    if kind not in _KINDS:
        raise ValueError(f"model must be one of {', '.join(_KINDS)}, came {kind}")
    if sorted(tokenizers) != sorted(_KINDS[kind][2]):
        raise ValueError(f"{kind} needs the tokenizers {_KINDS[kind][2]}, came {tuple(tokenizers)}")
    _check_sizes(tokenizers, model.config, where=f"the {kind} to save")
    own = {"kind": kind, "config": asdict(model.config)}
    weights, text = pack_weights(model, card={**own, **card, **own}, dtype=dtype)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with replaced_weights(folder / _WEIGHTS, weights, text):
        for name, tokenizer in tokenizers.items():
            tokenizer.save(folder / f"{name}.json")


def shipped_models() -> dict[str, Path]:
    """Return the models that come with the library: their folders, by name."""
    return {path.name: path for path in sorted(_SHIPPED.glob("*")) if (path / _WEIGHTS).exists()}


def load_model(name_or_folder: str | Path) -> Pretrained:
    """Read a model that comes with the library, or one from a folder; nothing in it is run.

    Args:
        name_or_folder: A name of :func:`shipped_models`, or a folder that :func:`save_model` wrote; where
            there are both, the folder.

    Returns:
        The model, with weights in the default type of numbers.

    Raises:
        ValueError: If the name is empty, or something is missing, damaged, or does not fit together.
    """
    if name_or_folder == "":  # a path would take it for the folder that we are in
        raise ValueError(f"expected a folder or one of {', '.join(shipped_models())}, came an empty name")
    folder = Path(name_or_folder)
    if not folder.is_dir():
        folder = shipped_models().get(str(name_or_folder), folder)
    if not folder.is_dir():
        raise ValueError(
            f"there is no model {folder}: expected a folder with {_WEIGHTS}, or one of "
            f"{', '.join(shipped_models())}"
        )
    card = read_card(folder / _WEIGHTS)
    kind = card.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"{folder}: the kind of model must be one of {', '.join(_KINDS)}, came {kind!r}")
    build, configure, names = _KINDS[kind]
    config = _config(configure, card.get("config"), folder=folder)
    tensors = upgrade_weights(read_tensors(folder / _WEIGHTS)[0])
    if config.n_layers > len(tensors):
        raise ValueError(f"{folder}: {config.n_layers} layers, but {len(tensors)} weights")
    with torch.device("meta"):  # shapes without memory: a wrong file is found before anything is made
        check_weights(tensors, build(config), path=folder / _WEIGHTS)
    model = build(config).eval()
    model.load_state_dict(tensors)
    tokenizers = {name: load_tokenizer(folder / f"{name}.json") for name in names}
    _check_sizes(tokenizers, config, where=folder)
    return Pretrained(model, tokenizers, card)


def _check_sizes(tokenizers: Mapping[str, Tokenizer], config: Any, *, where: str | Path) -> None:
    """Refuse tokenizers with another number of symbols than the model has."""
    for name, tokenizer in tokenizers.items():
        wanted = getattr(config, name.replace("tokenizer", "vocab_size"))
        if tokenizer.vocab_size != wanted:
            raise ValueError(
                f"{where}: {name} has {tokenizer.vocab_size} symbols, the model was made for {wanted}"
            )


def _config(configure: type, found: Any, *, folder: Path) -> Any:
    """Build a configuration from what a card says."""
    known = {field.name: field.type for field in fields(configure)}
    if not isinstance(found, dict) or not found.keys() <= known.keys():
        raise ValueError(f"{folder}: the card's config must have settings of {configure.__name__}")
    for name, value in found.items():
        kind = known[name]
        right = type(value) in (int, float) if kind is float else type(value) in (get_args(kind) or (kind,))
        if not right:
            expected = getattr(kind, "__name__", kind)
            raise ValueError(f"{folder}: config has {name} {value!r}, expected {expected}")
        most = _MOST.get(name, _MOST_OF_OTHERS)
        if type(value) is int and value > most:
            raise ValueError(f"{folder}: config has {name} {value}, expected at most {most}")
    try:
        return configure(**found)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{folder}: the card's config makes no model: {error}") from error
