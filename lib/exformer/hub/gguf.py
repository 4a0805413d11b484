"""A GGUF file, in which llama.cpp keeps a whole model, often with weights of few bits -> our model."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from exformer.hub.hugging_face.configs import read_config
from exformer.hub.hugging_face.names import LLAMA
from exformer.hub.hugging_face.tensors import to_ours
from exformer.hub.pretrained import Pretrained
from exformer.models.decoder_lm import DecoderLM
from exformer.storage.state_dict import check_weights
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
    metadata, tensors = _read(Path(path))
    architecture = metadata.get("general.architecture")
    if architecture != "llama":
        raise ValueError(f"{path} has the architecture {architecture!r}: the library reads 'llama' only")
    if metadata.get("llama.rope.scaling.type", "none") != "none":
        raise ValueError(f"{path} scales its rotary positions: the library does not read this from GGUF")
    tokens = metadata.get("tokenizer.ggml.tokens", [])
    settings = {name: metadata.get(f"llama.{theirs}") for name, theirs in _SETTINGS.items()}
    settings |= {name: metadata.get(f"tokenizer.ggml.{name}") for name in ("bos_token_id", "eos_token_id")}
    settings |= {
        "model_type": "llama",
        "hidden_act": "silu",
        "vocab_size": len(tokens),
        "pad_token_id": metadata.get("tokenizer.ggml.padding_token_id"),
        "tie_word_embeddings": "output.weight" not in tensors,
    }
    _, config = read_config(settings)
    model = DecoderLM(config).eval()
    shapes = {name: parameter.shape for name, parameter in model.state_dict().items()}
    weights = to_ours(tensors, shapes, _NAMES, d_head=config.d_head)
    check_weights(weights, model, path=Path(path))
    model.load_state_dict(weights)
    roles = {"pad_id": "pad_token_id", "bos_id": "bos_token_id", "eos_id": "eos_token_id"}
    ids = {ours: settings[name] for ours, name in roles.items()}
    tokenizer = HuggingFaceTokenizer(_tokenizer_json(metadata, path), vocab_size=len(tokens), **ids)
    return Pretrained(model, tokenizer, {"source": "GGUF", "name": metadata.get("general.name")})


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the metadata of a file, and its tensors with weights of few bits computed back."""
    try:
        from gguf import GGUFReader
        from gguf.quants import dequantize
    except ImportError:
        raise ValueError("a GGUF file is read by the library gguf: pip install 'exformer[gguf]'") from None
    try:
        reader = GGUFReader(path)
        tensors = {t.name: torch.tensor(dequantize(t.data, t.tensor_type)) for t in reader.tensors}
        metadata = {name: field.contents() for name, field in reader.fields.items()}
    except (OSError, ValueError, KeyError, IndexError, NotImplementedError) as error:
        raise ValueError(f"{path} can't be read as a GGUF file: {error}") from error
    return metadata, {name: tensor.to(torch.get_default_dtype()) for name, tensor in tensors.items()}


def _tokenizer_json(metadata: dict[str, Any], path: str | Path) -> str:
    """Return byte-pair tokens and merges as the content of a ``tokenizer.json``."""
    model, rule = (metadata.get(f"tokenizer.ggml.{name}") for name in ("model", "pre"))
    if model != "gpt2" or rule not in ("gpt-2", "smollm"):
        raise ValueError(
            f"{path} has the tokenizer {model!r} with the rule {rule!r}: the library reads 'gpt2' with the "
            "rule 'gpt-2' or 'smollm' only"
        )
    try:
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    except ImportError:
        raise ValueError("pip install 'exformer[gguf]': the library tokenizers is missing") from None
    tokens = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(pair.split(" ")) for pair in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    pieces = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pieces if rule == "gpt-2" else pre_tokenizers.Sequence([digits, pieces])
    tokenizer.decoder = decoders.ByteLevel()
    kinds = metadata.get("tokenizer.ggml.token_type", [])
    special = [token for token, kind in zip(tokens, kinds, strict=False) if kind == 3]  # control tokens
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special])
    return tokenizer.to_str()
