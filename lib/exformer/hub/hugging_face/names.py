"""What our parameters are called in Hugging Face's files: a table for each family.

``{}`` is the number of a layer, and then of an expert. A name is that of a module; weight and bias
are called so on both sides.
"""

import re
from typing import NamedTuple


class Family(NamedTuple):
    """How the files of one kind of model name the parameters.

    Args:
        architecture: Name of the class in transformers.
        names: The module of theirs for each of ours.
        prefix: What the names begin with, but for those of the heads; files of the body alone lack it.
        heads: What the names of the output layers begin with.
        copies: The names under which a tied weight may be stored as well, or instead.
        ignored: Patterns of names that hold no parameters of our models: constants, and heads of other tasks.
        halves: Whether rotary positions rotate columns i and i + d_head/2 of a head; we rotate neighbors.
    """

    architecture: str
    names: dict[str, str]
    prefix: str
    heads: tuple[str, ...]
    copies: dict[str, tuple[str, ...]]
    ignored: tuple[str, ...]
    halves: bool = False


def their_name(name: str, family: Family) -> str:
    """Return what one of our parameters is called in a family's file.

    Raises:
        ValueError: If the family has no such parameter.

    >>> their_name("layers.3.feed_forward.w_1.weight", LLAMA)
    'model.layers.3.mlp.gate_proj.weight'
    """
    numbers = re.findall(r"\.(\d+)\.", name)
    template = re.sub(r"\.\d+\.", ".{}.", name)
    module, _, leaf = template.rpartition(".")
    if template in family.names:  # a parameter of the model itself
        return family.names[template]
    if module not in family.names:
        raise ValueError(f"{family.architecture} has no parameter like {name}")
    return f"{family.names[module].format(*numbers)}.{leaf}"


GPT2 = Family(
    architecture="GPT2LMHeadModel",
    prefix="transformer.",
    heads=("lm_head.",),
    names={
        "embedding": "transformer.wte",
        "positions": "transformer.wpe",
        "layers.{}.norm_attention": "transformer.h.{}.ln_1",
        "layers.{}.self_attention.w_q": "transformer.h.{}.attn.c_attn",  # one matrix for all three
        "layers.{}.self_attention.w_k": "transformer.h.{}.attn.c_attn",
        "layers.{}.self_attention.w_v": "transformer.h.{}.attn.c_attn",
        "layers.{}.self_attention.w_o": "transformer.h.{}.attn.c_proj",
        "layers.{}.norm_feed_forward": "transformer.h.{}.ln_2",
        "layers.{}.feed_forward.w_1": "transformer.h.{}.mlp.c_fc",
        "layers.{}.feed_forward.w_2": "transformer.h.{}.mlp.c_proj",
        "norm": "transformer.ln_f",
        "output": "lm_head",
    },
    copies={"transformer.wte.weight": ("lm_head.weight",)},
    ignored=(r"\.attn\.(bias|masked_bias)$",),
)

LLAMA = Family(
    architecture="LlamaForCausalLM",
    prefix="model.",
    heads=("lm_head.",),
    names={
        "embedding": "model.embed_tokens",
        "layers.{}.norm_attention": "model.layers.{}.input_layernorm",
        "layers.{}.self_attention.w_q": "model.layers.{}.self_attn.q_proj",
        "layers.{}.self_attention.w_k": "model.layers.{}.self_attn.k_proj",
        "layers.{}.self_attention.w_v": "model.layers.{}.self_attn.v_proj",
        "layers.{}.self_attention.w_o": "model.layers.{}.self_attn.o_proj",
        "layers.{}.norm_feed_forward": "model.layers.{}.post_attention_layernorm",
        "layers.{}.feed_forward.w_1": "model.layers.{}.mlp.gate_proj",
        "layers.{}.feed_forward.w_2": "model.layers.{}.mlp.down_proj",
        "layers.{}.feed_forward.w_3": "model.layers.{}.mlp.up_proj",
        "norm": "model.norm",
        "output": "lm_head",
    },
    copies={"model.embed_tokens.weight": ("lm_head.weight",)},
    ignored=(r"rotary_emb\.inv_freq$",),
    halves=True,
)

MISTRAL = LLAMA._replace(architecture="MistralForCausalLM")

MIXTRAL = LLAMA._replace(
    architecture="MixtralForCausalLM",
    names={
        **{ours: theirs for ours, theirs in LLAMA.names.items() if ".feed_forward." not in ours},
        "layers.{}.feed_forward.router": "model.layers.{}.block_sparse_moe.gate",
        "layers.{}.feed_forward.experts.{}.w_1": "model.layers.{}.block_sparse_moe.experts.{}.w1",
        "layers.{}.feed_forward.experts.{}.w_2": "model.layers.{}.block_sparse_moe.experts.{}.w2",
        "layers.{}.feed_forward.experts.{}.w_3": "model.layers.{}.block_sparse_moe.experts.{}.w3",
    },
)

