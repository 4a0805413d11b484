"""A ``config.json`` of Hugging Face <-> our configuration, a reader and a writer for each family."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from exformer.hub.hugging_face.names import BERT, BERT_BODY
from exformer.models.decoder_lm import DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoderConfig
from exformer.models.encoder_lm import EncoderLMConfig
from exformer.nn.config import TransformerConfig
from exformer.nn.normalization import LAYER_NORM_EPS, RMS_NORM_EPS
from exformer.nn.positions.rotary import RopeScaling

#: Their names of our activations; the first one is written.
_ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


class _Settings:
    """A ``config.json``, whose settings are taken one after the other."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.found = found

    def __getitem__(self, name: str) -> Any:
        if self.found.get(name) is None:
            raise ValueError(f"config.json lacks {name}")
        return self.found[name]

    def get(self, name: str, default: Any = None) -> Any:
        value = self.found.get(name)
        return default if value is None else value

    def only(self, **wanted: Any) -> None:
        """Check settings for which we have one value."""
        for name, value in wanted.items():
            if self.get(name, value) != value:
                raise ValueError(
                    f"config.json has {name} {self.found[name]!r}: the library has {value!r} only"
                )

    def completed(self, **defaults: Any) -> "_Settings":
        """Return the settings with a family's own defaults for those that are missing; null is kept."""
        return _Settings(defaults | dict(self.found))

    def activation(self, name: str) -> str:
        found = self[name]
        if found not in _ACTIVATIONS:
            raise ValueError(
                f"config.json has {name} {found!r}: the library has {', '.join(_ACTIVATIONS)} only"
            )
        return _ACTIVATIONS[found]


