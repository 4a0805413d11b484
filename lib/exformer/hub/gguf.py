"""A GGUF file, in which llama.cpp keeps a whole model, often with weights of few bits -> our model."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from exformer.hub.hugging_face.configs import read_config
from exformer.hub.hugging_face.folder import load_theirs
from exformer.hub.hugging_face.names import LLAMA
from exformer.hub.pretrained import Pretrained
from exformer.tokenizers.hugging_face import HuggingFaceTokenizer

#: Their names of Llama's parameters. The rows of queries and keys are in our order: neighbors are rotated.
_NAMES = LLAMA._replace(
    architecture="a Llama in a GGUF file",
    prefix="",
    heads=(),
    names={
        "embedding": "token_embd",
        "layers.{}.norm_attention": "blk.{}.attn_norm",
        "layers.{}.self_attention.w_q": "blk.{}.attn_q",
        "layers.{}.self_attention.w_k": "blk.{}.attn_k",
        "layers.{}.self_attention.w_v": "blk.{}.attn_v",
        "layers.{}.self_attention.w_o": "blk.{}.attn_output",
        "layers.{}.norm_feed_forward": "blk.{}.ffn_norm",
        "layers.{}.feed_forward.w_1": "blk.{}.ffn_gate",
        "layers.{}.feed_forward.w_2": "blk.{}.ffn_down",
        "layers.{}.feed_forward.w_3": "blk.{}.ffn_up",
        "norm": "output_norm",
        "output": "output",
    },
    copies={"token_embd.weight": ("output.weight",)},
    ignored=(),
    halves=False,
)

#: Our reader's names of the settings that the metadata give, and theirs after "llama.".
_SETTINGS = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "rope_theta": "rope.freq_base",
    "head_dim": "rope.dimension_count",  # the whole head is rotated: other shapes do not fit
}

#: What llama.cpp has defaults for, which are those of our reader.
_OPTIONAL = ("num_key_value_heads", "rope_theta", "head_dim")
_NEEDED = (
    *(f"llama.{theirs}" for name, theirs in _SETTINGS.items() if name not in _OPTIONAL),
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.merges",
)
_ROLES = {"pad_id": "padding", "bos_id": "bos", "eos_id": "eos"}
_CONTROL = 3  # the type of tokens that end a text or a turn


def from_gguf(path: str | Path) -> Pretrained:
    r"""Read a Llama from a GGUF file, as llama.cpp runs it; nothing in the file is executed.

    Weights of few bits are computed back: in the type Q4_1, 32 weights share a scale :math:`s` and a smallest
    value :math:`m`, and each has an integer :math:`q` of 4 bits.

    .. math:: w = m + s\,q, \qquad q \in \{0, \dots, 15\}

    ``generate`` begins every text with the token ``tokenizer.ggml.bos_token_id``, if the file has one.

    Args:
        path: A file whose ``general.architecture`` is "llama".

    Returns:
        The model in evaluation mode, with weights in PyTorch's default dtype; its tokenizer; a card with the
        name that the file gives to the model.

    Raises:
        ValueError: If the file can't be read, or the library ``gguf`` is not installed; if the file holds
            another architecture, a setting or a tokenizer that the library does not have; if a weight is
            missing or left over.

    Source:
        The specification of GGUF in the repository of ggml.

    >>> from_gguf("SmolLM2.gguf")
    Traceback (most recent call last):
    ValueError: SmolLM2.gguf can't be read as a GGUF file: [Errno 2] No such file or directory: 'SmolLM2.gguf'
    """
    path = Path(path)
    metadata, stored = _read(path)
    architecture = metadata.get("general.architecture")
    if architecture != "llama":
        raise ValueError(f"{path} has the architecture {architecture!r}: the library reads 'llama' only")
    if metadata.get("llama.rope.scaling.type", "none") != "none":
        raise ValueError(f"{path} scales its rotary positions: the library does not read this from GGUF")
    if missing := [name for name in _NEEDED if name not in metadata]:
        raise ValueError(f"{path} lacks {', '.join(missing)}")
    tokenizer_json = _tokenizer_json(metadata, path)
    vocab_size = len(metadata["tokenizer.ggml.tokens"])
    ids = {role: metadata.get(f"tokenizer.ggml.{name}_token_id") for role, name in _ROLES.items()}
    settings = {name: metadata.get(f"llama.{theirs}") for name, theirs in _SETTINGS.items()}
    settings |= {"model_type": "llama", "hidden_act": "silu", "vocab_size": vocab_size}
    settings |= {"pad_token_id": ids["pad_id"], "bos_token_id": ids["bos_id"]}
    settings |= {"tie_word_embeddings": "output.weight" not in stored}
    _, config = read_config(settings)
    model = load_theirs(config, _computed_back(stored, path), _NAMES, path=path)
    tokenizer = HuggingFaceTokenizer(tokenizer_json, vocab_size=vocab_size, **ids)
    card = {"source": "GGUF", "architecture": architecture, "name": metadata.get("general.name")}
    return Pretrained(model, tokenizer, card)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metadata of a file, and its tensors as they are stored."""
    try:
        from gguf import GGUFReader
    except ImportError:
        raise ValueError("a GGUF file is read by the library gguf: pip install 'exformer[gguf]'") from None
    try:
        reader = GGUFReader(path)
        metadata = {name: field.contents() for name, field in reader.fields.items()}
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise ValueError(f"{path} can't be read as a GGUF file: {error}") from error
    return metadata, {tensor.name: tensor for tensor in reader.tensors}


def _computed_back(stored: dict[str, Any], path: Path) -> dict[str, Tensor]:
    """Return weights of few bits as numbers of PyTorch's default dtype."""
    from gguf.quants import dequantize

    dtype = torch.get_default_dtype()
    try:
        return {
            name: torch.tensor(dequantize(t.data, t.tensor_type), dtype=dtype) for name, t in stored.items()
        }
    except (ValueError, NotImplementedError) as error:
        raise ValueError(f"{path} can't be read as a GGUF file: {error}") from error


def _tokenizer_json(metadata: dict[str, Any], path: Path) -> str:
    """Return byte-pair tokens and merges as the content of a ``tokenizer.json``."""
    model, rule = (metadata.get(f"tokenizer.ggml.{name}") for name in ("model", "pre"))
    if model != "gpt2" or rule not in ("gpt-2", "smollm"):
        raise ValueError(
            f"{path} has the tokenizer {model!r} with the rule {rule!r}: the library reads 'gpt2' with the "
            "rule 'gpt-2' or 'smollm' only"
        )
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}
    tokens = metadata["tokenizer.ggml.tokens"]
    kinds = metadata.get("tokenizer.ggml.token_type", [])
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    content = {
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [digits, byte_level] if rule == "smollm" else [byte_level],
        },
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": metadata["tokenizer.ggml.merges"],
        },
        "added_tokens": [
            {"id": i, "content": tokens[i], "special": True} | plain
            for i, kind in enumerate(kinds)
            if kind == _CONTROL
        ],
    }
    return json.dumps(content)
