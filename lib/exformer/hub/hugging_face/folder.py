"""A folder that transformers' ``save_pretrained`` wrote <-> our model; nothing in it is executed."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from exformer.hub.hugging_face.configs import read_config, write_config
from exformer.hub.hugging_face.names import BERT_BODY, FAMILIES, Family
from exformer.hub.hugging_face.tensors import to_ours, to_theirs
from exformer.hub.pretrained import Pretrained
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.models.encoder_lm import EncoderLM, EncoderLMConfig
from exformer.models.unwrap import unwrap
from exformer.nn.lora import check_merged
from exformer.storage.check_weights import check_weights
from exformer.storage.files import make_folder, read_json, replace_file, write_json
from exformer.storage.safetensors_file import read_tensors
from exformer.tokenizers.hugging_face import HuggingFaceTokenizer
from exformer.tokenizers.tokenizer import end_ids

_INDEX = "model.safetensors.index.json"
_GENERATION = "generation_config.json"
_BUILD: dict[type, type[nn.Module]] = {
    DecoderLMConfig: DecoderLM,
    EncoderLMConfig: EncoderLM,
    EncoderDecoderConfig: EncoderDecoder,
}


def from_hugging_face(folder: str | Path) -> Pretrained:
    """Read a GPT-2, Llama, Mistral, Mixtral, BERT or Marian that transformers' ``save_pretrained`` wrote.

    A BERT whose ``architectures`` say ``BertModel`` becomes an ``EncoderLM`` without a head: it gives states.
    The pooler, which only the sentence pairs of BERT's training need, is left out.

    ``generate`` begins every text with the token that ``config.json`` names as ``bos_token_id``, as Llama's
    tokenizer in transformers does too, but GPT-2's does not.

    Args:
        folder: With ``config.json``, the weights in ``model.safetensors`` (without this file, in the parts
            that ``model.safetensors.index.json`` lists), and ``tokenizer.json`` if there is one.

    Returns:
        The model in evaluation mode, with weights in PyTorch's default dtype; its tokenizer, for a translator
        the pair (source, target), or None where the folder has none; a card that says where it is from.

    Raises:
        ValueError: If a file is missing or damaged, a setting is one that the library does not have, or a
            weight is missing or left over.

    Source:
        Wolf et al. 2020, for the files.

    >>> import tempfile
    >>> from exformer import DecoderLM, DecoderLMConfig, to_hugging_face
    >>> sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1, "max_len": 16}
    >>> model = DecoderLM(DecoderLMConfig(11, activation="gelu_tanh", **sizes))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_hugging_face(folder, model)
    ...     from_hugging_face(folder).card["architecture"]
    'GPT2LMHeadModel'
    """
    folder = Path(folder)
    settings = read_json(folder / "config.json", what="a configuration of Hugging Face")
    kind, config = read_config(settings)
    family = _family(kind, config)
    model = load_theirs(config, _read_weights(folder), family, path=folder)
    card = {"source": "Hugging Face", "architecture": family.architecture}
    return Pretrained(model, _read_tokenizer(folder, settings, config), card)


def load_theirs(config: Any, tensors: Mapping[str, Tensor], family: Family, *, path: Path) -> nn.Module:
    """Build the model of a configuration with a family's tensors, in evaluation mode.

    Raises:
        ValueError: If a weight is missing, left over, of another shape, or not finite.
    """
    build = _BUILD[type(config)]
    with torch.device("meta"):  # shapes alone
        shapes = {name: p.shape for name, p in build(config).state_dict().items()}
    ours = to_ours(tensors, shapes, family, d_head=config.d_head)
    model = build(config).eval()
    check_weights(ours, model, path=path)
    model.load_state_dict(ours)
    return model


def to_hugging_face(folder: str | Path, model: nn.Module, tokenizer: Any = None) -> None:
    """Write a model as transformers' ``from_pretrained`` reads it.

    Where our embeddings are multiplied by √d_model and the family's are not, they are written multiplied; a
    tied output is made up for by the last normalization, so that the logits stay.

    Args:
        folder: The folder to write to; it is created if need be. Weights that are there are replaced, also
            those in parts.
        model: A ``DecoderLM`` with the settings of GPT-2, Llama, Mistral or Mixtral, an ``EncoderLM`` with
            BERT's, or an ``EncoderDecoder`` with Marian's.
        tokenizer: One that :func:`from_hugging_face` read is written as ``tokenizer.json``; others are not.

    Raises:
        ValueError: If no family has the model's settings; the message names them. If the folder has a
            ``tokenizer.json``, and the tokenizer given is one that can't replace it.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from exformer import DecoderLM, DecoderLMConfig
    >>> sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1, "max_len": 16}
    >>> model = DecoderLM(DecoderLMConfig(11, activation="gelu_tanh", **sizes))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_hugging_face(folder, model)
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['config.json', 'model.safetensors']
    """
    model = unwrap(model)
    check_merged(model)
    if type(model) not in _BUILD.values():
        names = ", ".join(build.__name__ for build in _BUILD.values())
        raise ValueError(f"model must be one of {names}, got {type(model).__name__}")
    config, state = without_scale(model.config, model.state_dict())
    settings = write_config(config)
    family = _family(settings["model_type"], config)
    theirs = to_theirs(state, family, d_head=config.d_head)
    if getattr(config, "share_embeddings", False):
        theirs["model.shared.weight"] = theirs.pop("model.decoder.embed_tokens.weight")
    if isinstance(model, EncoderDecoder) and not config.output_bias:
        theirs["final_logits_bias"] = next(model.parameters()).new_zeros(1, config.tgt_vocab_size)
    if isinstance(model, EncoderLM) and config.head:
        theirs["cls.predictions.bias"] = theirs["cls.predictions.decoder.bias"].clone()
        if config.tie_output:
            del theirs["cls.predictions.decoder.bias"]
    dtype = str(next(model.parameters()).dtype).removeprefix("torch.")
    [first, *_] = tokenizer if isinstance(tokenizer, tuple) else (tokenizer,)
    ends = [] if first is None else end_ids(first)
    end = ends[0] if ends else None  # null: without it, transformers takes 50256 for a GPT-2
    settings |= {"architectures": [family.architecture], "dtype": dtype}
    settings |= {"eos_token_id": ends if len(ends) > 1 else end}
    if isinstance(model, EncoderDecoder):
        start = config.pad_id if first is None else first.bos_id
        settings |= {"decoder_start_token_id": start, "forced_eos_token_id": end}
    folder = make_folder(folder, what="the model")
    if (folder / "tokenizer.json").exists() and not isinstance(first, HuggingFaceTokenizer | None):
        raise ValueError(
            f"{folder} holds the tokenizer.json of another model, and the tokenizer given can't be written "
            "as one: choose another folder, or delete that file"
        )
    tensors = {name: tensor.detach().cpu() for name, tensor in theirs.items()}
    replace_file(folder / "model.safetensors", save(tensors, {"format": "pt"}))
    parts = folder.glob("model-?????-of-?????.safetensors")
    for old in (folder / _INDEX, folder / _GENERATION, *parts):  # of an earlier model
        old.unlink(missing_ok=True)
    if isinstance(first, HuggingFaceTokenizer):
        replace_file(folder / "tokenizer.json", first.content.encode())
    write_json(folder / "config.json", settings, indent=2)


def _family(kind: str, config: Any) -> Family:
    """Return the names of a family's parameters, for BERT with or without its head."""
    return BERT_BODY if not getattr(config, "head", True) else FAMILIES[kind]