BERT = Family(
    architecture="BertForMaskedLM",
    prefix="bert.",
    heads=("cls.",),
    names={
        "embedding": "bert.embeddings.word_embeddings",
        "positions": "bert.embeddings.position_embeddings",
        "segments": "bert.embeddings.token_type_embeddings",
        "norm_embedding": "bert.embeddings.LayerNorm",
        "layers.{}.self_attention.w_q": "bert.encoder.layer.{}.attention.self.query",
        "layers.{}.self_attention.w_k": "bert.encoder.layer.{}.attention.self.key",
        "layers.{}.self_attention.w_v": "bert.encoder.layer.{}.attention.self.value",
        "layers.{}.self_attention.w_o": "bert.encoder.layer.{}.attention.output.dense",
        "layers.{}.norm_attention": "bert.encoder.layer.{}.attention.output.LayerNorm",
        "layers.{}.feed_forward.w_1": "bert.encoder.layer.{}.intermediate.dense",
        "layers.{}.feed_forward.w_2": "bert.encoder.layer.{}.output.dense",
        "layers.{}.norm_feed_forward": "bert.encoder.layer.{}.output.LayerNorm",
        "transform": "cls.predictions.transform.dense",
        "norm_output": "cls.predictions.transform.LayerNorm",
        "output": "cls.predictions.decoder",
        "output_bias": "cls.predictions.decoder.bias",
    },
    copies={
        "bert.embeddings.word_embeddings.weight": ("cls.predictions.decoder.weight",),
        "cls.predictions.decoder.bias": ("cls.predictions.bias",),  # not used if the other is there
    },
    ignored=(
        r"^cls\.predictions\.bias$",
        r"embeddings\.position_ids$",
        r"^bert\.pooler\.",
        r"^cls\.seq_relationship\.",
    ),
)

#: BERT without its head, as models that turn texts into vectors are published.
BERT_BODY = BERT._replace(architecture="BertModel")

MARIAN = Family(
    architecture="MarianMTModel",
    prefix="model.",
    heads=("lm_head.", "final_logits_bias"),
    names={
        "src_embedding": "model.encoder.embed_tokens",
        "tgt_embedding": "model.decoder.embed_tokens",
        "encoder.{}.self_attention.w_q": "model.encoder.layers.{}.self_attn.q_proj",
        "encoder.{}.self_attention.w_k": "model.encoder.layers.{}.self_attn.k_proj",
        "encoder.{}.self_attention.w_v": "model.encoder.layers.{}.self_attn.v_proj",
        "encoder.{}.self_attention.w_o": "model.encoder.layers.{}.self_attn.out_proj",
        "encoder.{}.norm_attention": "model.encoder.layers.{}.self_attn_layer_norm",
        "encoder.{}.feed_forward.w_1": "model.encoder.layers.{}.fc1",
        "encoder.{}.feed_forward.w_2": "model.encoder.layers.{}.fc2",
        "encoder.{}.norm_feed_forward": "model.encoder.layers.{}.final_layer_norm",
        "decoder.{}.self_attention.w_q": "model.decoder.layers.{}.self_attn.q_proj",
        "decoder.{}.self_attention.w_k": "model.decoder.layers.{}.self_attn.k_proj",
        "decoder.{}.self_attention.w_v": "model.decoder.layers.{}.self_attn.v_proj",
        "decoder.{}.self_attention.w_o": "model.decoder.layers.{}.self_attn.out_proj",
        "decoder.{}.norm_self": "model.decoder.layers.{}.self_attn_layer_norm",
        "decoder.{}.cross_attention.w_q": "model.decoder.layers.{}.encoder_attn.q_proj",
        "decoder.{}.cross_attention.w_k": "model.decoder.layers.{}.encoder_attn.k_proj",
        "decoder.{}.cross_attention.w_v": "model.decoder.layers.{}.encoder_attn.v_proj",
        "decoder.{}.cross_attention.w_o": "model.decoder.layers.{}.encoder_attn.out_proj",
        "decoder.{}.norm_cross": "model.decoder.layers.{}.encoder_attn_layer_norm",
        "decoder.{}.feed_forward.w_1": "model.decoder.layers.{}.fc1",
        "decoder.{}.feed_forward.w_2": "model.decoder.layers.{}.fc2",
        "decoder.{}.norm_feed_forward": "model.decoder.layers.{}.final_layer_norm",
        "output": "lm_head",
        "output_bias": "final_logits_bias",
    },
    copies={
        "model.decoder.embed_tokens.weight": (
            "model.shared.weight",
            "model.encoder.embed_tokens.weight",
            "lm_head.weight",
        )
    },
    ignored=(r"embed_positions\.weight$",),
)

#: The families by the ``model_type`` of their ``config.json``.
FAMILIES = {
    "gpt2": GPT2,
    "llama": LLAMA,
    "mistral": MISTRAL,
    "mixtral": MIXTRAL,
    "bert": BERT,
    "marian": MARIAN,
}