def _read_gpt2(c: _Settings) -> DecoderLMConfig:
    c.only(scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    return DecoderLMConfig(
        c["vocab_size"],
        d_model=c["n_embd"],
        n_heads=c["n_head"],
        d_ff=c.get("n_inner", 4 * c["n_embd"]),
        n_layers=c["n_layer"],
        max_len=c["n_positions"],
        dropout=c.get("resid_pdrop", 0.1),
        attention_dropout=c.get("attn_pdrop", 0.1),
        norm_eps=c.get("layer_norm_epsilon", 1e-5),
        activation=c.activation("activation_function"),
        positions="learned",
        tie_output=c.get("tie_word_embeddings", True),
        scale_embedding=False,
        begin_id=c.get("bos_token_id"),
        pad_id=c.get("pad_token_id"),
    )


def _write_gpt2(c: DecoderLMConfig) -> dict[str, Any]:
    return {
        "n_embd": c.d_model,
        "n_head": c.n_heads,
        "n_inner": c.d_ff,
        "n_layer": c.n_layers,
        "n_positions": c.max_len,
        "embd_pdrop": c.dropout,
        "resid_pdrop": c.dropout,
        "attn_pdrop": c.attention_dropout,
        "layer_norm_epsilon": _eps(c),
        "activation_function": _their_activation(c),
    }


def _read_llama(c: _Settings) -> DecoderLMConfig:
    c.only(hidden_act="silu")
    n_heads = c["num_attention_heads"]
    n_kv_heads = c.get("num_key_value_heads", n_heads)
    base, scaling = _read_rope(c)
    attention_bias = c.get("attention_bias", False)
    return DecoderLMConfig(
        c["vocab_size"],
        d_model=c["hidden_size"],
        n_heads=n_heads,
        n_kv_heads=None if n_kv_heads == n_heads else n_kv_heads,
        d_head=c.get("head_dim", c["hidden_size"] // n_heads),
        d_ff=c["intermediate_size"],
        n_layers=c["num_hidden_layers"],
        max_len=c["max_position_embeddings"],
        dropout=0.0,
        attention_dropout=c.get("attention_dropout", 0.0),
        norm="rms",
        norm_eps=c.get("rms_norm_eps", 1e-6),
        activation="swiglu",
        positions="rotary",
        rope_base=base,
        rope_scaling=scaling,
        bias=c.get("mlp_bias", False),
        qkv_bias=attention_bias,
        o_bias=attention_bias,
        tie_output=c.get("tie_word_embeddings", False),
        scale_embedding=False,
        begin_id=c.get("bos_token_id"),
        pad_id=c.get("pad_token_id"),
    )


def _read_rope(c: _Settings) -> tuple[float, RopeScaling | None]:
    """Return base and scaling of the rotary frequencies, as older and newer files give them."""
    rope = _Settings(c.get("rope_parameters") or c.get("rope_scaling", {}))
    base = float(rope.get("rope_theta", c.get("rope_theta", 10_000.0)))
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return base, None
    if kind == "linear":
        return base, RopeScaling(float(rope["factor"]))
    if kind == "llama3":
        return base, RopeScaling(
            float(rope["factor"]),
            original_max_len=rope["original_max_position_embeddings"],
            low_freq_factor=float(rope["low_freq_factor"]),
            high_freq_factor=float(rope["high_freq_factor"]),
        )
    raise ValueError(f"config.json has the rope_type {kind!r}: the library has default, linear, llama3 only")


def _write_llama(c: DecoderLMConfig) -> dict[str, Any]:
    return {
        "hidden_size": c.d_model,
        "num_attention_heads": c.n_heads,
        "num_key_value_heads": c.n_kv_heads or c.n_heads,
        "head_dim": c.d_head,
        "intermediate_size": c.d_ff,
        "num_hidden_layers": c.n_layers,
        "max_position_embeddings": c.max_len,
        "attention_dropout": c.attention_dropout,
        "rms_norm_eps": _eps(c),
        "hidden_act": "silu",
        "attention_bias": c.bias if c.qkv_bias is None else c.qkv_bias,
        "mlp_bias": c.bias,
        "rope_parameters": _write_rope(c),
    }


def _write_rope(c: TransformerConfig) -> dict[str, Any]:
    scaling = c.rope_scaling
    if scaling is None:
        return {"rope_type": "default", "rope_theta": c.rope_base}
    if scaling.original_max_len is None:
        return {"rope_type": "linear", "rope_theta": c.rope_base, "factor": scaling.factor}
    return {
        "rope_type": "llama3",
        "rope_theta": c.rope_base,
        "factor": scaling.factor,
        "original_max_position_embeddings": scaling.original_max_len,
        "low_freq_factor": scaling.low_freq_factor,
        "high_freq_factor": scaling.high_freq_factor,
    }


def _read_mistral(c: _Settings) -> DecoderLMConfig:
    c = c.completed(num_key_value_heads=8, sliding_window=4096)
    c.only(attention_bias=False, mlp_bias=False)
    return replace(_read_llama(c), window=c.get("sliding_window"))


def _write_mistral(c: DecoderLMConfig) -> dict[str, Any]:
    return _write_llama(c) | {"sliding_window": c.window}


def _read_mixtral(c: _Settings) -> DecoderLMConfig:
    c = c.completed(rms_norm_eps=1e-5, rope_theta=1e6, sliding_window=None)
    c.only(router_jitter_noise=0.0)
    return replace(
        _read_mistral(c),
        n_experts=c["num_local_experts"],
        experts_per_token=c["num_experts_per_tok"],
        balance_weight=c.get("router_aux_loss_coef", 0.001),
    )


def _write_mixtral(c: DecoderLMConfig) -> dict[str, Any]:
    return _write_mistral(c) | {
        "num_local_experts": c.n_experts,
        "num_experts_per_tok": c.experts_per_token,
        "router_aux_loss_coef": c.balance_weight,
    }


def _read_bert(c: _Settings) -> EncoderLMConfig:
    c.only(hidden_act="gelu", is_decoder=False, position_embedding_type="absolute", add_cross_attention=False)
    return EncoderLMConfig(
        c["vocab_size"],
        d_model=c["hidden_size"],
        n_heads=c["num_attention_heads"],
        d_ff=c["intermediate_size"],
        n_layers=c["num_hidden_layers"],
        max_len=c["max_position_embeddings"],
        dropout=c.get("hidden_dropout_prob", 0.1),
        attention_dropout=c.get("attention_probs_dropout_prob", 0.1),
        norm_eps=c.get("layer_norm_eps", 1e-12),
        n_segments=c.get("type_vocab_size", 2),
        tie_output=c.get("tie_word_embeddings", True),
        pad_id=c.get("pad_token_id", 0),
        head=c.get("architectures") != [BERT_BODY.architecture],
    )


def _write_bert(c: EncoderLMConfig) -> dict[str, Any]:
    return {
        "hidden_size": c.d_model,
        "num_attention_heads": c.n_heads,
        "intermediate_size": c.d_ff,
        "num_hidden_layers": c.n_layers,
        "max_position_embeddings": c.max_len,
        "hidden_dropout_prob": c.dropout,
        "attention_probs_dropout_prob": c.attention_dropout,
        "layer_norm_eps": _eps(c),
        "hidden_act": "gelu",
        "type_vocab_size": c.n_segments,
        "architectures": [(BERT if c.head else BERT_BODY).architecture],
    }


def _read_marian(c: _Settings) -> EncoderDecoderConfig:
    c.only(static_position_embeddings=True, normalize_embedding=False, normalize_before=False)
    c.only(add_final_layer_norm=False, add_bias_logits=False)
    for size in ("layers", "attention_heads", "ffn_dim"):
        if c[f"encoder_{size}"] != c[f"decoder_{size}"]:
            raise ValueError(
                f"config.json has encoder_{size} {c[f'encoder_{size}']} and decoder_{size} "
                f"{c[f'decoder_{size}']}: the library has one for both"
            )
    return EncoderDecoderConfig(
        c["vocab_size"],
        c.get("decoder_vocab_size", c["vocab_size"]),
        d_model=c["d_model"],
        n_heads=c["encoder_attention_heads"],
        d_ff=c["encoder_ffn_dim"],
        n_layers=c["encoder_layers"],
        max_len=c["max_position_embeddings"],
        dropout=c.get("dropout", 0.1),
        attention_dropout=c.get("attention_dropout", 0.0),
        norm_eps=1e-5,
        activation=c.activation("activation_function"),
        positions="sinusoidal_halves",
        tie_output=c.get("tie_word_embeddings", True),
        share_embeddings=c.get("share_encoder_decoder_embeddings", True),
        scale_embedding=c.get("scale_embedding", False),
        output_bias=True,
        pad_id=c["pad_token_id"],
    )


def _write_marian(c: EncoderDecoderConfig) -> dict[str, Any]:
    both = {"layers": c.n_layers, "attention_heads": c.n_heads, "ffn_dim": c.d_ff}
    return {
        "vocab_size": c.src_vocab_size,
        "decoder_vocab_size": c.tgt_vocab_size,
        "d_model": c.d_model,
        **{f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in both.items()},
        "max_position_embeddings": c.max_len,
        "dropout": c.dropout,
        "attention_dropout": c.attention_dropout,
        "activation_dropout": 0.0,
        "activation_function": _their_activation(c),
        "scale_embedding": c.scale_embedding,
        "share_encoder_decoder_embeddings": c.share_embeddings,
        "is_encoder_decoder": True,
    }


class _Form(NamedTuple):
    """How a family's settings are read and written."""

    config: type
    read: Callable[[_Settings], Any]
    write: Callable[[Any], dict[str, Any]]


_FORMS = {
    "gpt2": _Form(DecoderLMConfig, _read_gpt2, _write_gpt2),
    "llama": _Form(DecoderLMConfig, _read_llama, _write_llama),
    "mistral": _Form(DecoderLMConfig, _read_mistral, _write_mistral),
    "mixtral": _Form(DecoderLMConfig, _read_mixtral, _write_mixtral),
    "bert": _Form(EncoderLMConfig, _read_bert, _write_bert),
    "marian": _Form(EncoderDecoderConfig, _read_marian, _write_marian),
}


def read_config(found: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the ``model_type`` of a ``config.json`` and our configuration of the same model.

    Raises:
        ValueError: If the family is unknown, or a setting is missing or one that we do not have.

    >>> sizes = {"n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 9, "vocab_size": 5}
    >>> read_config({"model_type": "gpt2", "activation_function": "gelu_new", **sizes})[1].activation
    'gelu_tanh'
    """
    kind = found.get("model_type")
    if kind not in _FORMS:
        raise ValueError(f"config.json has the model_type {kind!r}: the library has {', '.join(_FORMS)} only")
    return kind, _FORMS[kind].read(_Settings(found))


def write_config(config: TransformerConfig) -> dict[str, Any]:
    """Return the ``config.json`` of a model: that of the family that has its settings.

    Raises:
        ValueError: If no family has them; the message names the settings.

    >>> from exformer import DecoderLMConfig
    >>> write_config(DecoderLMConfig(65, scale_embedding=False, d_ff=100))["n_inner"]
    100
    """
    misfits: list[tuple[int, str]] = []  # how far each family is from the configuration, and why
    for kind, form in _FORMS.items():
        if form.config is not type(config):
            continue
        theirs = _write_shared(kind, config) | form.write(config)
        try:
            lost = _lost_settings(config, form.read(_Settings(theirs)))
        except ValueError as error:
            misfits.append((len(fields(config)), f"{kind}: {error}"))
            continue
        if not lost:
            return theirs
        misfits.append((len(lost), f"{kind} has no {', '.join(lost)}"))
    nearest = min(misfits)[1] if misfits else f"none has a {type(config).__name__}"
    raise ValueError(f"no family of Hugging Face has this configuration: {nearest}")


def _write_shared(kind: str, config: Any) -> dict[str, Any]:
    ours = {"vocab_size": "vocab_size", "pad_token_id": "pad_id", "bos_token_id": "begin_id"}
    ours |= {"tie_word_embeddings": "tie_output"}
    return {"model_type": kind} | {theirs: getattr(config, name, None) for theirs, name in ours.items()}


def _lost_settings(config: Any, again: Any) -> list[str]:
    """Return the settings that are no longer the same once they are read again."""
    known = [(name, value) for name, value in vars(config).items() if value is not None]
    return [f"{name} {value!r}" for name, value in known if _meaning(config, name) != _meaning(again, name)]


def _meaning(config: Any, name: str) -> Any:
    """Return a setting with its default spelled out."""
    value = getattr(config, name)
    if value is None and name in ("qkv_bias", "o_bias"):
        return config.bias
    if name == "norm_eps":
        return _eps(config)
    if name in ("rope_base", "rope_scaling") and config.positions != "rotary":
        return None  # it has no rotary frequencies
    if name in ("zero_init", "dropout", "attention_dropout", "balance_weight"):
        return None  # these matter in training alone
    if name == "experts_per_token" and config.n_experts is None:
        return None
    if name == "output_bias":
        return True  # to have none is to have zeros
    return config.n_heads if value is None and name == "n_kv_heads" else value


def _eps(config: TransformerConfig) -> float:
    if config.norm_eps is not None:
        return config.norm_eps
    return RMS_NORM_EPS if config.norm == "rms" else LAYER_NORM_EPS


def _their_activation(config: TransformerConfig) -> str:
    found = [theirs for theirs, ours in _ACTIVATIONS.items() if ours == config.activation]
    return found[0] if found else config.activation