def without_scale(config: Any, state: Mapping[str, Tensor]) -> tuple[Any, dict[str, Tensor]]:
    """Return a language model's weights for embeddings that are not multiplied by √d_model."""
    state = dict(state)
    if not (isinstance(config, DecoderLMConfig) and config.scale_embedding and config.pre_norm):
        return config, state
    root = math.sqrt(config.d_model)
    state["embedding.weight"] = state["embedding.weight"] * root
    if config.tie_output:  # the last normalization takes the factor back
        norm = [name for name in state if name.startswith("norm.")]
        state |= {name: state[name] / root for name in norm}
    return replace(config, scale_embedding=False), state


def _read_weights(folder: Path) -> dict[str, Tensor]:
    """Return all tensors of a folder, from one file or from several."""
    whole, index = folder / "model.safetensors", folder / _INDEX
    if whole.exists() or not index.exists():  # as transformers, which does not look at the index either
        if not whole.exists() and list(folder.glob("pytorch_model*")):
            raise ValueError(
                f"{folder} holds its weights as pytorch_model.bin, a format that can run code: write them "
                "with model.save_pretrained(folder) of a recent transformers, as model.safetensors"
            )
        return read_tensors(whole)[0]
    files = read_json(index, what="a list of the weights' files").get("weight_map")
    if not isinstance(files, dict) or not all(
        isinstance(f, str) and Path(f).name == f for f in files.values()
    ):
        raise ValueError(f"{index} must name a file of the folder for each weight")
    tensors: dict[str, Tensor] = {}
    for file in sorted(set(files.values())):
        tensors |= read_tensors(folder / file)[0]
    return tensors


def _read_tokenizer(folder: Path, settings: Mapping[str, Any], config: Any) -> Any:
    """Return the tokenizer of a folder, or None if there is none."""
    path = folder / "tokenizer.json"
    if not path.exists():
        return None
    ids = {name: settings.get(f"{name}_token_id") for name in ("pad", "bos", "eos")}
    ids = {name: value[0] if isinstance(value, list) else value for name, value in ids.items()}
    ids |= {"eos": _end_ids(folder, settings)}
    content = path.read_text(encoding="utf-8")
    if isinstance(config, EncoderDecoderConfig):
        ids["bos"] = settings.get("decoder_start_token_id", ids["bos"])
        sizes = (config.src_vocab_size, config.tgt_vocab_size)
        return tuple(HuggingFaceTokenizer(content, vocab_size=size, **_ids(ids)) for size in sizes)
    return HuggingFaceTokenizer(content, vocab_size=config.vocab_size, **_ids(ids))


def _end_ids(folder: Path, settings: Mapping[str, Any]) -> list[int] | None:
    """Return the end tokens of ``generation_config.json``, or else of ``config.json``, whose go first."""
    path, own = folder / _GENERATION, _listed(settings.get("eos_token_id"))
    found = read_json(path, what="settings of generation") if path.exists() else {}
    ends = _listed(found.get("eos_token_id")) or own
    return sorted(ends, key=lambda token: token not in own) or None


def _listed(ids: Any) -> list[Any]:
    return ids if isinstance(ids, list) else [] if ids is None else [ids]


def _ids(ids: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{name}_id": value for name, value in ids.items()}
